//! 32 bytes in two registers of NEON.

use std::arch::aarch64::*;
use std::marker::PhantomData;

use super::vector::{Lanewise, Vector};
use crate::vector::dots::Dots;

/// 32 bytes: the first 16, and the last 16. The instructions `M` multiply them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Bytes<M>([uint8x16_t; 2], PhantomData<M>);

impl<M: Dots> Bytes<M> {
    /// The bytes of integers.
    #[inline(always)]
    pub fn of(integers: [int32x4_t; 2]) -> Self {
        // SAFETY: every processor with the architecture has NEON.
        bytes(integers.map(|integers| unsafe { vreinterpretq_u8_s32(integers) }))
    }

    /// The integers of the lanes.
    #[inline(always)]
    fn integers(self) -> [int32x4_t; 2] {
        // SAFETY: as above.
        self.0.map(|bytes| unsafe { vreinterpretq_s32_u8(bytes) })
    }

    /// The numbers whose bits are in the lanes.
    #[inline(always)]
    fn numbers(self) -> [float32x4_t; 2] {
        // SAFETY: as above.
        self.0.map(|bytes| unsafe { vreinterpretq_f32_u8(bytes) })
    }
}

#[inline(always)]
fn bytes<M>(registers: [uint8x16_t; 2]) -> Bytes<M> {
    Bytes(registers, PhantomData)
}

/// Two vectors of 32 bits, narrowed with saturation: those of the first, then those of the second.
#[inline(always)]
unsafe fn packs_i32(a: int32x4_t, b: int32x4_t) -> int16x8_t {
    // SAFETY: as above.
    unsafe { vqmovn_high_s32(vqmovn_s32(a), b) }
}

#[inline(always)]
unsafe fn packs_i16(a: int16x8_t, b: int16x8_t) -> int8x16_t {
    // SAFETY: as above.
    unsafe { vqmovn_high_s16(vqmovn_s16(a), b) }
}

#[inline(always)]
unsafe fn packus_i16(a: int16x8_t, b: int16x8_t) -> uint8x16_t {
    // SAFETY: as above.
    unsafe { vqmovun_high_s16(vqmovun_s16(a), b) }
}

/// Operations on both registers: the conversion of the operands, the function, and the conversion of its result.
macro_rules! lanewise {
    ($($method:ident: $operand:expr, $function:ident, $result:expr;)*) => {
        impl<M: Dots> Lanewise for Bytes<M> {
            $(
                #[inline(always)]
                fn $method(self, other: Self) -> Self {
                    // SAFETY: as above.
                    bytes([0, 1].map(|i| unsafe {
                        let (x, y) = ($operand(self.0[i]), $operand(other.0[i]));
                        $result($function(x, y))
                    }))
                }
            )*
        }
    };
}

lanewise! {
    xor: |x| x, veorq_u8, |x| x;
    sub_i32: vreinterpretq_s32_u8, vsubq_s32, vreinterpretq_u8_s32;
    mul_i32: vreinterpretq_s32_u8, vmulq_s32, vreinterpretq_u8_s32;
    packs_i32: vreinterpretq_s32_u8, packs_i32, vreinterpretq_u8_s16;
    packs_i16: vreinterpretq_s16_u8, packs_i16, vreinterpretq_u8_s8;
    packus_i16: vreinterpretq_s16_u8, packus_i16, |x| x;
    adds_i16: vreinterpretq_s16_u8, vqaddq_s16, vreinterpretq_u8_s16;
    max_i8: vreinterpretq_s8_u8, vmaxq_s8, vreinterpretq_u8_s8;
    max_u8: |x| x, vmaxq_u8, |x| x;
    min_i8: vreinterpretq_s8_u8, vminq_s8, vreinterpretq_u8_s8;
    min_u8: |x| x, vminq_u8, |x| x;
    unpack_low_i8: |x| x, vzip1q_u8, |x| x;
    unpack_high_i8: |x| x, vzip2q_u8, |x| x;
    unpack_low_i16: vreinterpretq_u16_u8, vzip1q_u16, vreinterpretq_u8_u16;
    unpack_high_i16: vreinterpretq_u16_u8, vzip2q_u16, vreinterpretq_u8_u16;
}

