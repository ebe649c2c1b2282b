//! Sums of four products of bytes in each lane of a register, with the instructions of ARM.

use std::arch::aarch64::*;
use std::arch::asm;

/// Instructions that multiply bytes and sum their products.
///
/// Generic code is `#[inline(always)]`, down from a function with the `#[target_feature]` of the instructions.
pub(crate) trait Dots: Copy {
    /// Whether [`add`](Dots::add) is exact for all unsigned bytes, not only for those up to 127.
    const WIDE: bool;

    /// Adds to each lane its four products of unsigned and signed bytes.
    fn add(sums: int32x4_t, unsigned: uint8x16_t, signed: int8x16_t) -> int32x4_t;

    /// The same, exact for all unsigned bytes if they may be larger than 127: `is_wide`.
    #[inline(always)]
    fn exact(sums: int32x4_t, unsigned: uint8x16_t, signed: int8x16_t, is_wide: bool) -> int32x4_t {
        if Self::WIDE || !is_wide {
            return Self::add(sums, unsigned, signed);
        }
        // SAFETY: every processor with the architecture has NEON.
        unsafe {
            // As a signed byte, the highest bit counts -128, not 128.
            let lower = Self::add(sums, vandq_u8(unsigned, vdupq_n_u8(0x7f)), signed);
            let negated = Self::add(vdupq_n_s32(0), vandq_u8(unsigned, vdupq_n_u8(0x80)), signed);
            vsubq_s32(lower, negated)
        }
    }
}

/// The instruction `USDOT` of the extension `i8mm`: unsigned by signed bytes.
#[derive(Clone, Copy)]
pub(crate) struct Mixed;

/// The instruction `SDOT` of the extension `dotprod`: signed bytes.
#[derive(Clone, Copy)]
pub(crate) struct Signed;

/// Instructions that every processor with the architecture has, for signed bytes.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

/// Adds four products per lane with an instruction that the function has.
macro_rules! add {
    ($instruction:literal) => {
        #[inline(always)]
        fn add(mut sums: int32x4_t, unsigned: uint8x16_t, signed: int8x16_t) -> int32x4_t {
            // SAFETY: by the contract of `Dots`, the caller has the instruction, which changes one register.
            unsafe {
                asm!(
                    concat!($instruction, " {sums:v}.4s, {unsigned:v}.16b, {signed:v}.16b"),
                    sums = inout(vreg) sums,
                    unsigned = in(vreg) unsigned,
                    signed = in(vreg) signed,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            sums
        }
    };
}

impl Dots for Mixed {
    const WIDE: bool = true;

    add!("usdot");
}

impl Dots for Signed {
    const WIDE: bool = false;

    add!("sdot");
}

impl Dots for Plain {
    const WIDE: bool = false;

    #[inline(always)]
    fn add(sums: int32x4_t, unsigned: uint8x16_t, signed: int8x16_t) -> int32x4_t {
        // SAFETY: every processor with the architecture has NEON.
        unsafe {
            let unsigned = vreinterpretq_s8_u8(unsigned);
            let first = vpaddlq_s16(vmull_s8(vget_low_s8(unsigned), vget_low_s8(signed)));
            let last = vpaddlq_s16(vmull_high_s8(unsigned, signed));
            vaddq_s32(sums, vpaddq_s32(first, last))
        }
    }
}
