//! Every function of [`Unary`] on slices of `f32`, and the vector forms that programs share with it.

use super::Unary;
use crate::isa::Isa;
use crate::vector::{dispatch_isa, map, math, Vector};

/// `out[i] = function(x[i])`; truth values are 0 and 1. [`Unary::BitwiseNot`] is `-1 - x`, as it is of
/// integers.
///
/// # Panics
/// The slices differ in length.
pub fn unary(isa: Isa, function: Unary, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), out.len());
    dispatch_isa!(isa, (function: Unary = function, x: &[f32] = x, out: &mut [f32] = out), V =>
        // SAFETY: the slices are of one length.
        unsafe { apply::<V>(function, x.len(), x.as_ptr(), out.as_mut_ptr()) });
}

/// `x[i] = function(x[i])`, as [`unary`].
pub fn unary_in_place(isa: Isa, function: Unary, x: &mut [f32]) {
    dispatch_isa!(isa, (function: Unary = function, x: &mut [f32] = x), V =>
        // SAFETY: read and written are the same elements.
        unsafe { apply::<V>(function, x.len(), x.as_ptr(), x.as_mut_ptr()) });
}

/// # Safety
/// As [`map`].
#[inline(always)]
unsafe fn apply<V: Vector>(function: Unary, len: usize, x: *const f32, out: *mut f32) {
    macro_rules! vectors {
        ($function:expr) => {
            // SAFETY: the caller's promise.
            unsafe { map::<V>(len, x, out, $function) }
        };
    }
    macro_rules! lanes {
        ($method:ident) => {
            // SAFETY: the caller's promise.
            unsafe { map::<f32>(len, x, out, |x| f64::from(x).$method() as f32) }
        };
    }
    match function {
        Unary::Abs => vectors!(|x: V| x.abs()),
        Unary::Neg => vectors!(|x: V| x.neg()),
        Unary::Sign => vectors!(sign::<V>),
        Unary::Ceil => vectors!(|x: V| x.ceil()),
        Unary::Floor => vectors!(|x: V| x.floor()),
        Unary::Round => vectors!(|x: V| x.round()),
        Unary::Sqrt => vectors!(|x: V| x.sqrt()),
        Unary::Reciprocal => vectors!(|x: V| V::splat(1.0) / x),
        Unary::Square => vectors!(|x: V| x * x),
        Unary::Exp => vectors!(math::exp::<V>),
        Unary::Log => vectors!(math::log::<V>),
        Unary::Sin => vectors!(math::sin::<V>),
        Unary::Cos => vectors!(math::cos::<V>),
        Unary::Tan => lanes!(tan),
        Unary::Asin => lanes!(asin),
        Unary::Acos => lanes!(acos),
        Unary::Atan => lanes!(atan),
        Unary::Sinh => lanes!(sinh),
        Unary::Cosh => lanes!(cosh),
        Unary::Tanh => vectors!(math::tanh::<V>),
        Unary::Asinh => lanes!(asinh),
        Unary::Acosh => lanes!(acosh),
        Unary::Atanh => lanes!(atanh),
        Unary::Erf => vectors!(math::erf::<V>),
        Unary::Sigmoid => vectors!(math::sigmoid::<V>),
        Unary::Relu => vectors!(relu::<V>),
        Unary::Softplus => vectors!(math::softplus::<V>),
        Unary::Softsign => vectors!(|x: V| x / (V::splat(1.0) + x.abs())),
        Unary::HardSwish => vectors!(math::hard_swish::<V>),
        Unary::Mish => vectors!(math::mish::<V>),
        Unary::Gelu => vectors!(math::gelu::<V>),
        Unary::GeluTanh => vectors!(math::gelu_tanh::<V>),
        Unary::Swish { alpha } => vectors!(|x: V| math::swish(x, alpha)),
        Unary::LeakyRelu { alpha } => vectors!(|x: V| leaky_relu(x, alpha)),
        Unary::Elu { alpha } => vectors!(|x: V| math::elu(x, alpha)),
        Unary::Selu { alpha, gamma } => vectors!(|x: V| math::elu(x, alpha) * V::splat(gamma)),
        Unary::Celu { alpha } => vectors!(|x: V| celu(x, alpha)),
        Unary::HardSigmoid { alpha, beta } => vectors!(|x: V| math::hard_sigmoid(x, alpha, beta)),
        Unary::ThresholdedRelu { alpha } => {
            vectors!(|x: V| V::select(V::splat(alpha).less(x), x, V::splat(0.0)))
        }
        Unary::Shrink { bias, lambd } => vectors!(|x: V| shrink(x, bias, lambd)),
        Unary::Clip { min, max } => vectors!(|x: V| clip(x, min, max)),
        Unary::IsNaN => vectors!(|x: V| truth::<V>(x.is_nan())),
        Unary::IsInf { negative, positive } => {
            vectors!(|x: V| V::select(x.less(V::splat(0.0)), infinite(x, negative), infinite(x, positive)))
        }
        Unary::Not => vectors!(|x: V| truth::<V>(x.equal(V::splat(0.0)))),
        Unary::BitwiseNot => vectors!(|x: V| V::splat(-1.0) - x),
    }
}

