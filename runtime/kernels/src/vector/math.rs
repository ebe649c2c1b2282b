//! Functions of one `f32` vector. They are within 2 units in the last place of the correctly rounded result, unless
//! another bound is given.
//!
//! The polynomials are minimax fits in relative error on their interval. Their coefficients are rounded to `f32` one
//! after the other, and their own error is below 0.1 ULP. NaN gives NaN; infinities and zeros keep their sign.

use super::segments::{GELU, GELU_TANH, TANH};
use super::Vector;

const LN_2_HIGH: f32 = 0.693_145_75; // 15 bits: its product with any exponent is exact
const LN_2_LOW: f32 = 1.428_606_8e-6;
const FRAC_PI_2: [f32; 3] = [1.570_796_4, -4.371_139e-8, -1.715_124_5e-15];
/// Above it, the number of the quadrant is too large for the precision of [`FRAC_PI_2`].
const TRIGONOMETRIC_LIMIT: f32 = 20_000.0;

/// `c₀ + c₁·x + c₂·x² + …`
#[inline(always)]
pub(super) fn polynomial<V: Vector, const N: usize>(x: V, coefficients: [f32; N]) -> V {
    let highest = V::splat(coefficients[N - 1]);
    coefficients[..N - 1].iter().rev().fold(highest, |sum, &c| sum.mul_add(x, V::splat(c)))
}

/// Adding it to a small number leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

/// `(n, r)` with `x = n·ln 2 + r`, an integer `n` and `|r| ≤ ln 2 / 2`, for `|x| ≤ 150`.
#[inline(always)]
fn reduced<V: Vector>(x: V) -> (V, V) {
    let n = x.mul_add(V::splat(std::f32::consts::LOG2_E), V::splat(ROUND)) - V::splat(ROUND);
    let r = n.neg_mul_add(V::splat(LN_2_HIGH), x);
    (n, n.neg_mul_add(V::splat(LN_2_LOW), r))
}

/// `(eʳ - 1 - r) / r²` for `|r| ≤ ln 2 / 2`.
pub(super) const EXP_TERMS: [f32; 5] = [0.499_999_97, 0.166_665_46, 0.041_667_435, 0.008_366_272, 0.001_387_069_6];

/// `(n, eʳ - 1)` with `x = n·ln 2 + r` and an integer `n`, for `|x| ≤ 150`.
#[inline(always)]
fn expm1_parts<V: Vector>(x: V) -> (V, V) {
    let (n, r) = reduced(x);
    (n, (polynomial(r, EXP_TERMS) * r).mul_add(r, r))
}

/// `(n, eʳ)` with `x = n·ln 2 + r` and an integer `n`, for `|x| ≤ 150`.
#[inline(always)]
pub(super) fn exp_parts<V: Vector>(x: V) -> (V, V) {
    let (n, r) = reduced(x);
    let one = V::splat(1.0);
    (n, polynomial(r, EXP_TERMS).mul_add(r, one).mul_add(r, one))
}

/// `eˣ`
#[inline(always)]
pub(crate) fn exp<V: Vector>(x: V) -> V {
    let x = V::splat(-150.0).greater(V::splat(128.0).lesser(x));
    let (n, p) = exp_parts(x);
    p.times_power_of_two(n)
}

/// `eˣ` for `x ≤ 0`; 0 if the result is subnormal, because some processors take a hundred times as long for such
/// numbers.
#[inline(always)]
pub(crate) fn exp_of_nonpositive<V: Vector>(x: V) -> V {
    let least = V::splat(-87.336);
    let (n, p) = exp_parts(least.greater(x));
    V::select(x.less(least), V::splat(0.0), p.times_normal_power_of_two(n))
}

/// `eˣ - 1` for `x ≤ 0`
#[inline(always)]
pub(crate) fn expm1_negative<V: Vector>(x: V) -> V {
    let (n, p) = expm1_parts(V::splat(-20.0).greater(x));
    let scale = V::splat(1.0).times_power_of_two(n);
    scale.mul_add(p, scale - V::splat(1.0))
}

