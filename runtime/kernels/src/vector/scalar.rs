//! The vector with one lane: the reference for the lanes of the other vectors.

use half::{bf16, f16};

use super::Vector;

impl Vector for f32 {
    const LANES: usize = 1;
    type Mask = bool;

    #[inline(always)]
    fn splat(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const f16) -> f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { *from }.to_f32()
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const bf16) -> f32 {
        // SAFETY: guaranteed by the caller. The bits of NaN stay too, as in the other vectors.
        f32::from_bits(u32::from(unsafe { *from }.to_bits()) << 16)
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> f32 {
        // SAFETY: guaranteed by the caller.
        if count > 0 {
            unsafe { *from }
        } else {
            0.0
        }
    }

    #[inline(always)]
    unsafe fn load_padded(from: *const f32, count: usize, beyond: f32) -> f32 {
        // SAFETY: guaranteed by the caller.
        if count > 0 {
            unsafe { *from }
        } else {
            beyond
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { *to = self }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        if count > 0 {
            // SAFETY: guaranteed by the caller.
            unsafe { *to = self }
        }
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32) -> f32 {
        f32::mul_add(self, a, b)
    }

    #[inline(always)]
    fn neg_mul_add(self, a: f32, b: f32) -> f32 {
        f32::mul_add(-self, a, b)
    }

    #[inline(always)]
    fn lesser(self, other: f32) -> f32 {
        if self < other {
            self
        } else {
            other
        }
    }

    #[inline(always)]
    fn greater(self, other: f32) -> f32 {
        if self > other {
            self
        } else {
            other
        }
    }

    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }

    #[inline(always)]
    fn neg(self) -> f32 {
        -self
    }

    #[inline(always)]
    fn copy_sign(self, sign: f32) -> f32 {
        f32::copysign(self, sign)
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn floor(self) -> f32 {
        f32::floor(self)
    }

    #[inline(always)]
    fn ceil(self) -> f32 {
        f32::ceil(self)
    }

    #[inline(always)]
    fn round(self) -> f32 {
        f32::round_ties_even(self)
    }

    #[inline(always)]
    fn times_power_of_two(self, n: f32) -> f32 {
        // In two steps: the first one is exact, and only the second one rounds a subnormal result.
        let n = n as i32;
        let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
        self * power(n >> 1) * power(n - (n >> 1))
    }

    #[inline(always)]
    fn times_normal_power_of_two(self, n: f32) -> f32 {
        self * f32::from_bits(((n as i32 + 127) << 23) as u32)
    }

    #[inline(always)]
    fn split(self) -> (f32, f32) {
        const TWO_THIRDS: i32 = 0x3f2a_aaab;
        let bits = self.to_bits() as i32;
        let exponent = bits.wrapping_sub(TWO_THIRDS) >> 23;
        (f32::from_bits(bits.wrapping_sub(exponent << 23) as u32), exponent as f32)
    }

    #[inline(always)]
    fn pick(self, table: &[f32; 8]) -> f32 {
        table[(self.to_bits() >> 22) as usize % 8]
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        self
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        self
    }

    #[inline(always)]
    fn less(self, other: f32) -> bool {
        self < other
    }

    #[inline(always)]
    fn less_or_equal(self, other: f32) -> bool {
        self <= other
    }

    #[inline(always)]
    fn equal(self, other: f32) -> bool {
        self == other
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }

    #[inline(always)]
    fn select(mask: bool, yes: f32, no: f32) -> f32 {
        if mask {
            yes
        } else {
            no
        }
    }

    #[inline(always)]
    fn any(mask: bool) -> bool {
        mask
    }
}
