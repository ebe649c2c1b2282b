//! The functions of [`super::math`] on slices.

use super::{dispatch_isa, math, pow::pow, Together, Vector};
use crate::isa::Isa;

/// `out[i] = function(x[i])`. `x` and `out` are equal or do not overlap.
///
/// # Safety
/// `len` elements can be read at `x` and written at `out`.
#[inline(always)]
pub(crate) unsafe fn map<V: Vector>(len: usize, x: *const f32, out: *mut f32, function: impl Fn(V) -> V) {
    let mut i = 0;
    while i < len {
        let count = (len - i).min(V::LANES);
        let (from, to, is_full) = (x.wrapping_add(i), out.wrapping_add(i), count == V::LANES);
        // SAFETY: every access lies below `len`; a block is loaded before it is stored.
        unsafe {
            let y = function(if is_full { V::load(from) } else { V::load_first(from, count) });
            match is_full {
                true => y.store(to),
                false => y.store_first(to, count),
            }
        }
        i += count;
    }
}

/// Sets `x[i]` to `x[i]` to the power `y[i]`, with the special cases of C's `pow`.
///
/// # Panics
/// The slices differ in length.
pub fn pow_in_place(isa: Isa, x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len());
    dispatch_isa!(isa, (x: &mut [f32] = x, y: &[f32] = y), V => {
        for (x, y) in x.chunks_mut(V::LANES).zip(y.chunks(V::LANES)) {
            // SAFETY: the chunks have the same length.
            unsafe {
                let power = pow(V::load_first(x.as_ptr(), x.len()), V::load_first(y.as_ptr(), x.len()));
                power.store_first(x.as_mut_ptr(), x.len());
            }
        }
    });
}

macro_rules! slices {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Panics
            /// The slices differ in length.
            pub fn $name(isa: Isa, x: &[f32], out: &mut [f32]) {
                assert_eq!(x.len(), out.len());
                dispatch_isa!(isa, (x: &[f32] = x, out: &mut [f32] = out), V =>
                    // SAFETY: the slices have the same length.
                    unsafe { map::<Together<V>>(x.len(), x.as_ptr(), out.as_mut_ptr(), |x| math::$name(x)) });
            }

            $(#[$doc])*
            pub fn $in_place(isa: Isa, x: &mut [f32]) {
                dispatch_isa!(isa, (x: &mut [f32] = x), V =>
                {
                    let (len, to) = (x.len(), x.as_mut_ptr());
                    // SAFETY: the function reads and writes the same elements.
                    unsafe { map::<Together<V>>(len, to, to, |x| math::$name(x)) }
                });
            }
        )*
    };
}

slices! {
    /// `eˣ` of every element.
    exp, exp_in_place;
    /// The natural logarithm of every element.
    log, log_in_place;
    /// The sine of every element.
    sin, sin_in_place;
    /// The cosine of every element.
    cos, cos_in_place;
    /// The hyperbolic tangent of every element.
    tanh, tanh_in_place;
    /// `1 / (1 + e⁻ˣ)` of every element.
    sigmoid, sigmoid_in_place;
    /// The error function of every element.
    erf, erf_in_place;
    /// `ln(1 + eˣ)` of every element.
    softplus, softplus_in_place;
    /// `x/2 · (1 + erf(x/√2))` of every element.
    gelu, gelu_in_place;
    /// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))` of every element.
    gelu_tanh, gelu_tanh_in_place;
    /// `x · tanh(softplus(x))` of every element.
    mish, mish_in_place;
}
