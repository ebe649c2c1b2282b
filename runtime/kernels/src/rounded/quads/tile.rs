//! The register tile of products in quads.

use std::arch::aarch64::*;
use std::arch::asm;

use super::pack::QuadSums;
use super::sizes::{PAIR, QUAD, REGISTER, ROWS, WIDTH};
use crate::prefetch::prefetch_l2;
use crate::vector::{F32x4x2, Vector};

/// The operands of a tile: `out[row][column] = start + Σ a[quad][row] · b[quad][column]`, where `·` sums the products of four
/// numbers.
pub(super) struct Tile {
    /// `[quad][row][number]`, with zeros after an odd number of rows.
    pub a: *const u16,
    /// `[quad][column][number]`, [`WIDTH`] columns.
    pub b: *const u16,
    pub quads: usize,
    /// Whether the sums start with the output's values, instead of zero.
    pub adds: bool,
    pub out: *mut f32,
    pub out_row: usize,
    /// The rows and columns of the output. The tile with `n` pairs supports `2·n - 1` and `2·n` rows.
    pub rows: usize,
    pub columns: usize,
}

/// A tile with a fixed number of pairs of rows.
///
/// # Safety
/// Every address in the formula of [`Tile`] is inside its allocation, nothing else writes `out`, and the processor has the
/// extension `bf16`.
pub(super) type Kernel = unsafe fn(&Tile);

/// The registers of a quad of a panel.
const VECTORS: usize = WIDTH / PAIR;
/// The bytes between a quad and the one that is prefetched.
const AHEAD: usize = 1024;

static KERNELS: [Kernel; ROWS / PAIR] = [tile::<1>, tile::<2>, tile::<3>, tile::<4>, tile::<5>, tile::<6>];

/// Returns the tile with `pairs` pairs of rows.
pub(super) fn kernel(_: QuadSums, pairs: usize) -> Kernel {
    KERNELS[pairs - 1]
}

/// See [`Kernel`].
#[target_feature(enable = "neon,bf16")]
unsafe fn tile<const PAIRS: usize>(t: &Tile) {
    let mut sums = [[vdupq_n_f32(0.0); VECTORS]; PAIRS];
    let (mut a, mut b) = (t.a, t.b);
    // SAFETY: guaranteed by the caller; any address may be prefetched.
    unsafe {
        for _ in 0..t.quads {
            prefetch_l2(b.cast::<u8>().wrapping_add(AHEAD));
            let mut right = [vld1q_u16(b); VECTORS];
            for (v, right) in right.iter_mut().enumerate().skip(1) {
                *right = vld1q_u16(b.add(v * REGISTER));
            }
            for (pair, sums) in sums.iter_mut().enumerate() {
                let left = vld1q_u16(a.add(pair * REGISTER));
                for (sum, &right) in sums.iter_mut().zip(&right) {
                    *sum = multiply(*sum, left, right);
                }
            }
            (a, b) = (a.wrapping_add(PAIRS * REGISTER), b.wrapping_add(WIDTH * QUAD));
        }
        for (pair, sums) in sums.iter().enumerate() {
            // The two rows of a pair of sums.
            let [first, last] =
                [[sums[0], sums[1]], [sums[2], sums[3]]].map(|sums| sums.map(|sums| vreinterpretq_f64_f32(sums)));
            let upper = [first, last].map(|[x, y]| vreinterpretq_f32_f64(vzip1q_f64(x, y)));
            let lower = [first, last].map(|[x, y]| vreinterpretq_f32_f64(vzip2q_f64(x, y)));
            store(t, pair * PAIR, upper);
            if pair * PAIR + 1 < t.rows {
                store(t, pair * PAIR + 1, lower);
            }
        }
    }
}

/// Adds the products of a pair of rows and a pair of columns. The instructions are in the order of the program: without
/// `pure`, the compiler keeps it.
#[inline]
#[target_feature(enable = "neon,bf16")]
fn multiply(mut sums: float32x4_t, left: uint16x8_t, right: uint16x8_t) -> float32x4_t {
    // SAFETY: the function has the instruction, which changes one register.
    unsafe {
        asm!(
            "bfmmla {sums:v}.4s, {left:v}.8h, {right:v}.8h",
            sums = inout(vreg) sums,
            left = in(vreg) left,
            right = in(vreg) right,
            options(nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Stores the sums of a row, or adds them to the values there.
///
/// # Safety
/// The row is inside the output.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn store(t: &Tile, row: usize, [first, last]: [float32x4_t; 2]) {
    let (to, sums) = (t.out.wrapping_add(row * t.out_row), F32x4x2(first, last));
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sums = if t.adds { F32x4x2::load_first(to, t.columns) + sums } else { sums };
        sums.store_first(to, t.columns);
    }
}
