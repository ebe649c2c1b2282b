//! The left operand of a product, rounded to 8 bits.

use crate::gemm::Lines;
use crate::lane_loops::{fold, per_isa};
use crate::lowbit::pack::PackedCodes;
use crate::threads::Threads;

/// The most terms of a part: `f32` represents all of its sums exactly.
pub(super) const PART: usize = 256;
/// The numbers that one task rounds.
const TASK: usize = 1 << 14;

/// Rows of integers from −127 to 127, with a scale for each part of a row: the largest magnitude, divided by 127. An integer
/// is the quotient of a number and the scale, rounded to nearest, ties to even.
///
/// A part with an infinite number or NaN has the scale NaN. A part whose scale is below `2⁻¹²⁶` counts as zero.
pub(super) struct Left {
    /// For each row: the scale and the sum of the integers of each part; then the integers, in quads of one byte each.
    rows: Lines,
    /// The elements of a row.
    stride: usize,
    /// The parts of a row.
    parts: usize,
}

/// The parts of a block.
pub(super) fn parts_of_block(b: &PackedCodes) -> usize {
    b.block.div_ceil(PART)
}

impl Left {
    /// Rounds the rows of `a [m, k]`.
    pub fn new(threads: &Threads, m: usize, a: &[f32], b: &PackedCodes) -> Left {
        let blocks = b.k.div_ceil(b.block);
        let parts = blocks * parts_of_block(b);
        let stride = (2 * parts + blocks * b.block / 4).next_multiple_of(16);
        let count = (TASK / b.k.max(1)).max(1);
        let rows = Lines::overwritten(m * stride, |rows| {
            threads.for_each_chunk(rows, count * stride.max(1), |i, rows| {
                for (j, row) in rows.chunks_exact_mut(stride).enumerate() {
                    let (found, integers) = row.split_at_mut(2 * parts);
                    let from = &a[(i * count + j) * b.k..][..b.k];
                    round(b.isa, from, [b.bits, b.block], found, bytemuck::cast_slice_mut(integers));
                }
            });
        });
        Left { rows, stride, parts }
    }

    /// The scales and the sums of the parts of a row, in pairs.
    pub fn found(&self, row: usize) -> *const [f32; 2] {
        self.rows.as_ptr().wrapping_add(row * self.stride).cast()
    }

    /// The quads of a row from element `k` on, the first of a word of codes.
    pub fn quads(&self, row: usize, k: usize) -> *const i32 {
        self.rows.as_ptr().wrapping_add(row * self.stride + 2 * self.parts + k / 4).cast()
    }

    /// The quads between two rows.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

/// An upper bound in bytes on the memory of `m` rows of `k` numbers that are rounded to 8 bits.
pub fn rounded_bytes(m: usize, k: usize, block: usize) -> usize {
    let blocks = k.div_ceil(block);
    // The tiles of AMX have a copy of the scales and sums.
    let numbers = blocks.saturating_mul(block.div_ceil(PART)).saturating_mul(2 * 2 * size_of::<f32>());
    m.saturating_mul(numbers.saturating_add(blocks.saturating_mul(block)).saturating_add(64))
}

/// Adding it to a number below 2²² rounds that to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
/// The bits of infinity.
const INFINITY: u32 = f32::INFINITY.to_bits();
/// The largest integer.
const MOST: f32 = 127.0;

per_isa! {
    /// Rounds a row for codes of some bits in blocks. `found` has a scale and a sum for each part.
    fn round(row: &[f32], sizes: [usize; 2], found: &mut [f32], integers: &mut [i8]) where FMA {
        let [bits, block] = sizes;
        let per_block = 2 * block.div_ceil(PART);
        let blocks = row.chunks(block).zip(integers.chunks_exact_mut(block)).zip(found.chunks_exact_mut(per_block));
        for ((row, integers), found) in blocks {
            for ((row, integers), found) in row.chunks(PART).zip(integers.chunks_mut(PART)).zip(found.chunks_exact_mut(2)) {
                let mut ordered = [0i8; PART];
                found.copy_from_slice(&round_part(row, &mut ordered));
                match bits {
                    2 => in_quads::<4>(&ordered, integers),
                    4 => in_quads::<2>(&ordered, integers),
                    _ => integers.copy_from_slice(&ordered[..integers.len()]),
                }
            }
        }
    }
}

/// Rounds the numbers of a part. Returns the scale and the sum of the integers.
#[inline(always)]
fn round_part(row: &[f32], integers: &mut [i8; PART]) -> [f32; 2] {
    let magnitude = fold(row, 0, |most: u32, x: f32| most.max(x.to_bits() & !(1 << 31)), u32::max);
    let scale = f32::from_bits(magnitude) / MOST;
    if magnitude >= INFINITY {
        return [f32::NAN, 0.0];
    } else if scale < f32::MIN_POSITIVE {
        return [0.0, 0.0];
    }
    let (steps, mut sum) = (MOST / f32::from_bits(magnitude), 0);
    for (integer, &x) in integers.iter_mut().zip(row) {
        let nearest = (x * steps + ROUND) - ROUND;
        // SAFETY: the magnitude of the quotient is at most 127, up to rounding.
        let nearest = unsafe { nearest.to_int_unchecked::<i32>() };
        *integer = nearest as i8;
        sum += nearest;
    }
    [scale, sum as f32]
}

/// Reorders the integers for the products with words of codes. A product takes one code of each byte of a word, so four
/// consecutive results belong to four bytes. A byte has `PER` codes.
#[inline(always)]
fn in_quads<const PER: usize>(ordered: &[i8; PART], integers: &mut [i8]) {
    for (to, from) in integers.chunks_exact_mut(4 * PER).zip(ordered.chunks_exact(4 * PER)) {
        for (i, to) in to.chunks_exact_mut(4).enumerate() {
            to.copy_from_slice(&[from[i], from[PER + i], from[2 * PER + i], from[3 * PER + i]]);
        }
    }
}
