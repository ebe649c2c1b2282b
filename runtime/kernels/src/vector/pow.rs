//! Powers of one `f32` vector: `xʸ = 2^(y·log₂|x|)`. The logarithm and the product are pairs of numbers.
//!
//! The product is up to 150, and its absolute error is the relative error of the result, so the logarithm needs about
//! 40 bits. A pair is an unevaluated sum of two numbers; the low one is below one unit in the last place of the high
//! one (T. J. Dekker, "A floating-point technique for extending the available precision", 1971). A fused multiplication
//! gives the low part of a product. With `|x| = m · 2ᵉ` and `s = (m - 1) / (m + 1)`, `log₂ m = 2/ln 2 · artanh s`.

use super::math::{mantissa, polynomial, EXP_TERMS};
use super::Vector;

type Pair<V> = (V, V);

const LN_2: [f32; 2] = [std::f32::consts::LN_2, -1.904_654_2e-9];
/// `2 / ln 2`
const LOG_FIRST: [f32; 2] = [2.885_39, 3.851_926e-8];
/// With [`LOG_TERMS`], `(log₂ m / s - 2 / ln 2) / s²` in `s²`, for `|s| ≤ 1/5`; a minimax fit of 42 bits.
const LOG_SECOND: [f32; 2] = [0.961_796_7, -6.394_218_5e-9];
const LOG_TERMS: [f32; 4] = [0.577_077_8, 0.412_222_7, 0.319_381_68, 0.289_888_17];
/// Two to the power of a larger number is infinite; of a smaller negative one, 0.
const EXPONENT_LIMIT: f32 = 160.0;

/// `a · b`
#[inline(always)]
fn product<V: Vector>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    let high = a.0 * b.0;
    let low = a.0.mul_add(b.0, high.neg());
    (high, a.1.mul_add(b.0, a.0.mul_add(b.1, low)))
}

/// `a + b`, if `a = 0` or `|a| ≥ |b|`.
#[inline(always)]
fn sum<V: Vector>(a: V, b: V) -> Pair<V> {
    let high = a + b;
    (high, (a - high) + b)
}

/// `c + b`, if `|c| ≥ |b|`.
#[inline(always)]
fn constant_plus<V: Vector>(c: [f32; 2], b: Pair<V>) -> Pair<V> {
    let (high, low) = sum(V::splat(c[0]), b.0);
    (high, low + (b.1 + V::splat(c[1])))
}

/// Binary logarithm of `|x|`
#[inline(always)]
fn log2<V: Vector>(x: V) -> Pair<V> {
    let (m, e) = mantissa(x);
    let one = V::splat(1.0);
    let (numerator, (denominator, low)) = (m - one, sum(one, m));
    let inverse = one / denominator;
    let s = numerator * inverse;
    let s = (s, inverse * s.neg_mul_add(low, s.neg_mul_add(denominator, numerator)));
    let square = product(s, s);
    let terms = constant_plus(LOG_SECOND, (square.0 * polynomial(square.0, LOG_TERMS), V::splat(0.0)));
    let (fraction, rest) = product(s, constant_plus(LOG_FIRST, product(square, terms)));
    let (high, low) = sum(e, fraction);
    let high = V::select(x.less(V::splat(f32::INFINITY)), high, x);
    (V::select(x.equal(V::splat(0.0)), V::splat(f32::NEG_INFINITY), high), low + rest)
}

/// Two to the power `x`.
#[inline(always)]
fn exp2<V: Vector>(x: Pair<V>) -> V {
    let high = x.0.within([-EXPONENT_LIMIT, EXPONENT_LIMIT]);
    let low = x.1.lesser(V::splat(1.0)).greater(V::splat(-1.0)); // arbitrary if the high part was beyond the limit
    let n = high.round();
    let (r, low) = product(sum(high - n, low), (V::splat(LN_2[0]), V::splat(LN_2[1])));
    let (first, rest) = sum(V::splat(1.0), r);
    let rest = (r * r).mul_add(polynomial(r, EXP_TERMS), low.mul_add(first, rest));
    (first + rest).times_power_of_two(n)
}

/// `x` to the power `y`, within 1 unit in the last place, with the special cases of C's `pow`.
///
/// For the exponents of [`short`], the result equals that of `short`.
#[inline(always)]
pub(crate) fn pow<V: Vector>(x: V, y: V) -> V {
    let (magnitude, one) = (x.abs(), V::splat(1.0));
    let (high, low) = log2(magnitude);
    let exponent = y * high;
    let power = exp2((exponent, y.mul_add(low, y.mul_add(high, exponent.neg()))));
    let power = V::select(magnitude.equal(one), one, power);
    let power = V::select(y.equal(V::splat(0.0)), one, signed(x, y, power));
    SHORT.iter().fold(
        power,
        #[inline(always)]
        |power, &exponent| {
            let is_short = y.equal(V::splat(exponent));
            match short(x, exponent) {
                Some(exact) if V::any(is_short) => V::select(is_short, exact, power),
                _ => power,
            }
        },
    )
}

/// Converts a power of `|x|` to the power of `x`: negative if `x` is negative and `y` odd, NaN if it is undefined.
#[inline(always)]
fn signed<V: Vector>(x: V, y: V, power: V) -> V {
    let (half, one) = (y * V::splat(0.5), V::splat(1.0));
    let is_integer = y.floor().equal(y);
    let sign = V::select(half.floor().equal(half), one, V::select(is_integer, x, one));
    let power = power.copy_sign(sign);
    let finite = V::select(x.equal(V::splat(f32::NEG_INFINITY)), one, x);
    let is_undefined = V::select(is_integer, one, finite).less(V::splat(0.0));
    V::select(is_undefined, V::splat(f32::NAN), power)
}

/// The exponents that [`short`] supports.
const SHORT: [f32; 4] = [2.0, 3.0, 0.5, -1.0];

/// `x` to a power that takes a few instructions. All powers but the cube are correctly rounded.
#[inline(always)]
pub(crate) fn short<V: Vector>(x: V, y: f32) -> Option<V> {
    match y {
        2.0 => Some(x * x),
        3.0 => Some(cube(x)),
        0.5 => Some(root(x)),
        -1.0 => Some(V::splat(1.0) / x),
        _ => None,
    }
}

#[inline(always)]
fn cube<V: Vector>(x: V) -> V {
    let square = x * x;
    let rest = x.mul_add(x, square.neg());
    // Above 1e30, the cube may overflow; then `x · rest` is an infinity of the opposite sign.
    V::select(square.less(V::splat(1e30)), x.mul_add(square, x * rest), x * square)
}

/// The square root, except that it maps `-0` to `0` and `-∞` to `∞`, as `pow` does.
#[inline(always)]
fn root<V: Vector>(x: V) -> V {
    let infinity = V::splat(f32::INFINITY);
    V::select(x.equal(infinity.neg()), infinity, (x + V::splat(0.0)).sqrt())
}