/// 1 where the mask is true, else 0.
#[inline(always)]
pub(super) fn truth<V: Vector>(mask: V::Mask) -> V {
    V::select(mask, V::splat(1.0), V::splat(0.0))
}

#[inline(always)]
fn infinite<V: Vector>(x: V, counts: bool) -> V {
    if counts {
        truth(x.abs().equal(V::splat(f32::INFINITY)))
    } else {
        V::splat(0.0)
    }
}

#[inline(always)]
fn sign<V: Vector>(x: V) -> V {
    let zero = V::splat(0.0);
    let positive = V::select(zero.less(x), V::splat(1.0), x);
    V::select(x.less(zero), V::splat(-1.0), positive)
}

#[inline(always)]
pub(super) fn relu<V: Vector>(x: V) -> V {
    V::splat(0.0).greater(x)
}

#[inline(always)]
pub(super) fn leaky_relu<V: Vector>(x: V, alpha: f32) -> V {
    V::select(x.less(V::splat(0.0)), x * V::splat(alpha), x)
}

#[inline(always)]
fn celu<V: Vector>(x: V, alpha: f32) -> V {
    let zero = V::splat(0.0);
    let negative = V::splat(alpha) * math::elu(x / V::splat(alpha), 1.0);
    V::select(x.less(zero), negative, x)
}

#[inline(always)]
fn shrink<V: Vector>(x: V, bias: f32, lambd: f32) -> V {
    let above = V::select(V::splat(lambd).less(x), x - V::splat(bias), V::splat(0.0));
    let y = V::select(x.less(V::splat(-lambd)), x + V::splat(bias), above);
    V::select(x.is_nan(), x, y)
}

#[inline(always)]
pub(super) fn clip<V: Vector>(x: V, min: f32, max: f32) -> V {
    V::splat(max).lesser(V::splat(min).greater(x))
}

/// The lesser, NaN when either is NaN.
#[inline(always)]
pub(super) fn min<V: Vector>(x: V, y: V) -> V {
    V::select(x.is_nan(), x, x.lesser(y))
}

/// The greater, NaN when either is NaN.
#[inline(always)]
pub(super) fn max<V: Vector>(x: V, y: V) -> V {
    V::select(x.is_nan(), x, x.greater(y))
}

/// `xʸ` in double precision, rounded once.
pub(super) fn power(x: f32, y: f32) -> f32 {
    let wide = f64::from(x);
    let result = match y {
        2.0 => wide * wide,
        3.0 => wide * wide * wide,
        0.5 if x > 0.0 => wide.sqrt(),
        _ => wide.powf(f64::from(y)),
    };
    result as f32
}

/// The remainder with the sign of `y`.
pub(super) fn floor_mod(x: f32, y: f32) -> f32 {
    let remainder = x % y;
    if remainder == 0.0 {
        remainder.copysign(y)
    } else if (remainder < 0.0) != (y < 0.0) {
        remainder + y
    } else {
        remainder
    }
}
