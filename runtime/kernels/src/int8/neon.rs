//! Dot products of four bytes with the instructions of ARM, with one sum per lane of two registers.

use std::arch::aarch64::*;
use std::arch::asm;
use std::marker::PhantomData;

use super::bytes::Bytes;
use super::codes::SIGN;
use super::dot::Dot;
use super::finish::Finish;
use super::operands::Tile;
use super::rows;
use super::tile::{kernels, tile, Kernel};
use crate::vector::dots::{self, Dots};

/// How registers of bytes are multiplied and summed.
///
/// The instructions are in the order of the program: without `pure`, the compiler keeps it. Otherwise, it would load four
/// bytes of every row first, which leaves too few registers for the sums.
trait Multiply {
    /// Loads four bytes of a row into each lane.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn left(from: *const u8) -> int8x16_t;

    /// Adds to each lane its four products of the bytes of `left` and `right`.
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t;
}

/// The instruction `SUDOT` of the extension `i8mm`: signed by unsigned bytes.
struct Mixed;

/// The instruction `SDOT` of the extension `dotprod`: signed bytes. The kernel subtracts 128 from the unsigned bytes
/// of a row. [`Weights`](super::weights::Weights) add the difference to the start values.
struct Signed;

/// Instructions that every processor with the architecture has. The bytes are signed as those of [`Signed`].
struct Plain;

/// Adds four products per lane with an instruction that the function has.
macro_rules! dot {
    ($instruction:literal, $sums:ident, $left:ident, $right:ident) => {{
        let mut sums = $sums;
        // SAFETY: by the contract of `Dot`, the caller has the instruction set; the instruction changes one register.
        unsafe {
            asm!(
                concat!($instruction, " {sums:v}.4s, {right:v}.16b, {left:v}.4b[0]"),
                sums = inout(vreg) sums,
                right = in(vreg) $right,
                left = in(vreg) $left,
                options(nomem, nostack, preserves_flags)
            );
        }
        sums
    }};
}

impl Multiply for Signed {
    #[inline(always)]
    unsafe fn left(from: *const u8) -> int8x16_t {
        // SAFETY: guaranteed by the caller.
        unsafe { veorq_s8(Mixed::left(from), vdupq_n_s8(SIGN as i8)) }
    }

    #[inline(always)]
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
        dot!("sdot", sums, left, right)
    }
}

impl Multiply for Mixed {
    #[inline(always)]
    unsafe fn left(from: *const u8) -> int8x16_t {
        let left;
        // SAFETY: guaranteed by the caller; the instruction changes one register.
        unsafe {
            asm!(
                "ld1r {{{left:v}.4s}}, [{from}]",
                left = out(vreg) left,
                from = in(reg) from,
                options(readonly, nostack, preserves_flags)
            );
        }
        left
    }

    #[inline(always)]
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
        dot!("sudot", sums, left, right)
    }
}

impl Multiply for Plain {
    #[inline(always)]
    unsafe fn left(from: *const u8) -> int8x16_t {
        // SAFETY: guaranteed by the caller.
        unsafe { Signed::left(from) }
    }

    #[inline(always)]
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
        // SAFETY: every processor with the architecture has NEON.
        dots::Plain::add(sums, unsafe { vreinterpretq_u8_s8(left) }, right)
    }
}

/// One sum per lane of two registers.
struct Pair<M>(PhantomData<M>);

impl<M: Multiply> Dot for Pair<M> {
    const LANES: usize = 8;
    type Sums = [int32x4_t; 2];
    type Left = int8x16_t;
    type Right = [int8x16_t; 2];

    #[inline(always)]
    unsafe fn start(finish: &Finish, column: usize) -> [int32x4_t; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let from = finish.start.as_ptr().add(column);
            [vld1q_s32(from), vld1q_s32(from.add(4))]
        }
    }

    #[inline(always)]
    unsafe fn left(from: *const u8) -> int8x16_t {
        // SAFETY: as above.
        unsafe { M::left(from) }
    }

    #[inline(always)]
    unsafe fn right(from: *const i8) -> [int8x16_t; 2] {
        // SAFETY: as above.
        unsafe { [vld1q_s8(from), vld1q_s8(from.add(16))] }
    }

    #[inline(always)]
    fn add([first, last]: [int32x4_t; 2], left: int8x16_t, right: [int8x16_t; 2]) -> [int32x4_t; 2] {
        [M::dot(first, left, right[0]), M::dot(last, left, right[1])]
    }

    #[inline(always)]
    unsafe fn finish<const R: usize, const V: usize>(sums: &[[[int32x4_t; 2]; V]; R], tile: &Tile) {
        // Any instructions: the registers are not multiplied.
        let sums = sums.map(|sums| sums.map(Bytes::<dots::Plain>::of));
        // SAFETY: guaranteed by the caller.
        unsafe { rows::write_tile(&sums, tile) }
    }
}

#[target_feature(enable = "neon")]
unsafe fn neon<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<Pair<Plain>, ROWS, VECTORS>(t) }
}

#[target_feature(enable = "neon,dotprod")]
unsafe fn dotprod<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<Pair<Signed>, ROWS, VECTORS>(t) }
}

#[target_feature(enable = "neon,i8mm")]
unsafe fn i8mm<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<Pair<Mixed>, ROWS, VECTORS>(t) }
}

/// For 32 registers. The products of a row need some of them.
pub(super) static NEON: &[&[(usize, Kernel)]] = kernels!(neon: 1 [12 6 2 1] 2 [6 3 1]);
/// For 32 registers: 24 with sums, those of the columns, and one or two of a row.
pub(super) static DOTPROD: &[&[(usize, Kernel)]] = kernels!(dotprod: 1 [12 6 2 1] 2 [6 3 1]);
/// The same with the other instruction.
pub(super) static I8MM: &[&[(usize, Kernel)]] = kernels!(i8mm: 1 [12 6 2 1] 2 [6 3 1]);