impl<M: Dots> Vector for Bytes<M> {
    const LANES: usize = 8;

    #[inline(always)]
    fn splat(x: i32) -> Self {
        // SAFETY: as above.
        unsafe { Self::of([vdupq_n_s32(x); 2]) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as above; the caller guarantees the access.
        unsafe { bytes([vld1q_u8(from), vld1q_u8(from.add(16))]) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const u8, count: usize) -> Self {
        let mut some = [0; 32];
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(from, some.as_mut_ptr(), count);
            Self::load(some.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            vst1q_u8(to, self.0[0]);
            vst1q_u8(to.add(16), self.0[1]);
        }
    }

    #[inline(always)]
    unsafe fn store_some(self, to: *mut u8, count: usize) {
        // SAFETY: as above. Half a register at a time, then a piece for each bit that is set in `count`.
        unsafe {
            if count >= 32 {
                return self.store(to);
            }
            let [first, last] = self.0.map(|register| vreinterpretq_u64_u8(register));
            let halves = [
                vgetq_lane_u64::<0>(first),
                vgetq_lane_u64::<1>(first),
                vgetq_lane_u64::<0>(last),
                vgetq_lane_u64::<1>(last),
            ];
            for (i, half) in halves.into_iter().enumerate() {
                match count.saturating_sub(8 * i) {
                    0 => return,
                    8.. => to.add(8 * i).cast::<u64>().write_unaligned(half),
                    rest => std::ptr::copy_nonoverlapping(half.to_le_bytes().as_ptr(), to.add(8 * i), rest),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scaled(self, scale: *const f32) -> Self {
        let [first, last] = self.integers();
        // SAFETY: as above.
        unsafe {
            let products = [
                vmulq_f32(vcvtq_f32_s32(first), vld1q_f32(scale)),
                vmulq_f32(vcvtq_f32_s32(last), vld1q_f32(scale.add(4))),
            ];
            bytes(products.map(|products| vreinterpretq_u8_f32(products)))
        }
    }

    #[inline(always)]
    fn at_most(self, most: f32) -> Self {
        // SAFETY: as above. The minimum of NaN and a number is NaN.
        bytes(self.numbers().map(|x| unsafe { vreinterpretq_u8_f32(vminq_f32(x, vdupq_n_f32(most))) }))
    }

    #[inline(always)]
    fn rounded(self) -> Self {
        // SAFETY: as above. NaN, and numbers from 2³¹ on, become the smallest integer.
        Self::of(self.numbers().map(|x| unsafe {
            let fits = vcltq_f32(x, vdupq_n_f32(2f32.powi(31)));
            vbslq_s32(fits, vcvtnq_s32_f32(x), vdupq_n_s32(i32::MIN))
        }))
    }

    #[inline(always)]
    fn in_order(self) -> Self {
        let [first, last] = self.integers();
        // SAFETY: as above.
        unsafe { Self::of([vzip1q_s32(first, last), vzip2q_s32(first, last)]) }
    }

    #[inline(always)]
    fn spread(self) -> Self {
        let [first, last] = self.integers();
        // SAFETY: as above.
        unsafe { Self::of([vuzp1q_s32(first, last), vuzp2q_s32(first, last)]) }
    }

    #[inline(always)]
    fn dot(self, unsigned: Self, signed: Self) -> Self {
        let ([first, last], [x, y]) = (self.integers(), unsigned.0);
        // SAFETY: as above.
        let [a, b] = unsafe { [vreinterpretq_s8_u8(signed.0[0]), vreinterpretq_s8_u8(signed.0[1])] };
        // No closure: it would lack the instructions.
        Self::of([M::exact(first, x, a, true), M::exact(last, y, b, true)])
    }
}