/// `(m, e)` with `x = m · 2ᵉ` and `m` in `[2/3, 4/3)`, for positive finite numbers.
#[inline(always)]
pub(super) fn mantissa<V: Vector>(x: V) -> (V, V) {
    let is_small = x.less(V::splat(f32::MIN_POSITIVE));
    let (m, e) = V::select(is_small, x * V::splat(33_554_432.0), x).split();
    (m, V::select(is_small, e - V::splat(25.0), e))
}

/// Natural logarithm
#[inline(always)]
pub(crate) fn log<V: Vector>(x: V) -> V {
    let (m, e) = mantissa(x);
    let f = m - V::splat(1.0);
    let p = polynomial(
        f,
        [
            -0.5,
            0.333_332_15,
            -0.249_998,
            0.200_104_46,
            -0.166_803_76,
            0.140_053_06,
            -0.121_857_13,
            0.139_868_99,
            -0.128_856_64,
        ],
    );
    let low = (f * f).mul_add(p, e * V::splat(LN_2_LOW));
    let y = e.mul_add(V::splat(LN_2_HIGH), f + low);
    let y = V::select(x.less(V::splat(f32::INFINITY)), y, x);
    let y = V::select(x.less(V::splat(0.0)), V::splat(f32::NAN), y);
    V::select(x.equal(V::splat(0.0)), V::splat(f32::NEG_INFINITY), y)
}

/// `ln(1 + x)` for `x` in `[0, 1]`
#[inline(always)]
fn log1p_unit<V: Vector>(x: V) -> V {
    let t = x / (V::splat(2.0) + x);
    let s = t * t;
    let p = polynomial(s, [0.666_666_75, 0.399_989_5, 0.286_152_18, 0.214_437_22, 0.242_463_13]);
    (t * s).mul_add(p, t + t)
}

/// Hyperbolic tangent
#[inline(always)]
pub(crate) fn tanh<V: Vector>(x: V) -> V {
    TANH.odd(x)
}

/// `1 / (1 + e⁻ˣ)`
#[inline(always)]
pub(crate) fn sigmoid<V: Vector>(x: V) -> V {
    let (n, p) = exp_parts(V::splat(-150.0).greater(x.abs().neg()));
    let (e, one) = (p.times_power_of_two(n), V::splat(1.0));
    V::select(x.less(V::splat(0.0)), e, one) / (one + e)
}

/// `x · sigmoid(x)`
#[inline(always)]
pub(crate) fn silu<V: Vector>(x: V) -> V {
    x * sigmoid(x)
}

/// `x · sigmoid(alpha·x)`
#[inline(always)]
pub(crate) fn swish<V: Vector>(x: V, alpha: f32) -> V {
    x * sigmoid(x * V::splat(alpha))
}

/// The error function
#[inline(always)]
pub(crate) fn erf<V: Vector>(x: V) -> V {
    let magnitude = V::splat(3.95).lesser(x.abs());
    let s = x * x;
    let p = polynomial(s, [0.128_379_15, -0.376_124_8, 0.112_816_21, -0.026_758_747, 0.004_981_029, -0.000_592_712]);
    let small = x.mul_add(p, x);
    let q = polynomial(
        magnitude,
        [-1.128_516_6, -0.635_711_43, -0.105_270_23, 0.022_894_925, -0.003_216_381_2, 0.000_214_144_38],
    );
    let (n, p) = exp_parts(q * magnitude);
    let large = V::splat(1.0) - p.times_normal_power_of_two(n);
    V::select(magnitude.less(V::splat(0.9375)), small, large.copy_sign(x))
}

/// `x/2 · (1 + erf(x/√2))`; the error is absolute, under 2 ULP of `x`.
#[inline(always)]
pub(crate) fn gelu<V: Vector>(x: V) -> V {
    x.mul_add(GELU.odd(x), x * V::splat(0.5))
}

/// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))`; the error is absolute, under 2 ULP of `x`.
#[inline(always)]
pub(crate) fn gelu_tanh<V: Vector>(x: V) -> V {
    x.mul_add(GELU_TANH.odd(x), x * V::splat(0.5))
}

/// `x · max(0, min(1, x/6 + 1/2))`
#[inline(always)]
pub(crate) fn hard_swish<V: Vector>(x: V) -> V {
    x * hard_sigmoid(x, 1.0 / 6.0, 0.5)
}

/// `max(0, min(1, alpha·x + beta))`
#[inline(always)]
pub(crate) fn hard_sigmoid<V: Vector>(x: V, alpha: f32, beta: f32) -> V {
    let line = x.mul_add(V::splat(alpha), V::splat(beta));
    V::splat(0.0).greater(V::splat(1.0).lesser(line))
}

/// `ln(1 + eˣ)`
#[inline(always)]
pub(crate) fn softplus<V: Vector>(x: V) -> V {
    x.greater(V::splat(0.0)) + log1p_unit(exp(x.abs().neg()))
}

/// `x · tanh(softplus(x))`
#[inline(always)]
pub(crate) fn mish<V: Vector>(x: V) -> V {
    // With e = eˣ: tanh(ln(1 + e)) = ((1 + e)² - 1) / ((1 + e)² + 1). From x = 20 on, it is 1.
    let e = exp(V::splat(20.0).lesser(x));
    let n = e * (e + V::splat(2.0));
    x * (n / (n + V::splat(2.0)))
}

/// `x` if `x ≥ 0`, else `alpha·(eˣ - 1)`
#[inline(always)]
pub(crate) fn elu<V: Vector>(x: V, alpha: f32) -> V {
    let negative = V::splat(alpha) * expm1_negative(x.lesser(V::splat(0.0)));
    V::select(x.less(V::splat(0.0)), negative, x)
}

/// Sine
#[inline(always)]
pub(crate) fn sin<V: Vector>(x: V) -> V {
    shifted_sin(x, 0.0, f64::sin)
}

/// Cosine
#[inline(always)]
pub(crate) fn cos<V: Vector>(x: V) -> V {
    shifted_sin(x, 1.0, f64::cos)
}

/// `sin(x + quarters·π/2)`. `exact` computes it for arguments beyond [`TRIGONOMETRIC_LIMIT`].
#[inline(always)]
fn shifted_sin<V: Vector>(x: V, quarters: f32, exact: impl Fn(f64) -> f64) -> V {
    let j = (x * V::splat(std::f32::consts::FRAC_2_PI)).round();
    // A loop instead of `fold`: its closure is compiled without the instruction set's features if it is not inlined.
    let mut r = x;
    for part in FRAC_PI_2 {
        r = j.neg_mul_add(V::splat(part), r);
    }
    let j = j + V::splat(quarters);
    let quadrant = j - V::splat(4.0) * (j * V::splat(0.25)).floor();
    let s = r * r;
    let sine = (r * s).mul_add(polynomial(s, [-0.166_666_67, 0.008_333_379, -0.000_198_530_79, 2.832_806e-6]), r);
    let cosine = s.mul_add(polynomial(s, [-0.5, 0.041_666_646, -0.001_388_731, 2.443_233_6e-5]), V::splat(1.0));
    let is_odd = (quadrant - V::splat(2.0) * (quadrant * V::splat(0.5)).floor()).equal(V::splat(1.0));
    let y = V::select(is_odd, cosine, sine);
    let y = V::select(V::splat(2.0).less_or_equal(quadrant), y.neg(), y);
    let is_far = V::splat(TRIGONOMETRIC_LIMIT).less(x.abs());
    if V::any(is_far) {
        V::select(is_far, x.each_lane(|x| exact(f64::from(x)) as f32), y)
    } else {
        y
    }
}
