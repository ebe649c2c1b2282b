//! Dot products of codes and integers with the instructions of ARM, in the 8 lanes of two registers.

use std::arch::aarch64::*;
use std::marker::PhantomData;

use super::dot::{each_byte, Dot};
use crate::vector::dots::Dots;
use crate::vector::F32x4x2;

/// One sum per lane of two registers.
pub(super) struct Pair<M>(PhantomData<M>);

type Register = [uint32x4_t; 2];

impl<M: Dots> Dot for Pair<M> {
    type Numbers = F32x4x2;

    #[inline(always)]
    fn splat(x: i32) -> Register {
        // SAFETY: every processor with the architecture has NEON.
        unsafe { [vdupq_n_u32(x as u32); 2] }
    }

    #[inline(always)]
    fn lowest([first, last]: Register, bits: usize) -> Register {
        if bits == 8 {
            return [first, last];
        }
        let mask = each_byte(u8::MAX >> (8 - bits)) as u32;
        // SAFETY: as above.
        unsafe { [vandq_u32(first, vdupq_n_u32(mask)), vandq_u32(last, vdupq_n_u32(mask))] }
    }

    #[inline(always)]
    fn shifted([first, last]: Register, bits: usize) -> Register {
        // SAFETY: as above.
        unsafe {
            match bits {
                2 => [vshrq_n_u32::<2>(first), vshrq_n_u32::<2>(last)],
                4 => [vshrq_n_u32::<4>(first), vshrq_n_u32::<4>(last)],
                _ => [first, last],
            }
        }
    }

    #[inline(always)]
    fn add(sums: Register, unsigned: Register, signed: Register, is_wide: bool) -> Register {
        let mut all = sums;
        for ((sums, unsigned), signed) in all.iter_mut().zip(unsigned).zip(signed) {
            // SAFETY: as above.
            unsafe {
                let (unsigned, signed) = (vreinterpretq_u8_u32(unsigned), vreinterpretq_s8_u32(signed));
                *sums = vreinterpretq_u32_s32(M::exact(vreinterpretq_s32_u32(*sums), unsigned, signed, is_wide));
            }
        }
        all
    }
}
