//! Every function of [`Unary`] on slices of `f32`, and the vector functions that programs use too.

use super::Unary;
use crate::isa::Isa;
use crate::rewrite::Rewrite;
use crate::vector::{arc, dispatch_isa, map, math, Together, Vector};

/// `out[i] = function(x[i])`; booleans are 0 and 1. [`Unary::BitwiseNot`] is `-1 - x`, as for integers.
///
/// # Panics
/// The slices differ in length.
pub fn unary(isa: Isa, function: Unary, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), out.len());
    // SAFETY: the slices have the same length.
    unsafe { apply_to(isa, function, x.len(), x.as_ptr(), out.as_mut_ptr()) }
}

/// `x[i] = function(x[i])`, like [`unary`].
pub fn unary_in_place(isa: Isa, function: Unary, x: &mut [f32]) {
    let out = x.as_mut_ptr();
    // SAFETY: the function reads and writes the elements of one slice.
    unsafe { apply_to(isa, function, x.len(), out, out) }
}

/// Rewrites each element with `function`, like [`unary`].
pub fn rewrite_unary(isa: Isa, function: Unary, mut x: Rewrite<f32>) {
    let (from, to) = x.pointers();
    // SAFETY: as many elements are at both addresses, which are equal or those of memory that does not overlap.
    unsafe { apply_to(isa, function, x.len(), from, to) }
}

/// `out[i] = function(x[i])` for `len` elements.
///
/// # Safety
/// As for [`map`].
unsafe fn apply_to(isa: Isa, function: Unary, len: usize, x: *const f32, out: *mut f32) {
    dispatch_isa!(isa, (function: Unary = function, len: usize = len, x: *const f32 = x, out: *mut f32 = out), V =>
        // SAFETY: guaranteed by the caller.
        unsafe { apply::<Together<V>>(function, len, x, out) });
}

/// Generates `apply` from a table of vector functions, and of methods of `f64` that are called lane by lane.
///
/// A closure has the instruction set's features only if it is inlined.
macro_rules! functions {
    (vectors { $($vectors:pat => |$x:ident| $function:expr;)* } lanes { $($lanes:pat => $method:ident;)* }) => {
        /// # Safety
        /// As for [`map`].
        #[inline(always)]
        unsafe fn apply<V: Vector>(function: Unary, len: usize, x: *const f32, out: *mut f32) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                match function {
                    $($vectors => map::<V>(len, x, out, #[inline(always)] |$x: V| $function),)*
                    $($lanes => map::<f32>(len, x, out, |x| f64::from(x).$method() as f32),)*
                }
            }
        }
    };
}

functions! {
    vectors {
        Unary::Abs => |x| x.abs();
        Unary::Neg => |x| x.neg();
        Unary::Sign => |x| sign(x);
        Unary::Ceil => |x| x.ceil();
        Unary::Floor => |x| x.floor();
        Unary::Round => |x| x.round();
        Unary::Sqrt => |x| x.sqrt();
        Unary::Reciprocal => |x| V::splat(1.0) / x;
        Unary::Square => |x| x * x;
        Unary::Exp => |x| math::exp(x);
        Unary::Log => |x| math::log(x);
        Unary::Sin => |x| math::sin(x);
        Unary::Cos => |x| math::cos(x);
        Unary::Asin => |x| arc::asin(x);
        Unary::Acos => |x| arc::acos(x);
        Unary::Atan => |x| arc::atan(x);
        Unary::Sinh => |x| arc::sinh(x);
        Unary::Cosh => |x| arc::cosh(x);
        Unary::Tanh => |x| math::tanh(x);
        Unary::Erf => |x| math::erf(x);
        Unary::Sigmoid => |x| math::sigmoid(x);
        Unary::Relu => |x| relu(x);
        Unary::Softplus => |x| math::softplus(x);
        Unary::Softsign => |x| x / (V::splat(1.0) + x.abs());
        Unary::HardSwish => |x| math::hard_swish(x);
        Unary::Mish => |x| math::mish(x);
        Unary::Gelu => |x| math::gelu(x);
        Unary::GeluTanh => |x| math::gelu_tanh(x);
        Unary::Swish { alpha: 1.0 } => |x| math::silu(x);
        Unary::Swish { alpha } => |x| math::swish(x, alpha);
        Unary::LeakyRelu { alpha } => |x| leaky_relu(x, alpha);
        Unary::Elu { alpha } => |x| math::elu(x, alpha);
        Unary::Selu { alpha, gamma } => |x| math::elu(x, alpha) * V::splat(gamma);
        Unary::Celu { alpha } => |x| celu(x, alpha);
        Unary::HardSigmoid { alpha, beta } => |x| math::hard_sigmoid(x, alpha, beta);
        Unary::ThresholdedRelu { alpha } => |x| V::select(V::splat(alpha).less(x), x, V::splat(0.0));
        Unary::Shrink { bias, lambd } => |x| shrink(x, bias, lambd);
        Unary::Clip { min, max } => |x| clip(x, min, max);
        Unary::IsNaN => |x| truth::<V>(x.is_nan());
        Unary::IsInf { negative, positive } => |x| V::select(x.less(V::splat(0.0)), infinite(x, negative), infinite(x, positive));
        Unary::Not => |x| truth::<V>(x.equal(V::splat(0.0)));
        Unary::BitwiseNot => |x| V::splat(-1.0) - x;
    }
    lanes {
        Unary::Tan => tan;
        Unary::Asinh => asinh;
        Unary::Acosh => acosh;
        Unary::Atanh => atanh;
    }
}

/// 1 where the mask is set, else 0.
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
    x.within([min, max])
}

/// The smaller one; NaN if either is NaN.
#[inline(always)]
pub(super) fn min<V: Vector>(x: V, y: V) -> V {
    V::select(x.is_nan(), x, x.lesser(y))
}

/// The larger one; NaN if either is NaN.
#[inline(always)]
pub(super) fn max<V: Vector>(x: V, y: V) -> V {
    V::select(x.is_nan(), x, x.greater(y))
}

/// The remainder with the sign of `y`. It is exact for numbers that `f32` can represent, until it is rounded to `f32`.
pub(crate) fn floor_mod(x: f64, y: f64) -> f64 {
    let remainder = x % y;
    if remainder == 0.0 {
        remainder.copysign(y)
    } else if (remainder < 0.0) != (y < 0.0) {
        remainder + y
    } else {
        remainder
    }
}

/// Defines functions that rewrite the first of two slices, from functions of two elements.
macro_rules! in_place {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $y:ident| $function:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) fn $name(_: Isa, x: &mut [f32], y: &[f32]) {
                for (x, &$y) in x.iter_mut().zip(y) {
                    let $x = *x;
                    *x = $function;
                }
            }
        )*
    };
}

in_place! {
    /// `x[i] = floor_mod(x[i], y[i])`
    floor_mods: |x, y| floor_mod(x.into(), y.into()) as f32;
    /// `x[i] = fmod(x[i], y[i])`
    remainders: |x, y| x % y;
    /// `x[i] = y[i]·x[i]` where `x[i] < 0`.
    prelus: |x, y| if x < 0.0 { x * y } else { x };
}
