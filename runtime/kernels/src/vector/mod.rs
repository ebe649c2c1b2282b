//! Vectors of `f32`, the functions on them, and the same functions over slices.
//!
//! The functions ([`math`]) are written once, generic over [`Vector`]; a vector of one lane is plain `f32`. All use only
//! correctly rounded operations, so every instruction set gives the same bits (NaN payloads aside).

pub(crate) mod arc;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod math;
mod pow;
mod scalar;
mod segments;
mod slices;

#[cfg(test)]
mod tests;

use half::{bf16, f16};

pub(crate) use pow::short as short_power;
pub(crate) use slices::map;
pub use slices::*;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::F32x8;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::F32x16;

/// A vector of `f32` in a register.
///
/// Code that is generic over a vector is `#[inline(always)]` down from a function with the vector's
/// `#[target_feature]`. Such a function runs only for an [`Isa`](crate::isa::Isa) of its level, which proves that the
/// processor has the features. That is what makes the intrinsics inside the methods safe to execute.
pub(crate) trait Vector:
    Copy
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// The number of lanes.
    const LANES: usize;
    /// One truth value a lane.
    type Mask: Copy;

    /// `value` in every lane.
    fn splat(value: f32) -> Self;

    /// # Safety
    /// `LANES` elements can be read at `from`.
    unsafe fn load(from: *const f32) -> Self;

    /// Numbers of 16 bits, exactly.
    ///
    /// # Safety
    /// `LANES` of them can be read at `from`.
    unsafe fn load_f16(from: *const f16) -> Self;

    /// Numbers of 16 bits, exactly.
    ///
    /// # Safety
    /// `LANES` of them can be read at `from`.
    unsafe fn load_bf16(from: *const bf16) -> Self;

    /// The first `count` elements, 0 in the lanes beyond.
    ///
    /// # Safety
    /// `count` elements can be read at `from`.
    unsafe fn load_first(from: *const f32, count: usize) -> Self;

    /// The first `count` elements, `beyond` in the lanes after them.
    ///
    /// # Safety
    /// `count` elements can be read at `from`.
    unsafe fn load_padded(from: *const f32, count: usize, beyond: f32) -> Self;

    /// # Safety
    /// `LANES` elements can be written at `to`.
    unsafe fn store(self, to: *mut f32);

    /// Writes the first `count` lanes.
    ///
    /// # Safety
    /// `count` elements can be written at `to`.
    unsafe fn store_first(self, to: *mut f32, count: usize);

    /// `self · a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// `b - self · a`, rounded once.
    fn neg_mul_add(self, a: Self, b: Self) -> Self;

    /// `self` if `self < other`, else `other` (also when either is NaN).
    fn lesser(self, other: Self) -> Self;

    /// `self` if `self > other`, else `other` (also when either is NaN).
    fn greater(self, other: Self) -> Self;

    /// `limits[0]` or `limits[1]` where it is beyond them; NaN stays NaN.
    #[inline(always)]
    fn within(self, limits: [f32; 2]) -> Self {
        Self::splat(limits[1]).lesser(Self::splat(limits[0]).greater(self))
    }

    /// The magnitude.
    fn abs(self) -> Self;

    /// The sign inverted.
    fn neg(self) -> Self;

    /// The magnitude of `self` with the sign of `sign`.
    fn copy_sign(self, sign: Self) -> Self;

    /// The square root.
    fn sqrt(self) -> Self;

    /// Rounds down.
    fn floor(self) -> Self;

    /// Rounds up.
    fn ceil(self) -> Self;

    /// Rounds to the nearest integer, ties to even.
    fn round(self) -> Self;

    /// `self · 2ⁿ` rounded once, for integers `n` in -252 ..= 254.
    fn times_power_of_two(self, n: Self) -> Self;

    /// As [`Vector::times_power_of_two`], for integers `n` in -126 ..= 127.
    fn times_normal_power_of_two(self, n: Self) -> Self;

    /// `(m, e)` with `self = m · 2ᵉ` and `m` in `[2/3, 4/3)`, for positive normal numbers.
    fn split(self) -> (Self, Self);

    /// The element of `table` that bits 22 to 24 of the lane choose: those of two neighbors in an octave, and of four
    /// octaves, one after the other.
    fn pick(self, table: &[f32; 8]) -> Self;

    /// `1 / self` of numbers from 1 to 2, correctly rounded; ½ of the last number before 2.
    #[inline(always)]
    fn reciprocal_of_mantissa(self) -> Self {
        let is_last = self.equal(Self::splat(2f32.next_down()));
        Self::select(is_last, Self::splat(0.5), Self::splat(1.0) / self)
    }

    /// `self < other`
    fn less(self, other: Self) -> Self::Mask;

    /// `self ≤ other`
    fn less_or_equal(self, other: Self) -> Self::Mask;

    /// `self = other`
    fn equal(self, other: Self) -> Self::Mask;

    /// Where the lane is NaN.
    fn is_nan(self) -> Self::Mask;

    /// `yes` where the mask is true, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Whether any lane is true.
    fn any(mask: Self::Mask) -> bool;

    /// The sum of the lanes, joined pairwise.
    fn sum(self) -> f32;

    /// The largest lane, where none is NaN.
    fn largest(self) -> f32;

    /// `function` of each lane, one after the other.
    #[inline(always)]
    fn each_lane(self, function: impl Fn(f32) -> f32) -> Self {
        let mut lanes = [0.0; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe {
            self.store(lanes.as_mut_ptr());
            lanes[..Self::LANES].iter_mut().for_each(|lane| *lane = function(*lane));
            Self::load(lanes.as_ptr())
        }
    }
}

/// Calls `$body` with `$V` standing for the vector type of an instruction set, inside a function that the instruction set's
/// features are enabled for. `$body` sees the arguments `$name: $type` only.
macro_rules! dispatch_isa {
    ($isa:expr, ($($name:ident: $type:ty = $value:expr),* $(,)?), $V:ident => $body:expr) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
        fn avx512($($name: $type),*) {
            type $V = $crate::vector::F32x16;
            $body
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2($($name: $type),*) {
            type $V = $crate::vector::F32x8;
            $body
        }
        fn scalar($($name: $type),*) {
            type $V = f32;
            $body
        }
        match $crate::isa::Isa::level($isa) {
            // SAFETY: the `Isa` proves that the processor has its level.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx512 => unsafe { avx512($($value),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx2 => unsafe { avx2($($value),*) },
            _ => scalar($($value),*),
        }
    }};
}
pub(crate) use dispatch_isa;
