//! 16-bit numbers, converted to and from `f32`.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
#[cfg(target_arch = "aarch64")]
use std::arch::{aarch64::*, asm};

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

#[cfg(target_arch = "aarch64")]
use super::F32x4x2;
use super::{dispatch_isa, Vector};
use crate::isa::Isa;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;
use crate::lane_loops::per_isa;

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
    /// Converts with rounding to nearest, ties to even. NaN stays NaN.
    ///
    /// # Panics
    /// The lengths differ.
    fn narrow(isa: Isa, from: &[f32], to: &mut [Self]);

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
    ($($half:ident $load:ident $narrow:ident)*) => {
        $(impl Stored for $half {
            #[inline(always)]
            unsafe fn load<V: Vector>(from: *const $half) -> V {
                // SAFETY: guaranteed by the caller.
                unsafe { V::$load(from) }
            }
        }

        impl Half for $half {
            fn narrow(isa: Isa, from: &[f32], to: &mut [$half]) {
                assert_eq!(from.len(), to.len());
                $narrow(isa, from, to);
            }

            fn widen(isa: Isa, from: &[$half], to: &mut [f32]) {
                assert_eq!(from.len(), to.len());
                dispatch_isa!(isa, (from: &[$half] = from, to: &mut [f32] = to), V => widen::<V, $half>(from, to));
            }
        })*
    };
}

half! { f16 load_f16 narrow_f16 bf16 load_bf16 narrow_bf16 }

/// See [`Half::narrow`].
fn narrow_f16(isa: Isa, from: &[f32], to: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa.level(), Level::Avx2 | Level::Avx512) {
        // SAFETY: both levels have F16C, and `isa` proves that the processor has its level.
        return unsafe { narrow_f16c(from, to) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa.level() == Level::Neon {
        return narrow_f16_neon(from, to);
    }
    let _ = isa;
    to.convert_from_f32_slice(from);
}

/// See [`Half::narrow`]. `half` does the same, with a call for each eight numbers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
fn narrow_f16c(from: &[f32], to: &mut [f16]) {
    const LANES: usize = 8;
    let whole = from.len() - from.len() % LANES;
    for i in (0..whole).step_by(LANES) {
        // SAFETY: both slices have the same length, with eight numbers at `i`.
        unsafe {
            let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr().add(i)));
            _mm_storeu_si128(to.as_mut_ptr().add(i).cast(), rounded);
        }
    }
    to[whole..].convert_from_f32_slice(&from[whole..]);
}

/// The same with instructions that every processor with the architecture has.
#[cfg(target_arch = "aarch64")]
fn narrow_f16_neon(from: &[f32], to: &mut [f16]) {
    let (whole, rest) = from.as_chunks();
    let (halves, last) = to.as_chunks_mut();
    whole.iter().zip(halves).for_each(|(from, to)| *to = narrowed(from));
    last.convert_from_f32_slice(rest);
}

/// Eight numbers, rounded.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn narrowed(from: &[f32; 8]) -> [f16; 8] {
    let mut to = [f16::ZERO; 8];
    // SAFETY: both arrays have eight numbers; the instructions change one register.
    unsafe {
        let F32x4x2(first, last) = F32x4x2::load(from.as_ptr());
        let halves: uint16x8_t;
        asm!(
            "fcvtn {halves:v}.4h, {first:v}.4s",
            "fcvtn2 {halves:v}.8h, {last:v}.4s",
            halves = out(vreg) halves,
            first = in(vreg) first,
            last = in(vreg) last,
            options(pure, nomem, nostack, preserves_flags)
        );
        vst1q_u16(to.as_mut_ptr().cast(), halves);
    }
    to
}

per_isa! {
    fn narrow_bf16(from: &[f32], to: &mut [bf16]) where FMA {
        for (from, to) in from.iter().zip(to) {
            let bits = from.to_bits();
            let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
            let rounded = if from.is_nan() { bits | 0x40_0000 } else { nearest };
            *to = bf16::from_bits((rounded >> 16) as u16);
        }
    }
}

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
        for isa in Isa::available() {
            let mut narrow = all.clone();
            T::narrow(isa, &wide, &mut narrow);
            for (half, back) in all.iter().zip(narrow) {
                let [half, back]: [f32; 2] = [*half, back].map(Into::into);
                assert!(half.to_bits() == back.to_bits() || half.is_nan() && back.is_nan(), "{half}");
            }
        }
    }

    #[test]
    fn every_half_is_converted_exactly_and_back() {
        check(f16::from_bits);
        check(bf16::from_bits);
    }

    /// Halfway cases, numbers next to them, numbers that overflow and numbers that vanish.
    #[test]
    fn other_numbers_are_rounded_to_nearest() {
        let middles = (0..1u32 << 16).flat_map(|high| [0x7fff, 0x8000, 0x8001].map(|low| high << 16 | low));
        let of_f16 = (0..=u16::MAX).map(f16::from_bits).filter(|x| x.is_finite()).flat_map(|x| {
            let between = f32::from(x) * (1.0 + 2f32.powi(-11));
            [between, between.next_up(), between.next_down()].map(f32::to_bits)
        });
        let all: Vec<f32> = middles.chain(of_f16).map(f32::from_bits).collect();
        for isa in Isa::available() {
            let (mut found, mut other) = (vec![f16::ZERO; all.len()], vec![bf16::ZERO; all.len()]);
            f16::narrow(isa, &all, &mut found);
            bf16::narrow(isa, &all, &mut other);
            for (x, (half, brain)) in all.iter().zip(found.iter().zip(&other)) {
                let (a, b) = (f16::from_f32(*x), bf16::from_f32(*x));
                assert!(a.to_bits() == half.to_bits() || a.is_nan() && half.is_nan(), "{isa:?}: {x} as f16");
                assert!(b.to_bits() == brain.to_bits() || b.is_nan() && brain.is_nan(), "{isa:?}: {x} as bf16");
            }
        }
    }
}
