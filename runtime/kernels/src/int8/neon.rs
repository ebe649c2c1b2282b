//! Dot products of four bytes with the instructions of ARM, with one sum per lane of two registers.

use std::arch::aarch64::*;
use std::arch::asm;
use std::marker::PhantomData;

use super::codes::SIGN;
use super::dot::Dot;
use super::finish::Finish;
use super::operands::Tile;
use super::tile::{kernels, tile, Kernel};

/// How registers of bytes are multiplied and summed.
trait Multiply {
    /// Prepares four bytes of a row.
    fn left(bytes: i32) -> int8x16_t;

    /// Adds to each lane its four products of the first bytes of `left` and those of `right`.
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t;
}

/// The instruction `SUDOT` of the extension `i8mm`: signed by unsigned bytes.
struct Mixed;

/// The instruction `SDOT` of the extension `dotprod`: signed bytes. The unsigned bytes of a row are converted to signed
/// ones, 128 less. [`Weights`](super::weights::Weights) add the sum of the differences to the start values.
struct Signed;

/// Adds four products per lane. The function that contains it has the instruction.
macro_rules! dot {
    ($instruction:literal, $sums:expr, $left:expr, $right:expr) => {{
        let mut sums: int32x4_t = $sums;
        // SAFETY: by the contract of `Dot`, the caller has the instruction set; the instruction changes one register.
        unsafe {
            asm!(
                concat!($instruction, " {sums:v}.4s, {right:v}.16b, {left:v}.4b[0]"),
                sums = inout(vreg) sums,
                right = in(vreg) $right,
                left = in(vreg) $left,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        sums
    }};
}

/// Loads four bytes into the first lane of a register.
#[inline(always)]
fn first_lane(bytes: i32) -> int32x4_t {
    // SAFETY: every processor with the architecture has NEON.
    unsafe { vsetq_lane_s32::<0>(bytes, vdupq_n_s32(0)) }
}

impl Multiply for Signed {
    #[inline(always)]
    fn left(bytes: i32) -> int8x16_t {
        // SAFETY: as above.
        unsafe { veorq_s8(vreinterpretq_s8_s32(first_lane(bytes)), vdupq_n_s8(SIGN as i8)) }
    }

    #[inline(always)]
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
        dot!("sdot", sums, left, right)
    }
}

impl Multiply for Mixed {
    #[inline(always)]
    fn left(bytes: i32) -> int8x16_t {
        // SAFETY: as above.
        unsafe { vreinterpretq_s8_s32(first_lane(bytes)) }
    }

    #[inline(always)]
    fn dot(sums: int32x4_t, left: int8x16_t, right: int8x16_t) -> int32x4_t {
        // The operands of this form are signed by unsigned bytes.
        dot!("sudot", sums, left, right)
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
        M::left(unsafe { from.cast::<i32>().read_unaligned() })
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
        for (row, sums) in sums.iter().enumerate() {
            for (v, &[first, last]) in sums.iter().enumerate() {
                let (at, left) = (v * 8, tile.columns.saturating_sub(v * 8).min(8));
                let mut lanes = [0; 8];
                // SAFETY: guaranteed by the caller.
                unsafe {
                    vst1q_s32(lanes.as_mut_ptr(), first);
                    vst1q_s32(lanes.as_mut_ptr().add(4), last);
                    tile.finish.write(&lanes, tile.column + at, tile.row_sum(row), tile.at(row) + at, left);
                }
            }
        }
    }
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

/// For 32 registers: 24 with sums, those of the columns, and one or two of a row.
pub(super) static DOTPROD: &[&[(usize, Kernel)]] = kernels!(dotprod: 1 [12 6 2 1] 2 [6 3 1]);
/// The same with the other instruction.
pub(super) static I8MM: &[&[(usize, Kernel)]] = kernels!(i8mm: 1 [12 6 2 1] 2 [6 3 1]);
