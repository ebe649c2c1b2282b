//! Inverse trigonometric and hyperbolic functions of one `f32` vector, within 2 units in the last place.
//!
//! The odd polynomials are minimax fits in relative error, like those of [`super::math`]. The identities of S. L.
//! Moshier's Cephes library (`asinf.c`, `atanf.c`) reduce other arguments to their intervals.

use super::math::{exp_parts, polynomial};
use super::Vector;

const PI: [f32; 2] = [std::f32::consts::PI, -8.742_278e-8];
const FRAC_PI_2: [f32; 2] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8];

/// `x + x³·(c₀ + c₁·x² + …)`, given `x²`.
#[inline(always)]
fn odd<V: Vector, const N: usize>(x: V, square: V, coefficients: [f32; N]) -> V {
    (x * square).mul_add(polynomial(square, coefficients), x)
}

/// `c + x` for a constant `c` in two parts.
#[inline(always)]
fn plus<V: Vector>(c: [f32; 2], x: V) -> V {
    V::splat(c[0]) + (x + V::splat(c[1]))
}

/// Inverse tangent
#[inline(always)]
pub(crate) fn atan<V: Vector>(x: V) -> V {
    const TERMS: [f32; 9] = [
        -0.333_333,
        0.199_985_34,
        -0.142_641_02,
        0.109_515_06,
        -0.084_015_81,
        0.057_927_188,
        -0.031_148_853,
        0.010_899_621,
        -0.001_790_380_7,
    ];
    let magnitude = x.abs();
    let is_large = V::splat(1.0).less(magnitude);
    // atan x = π/2 - atan 1/x
    let t = V::select(is_large, V::splat(-1.0) / magnitude, magnitude);
    let y = odd(t, t * t, TERMS);
    V::select(is_large, plus(FRAC_PI_2, y), y).copy_sign(x)
}

/// Returns `(t, asin t - t, |x| > ½)`. For `|x| ≤ ½`, `t = |x|`; otherwise `t = √((1 - |x|) / 2)`, and `asin |x| = π/2
/// - 2·asin t`.
#[inline(always)]
fn asin_parts<V: Vector>(magnitude: V) -> (V, V, V::Mask) {
    const TERMS: [f32; 5] = [0.166_667_52, 0.074_953_07, 0.045_469_64, 0.024_181_498, 0.042_165_12];
    let half = V::splat(0.5);
    let is_large = half.less(magnitude);
    let square = V::select(is_large, half.neg_mul_add(magnitude, half), magnitude * magnitude);
    let t = V::select(is_large, square.sqrt(), magnitude);
    (t, t * square * polynomial(square, TERMS), is_large)
}

/// Inverse sine
#[inline(always)]
pub(crate) fn asin<V: Vector>(x: V) -> V {
    let (t, rest, is_large) = asin_parts(x.abs());
    let quarter = V::splat(FRAC_PI_2[0]);
    let (twice, rounded) = (t + t, quarter - (t + t));
    let low = ((quarter - rounded) - twice) + (V::splat(FRAC_PI_2[1]) - (rest + rest));
    V::select(is_large, rounded + low, t + rest).copy_sign(x)
}

/// Inverse cosine
#[inline(always)]
pub(crate) fn acos<V: Vector>(x: V) -> V {
    let (t, rest, is_large) = asin_parts(x.abs());
    let y = t + rest;
    let twice = y + y;
    let is_negative = x.less(V::splat(0.0));
    let large = V::select(is_negative, plus(PI, twice.neg()), twice);
    V::select(is_large, large, plus(FRAC_PI_2, V::select(is_negative, y, y.neg())))
}

/// `e^|x| / 2`; it overflows only where the hyperbolic functions do.
#[inline(always)]
fn half_exp<V: Vector>(x: V) -> V {
    let (n, p) = exp_parts(V::splat(150.0).lesser(x.abs()));
    p.times_power_of_two(n - V::splat(1.0))
}

/// Hyperbolic sine
#[inline(always)]
pub(crate) fn sinh<V: Vector>(x: V) -> V {
    let e = half_exp(x);
    let large = (e - V::splat(0.25) / e).copy_sign(x);
    let is_small = x.abs().less(V::splat(1.0));
    V::select(is_small, odd(x, x * x, [0.166_667_16, 0.008_330_274, 0.000_203_728_33]), large)
}

/// Hyperbolic cosine
#[inline(always)]
pub(crate) fn cosh<V: Vector>(x: V) -> V {
    let e = half_exp(x);
    e + V::splat(0.25) / e
}
