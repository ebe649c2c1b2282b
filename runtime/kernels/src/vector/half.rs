//! 16-bit numbers, converted to and from `f32`.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::{dispatch_isa, Vector};
use crate::isa::Isa;

/// A number that vectors load as `f32`.
pub(crate) trait Stored: bytemuck::Pod + Send {
    /// Loads `V::LANES` numbers; the conversion is exact.
    ///
    /// # Safety
    /// They can be read at `from`.
    unsafe fn load<V: Vector>(from: *const Self) -> V;
}

/// A 16-bit number.
pub trait Half: bytemuck::Pod + Send {
    /// Converts with rounding to nearest.
    ///
    /// # Panics
    /// The lengths differ.
    fn narrow(from: &[f32], to: &mut [Self]);

    /// Converts exactly.
    ///
    /// # Panics
    /// The lengths differ.
    fn widen(isa: Isa, from: &[Self], to: &mut [f32]);
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const f32) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(from) }
    }
}

macro_rules! half {
    ($($half:ident $load:ident)*) => {
        $(impl Stored for $half {
            #[inline(always)]
            unsafe fn load<V: Vector>(from: *const $half) -> V {
                // SAFETY: guaranteed by the caller.
                unsafe { V::$load(from) }
            }
        }

        impl Half for $half {
            fn narrow(from: &[f32], to: &mut [$half]) {
                to.convert_from_f32_slice(from);
            }

            fn widen(isa: Isa, from: &[$half], to: &mut [f32]) {
                assert_eq!(from.len(), to.len());
                dispatch_isa!(isa, (from: &[$half] = from, to: &mut [f32] = to), V => widen::<V, $half>(from, to));
            }
        })*
    };
}

half! { f16 load_f16 bf16 load_bf16 }

/// See [`Half::widen`].
#[inline(always)]
fn widen<V: Vector, T: Stored>(from: &[T], to: &mut [f32]) {
    let whole = from.len() - from.len() % V::LANES;
    for i in (0..whole).step_by(V::LANES) {
        // SAFETY: both slices have the same length, with a whole vector at `i`.
        unsafe { T::load::<V>(from.as_ptr().add(i)).store(to.as_mut_ptr().add(i)) };
    }
    for (from, to) in from[whole..].iter().zip(&mut to[whole..]) {
        // SAFETY: a vector with one lane is one number.
        *to = unsafe { T::load::<f32>(from) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::filled;

    fn check<T: Half + Into<f32>>(of_bits: impl Fn(u16) -> T) {
        let all: Vec<T> = (0..=u16::MAX).map(of_bits).collect();
        for isa in Isa::available() {
            for skipped in 0..40 {
                let from = &all[skipped..];
                let mut wide = filled(0.0, from.len());
                T::widen(isa, from, &mut wide);
                let is_same = |(&half, &wide): (&T, &f32)| {
                    let expected: f32 = half.into();
                    expected.to_bits() == wide.to_bits() || expected.is_nan() && wide.is_nan()
                };
                assert!(from.iter().zip(&wide).all(is_same), "{isa:?} from {skipped} on");
            }
        }
        let mut wide = filled(0.0, all.len());
        T::widen(Isa::get(), &all, &mut wide);
        let mut narrow = all.clone();
        T::narrow(&wide, &mut narrow);
        for (half, back) in all.iter().zip(narrow) {
            let [half, back]: [f32; 2] = [*half, back].map(Into::into);
            assert!(half.to_bits() == back.to_bits() || half.is_nan() && back.is_nan(), "{half}");
        }
    }

    #[test]
    fn every_half_is_converted_exactly_and_back() {
        check(f16::from_bits);
        check(bf16::from_bits);
    }
}
