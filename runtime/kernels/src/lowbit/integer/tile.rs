//! The register tile of products of codes and rounded rows.
//!
//! A tile is a few rows by the columns of a panel. It sums the products of a part in integers, and subtracts the sum of the
//! row's integers times the zero point. It adds the difference, times the scale of the block and the scale of the row's
//! part, to the output, with one rounding each.

use super::dot::{Dot, WordsOf};
use super::left::{parts_of_block, Left, PART};
use crate::lowbit::output::Output;
use crate::lowbit::pack::{PackedCodes, Zeros};
use crate::prefetch::prefetch_l2;
use crate::vector::{Vector, Words};

/// The distance of prefetched words.
const AHEAD: usize = 1 << 10;
/// The words of a cache line.
const LINE: usize = 16;

/// The operands of a tile.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub b: &'a PackedCodes,
    pub left: &'a Left,
    /// The first row.
    pub row: usize,
    pub panel: usize,
    /// The words of the panel, from the first code of `depth` on.
    pub words: *const u32,
    /// The depth to sum. It begins and ends where parts do.
    pub depth: [usize; 2],
    pub out: Output,
}

/// A tile with a fixed number of rows.
///
/// # Safety
/// The words, the rows of the left operand and of the output are inside their allocations. Nothing else writes these parts of
/// the output. The processor has the instructions.
pub(super) type Kernel = unsafe fn(&Tile);

/// Terms that are summed in integers.
#[derive(Clone, Copy)]
struct Part {
    /// The number of the part.
    index: usize,
    /// The block of codes.
    block: usize,
    terms: [usize; 2],
}

/// The format of the words of a panel.
pub(super) trait Source {
    /// The bits between two codes of a byte.
    const BITS: usize;
    /// Whether a code may have more than 4 bits.
    const WIDE: bool;
    /// Whether the words come from memory, not from a cache.
    const FETCHES: bool;
}

/// The codes as they are stored.
pub(super) struct Packed<const BITS: usize>;

impl<const BITS: usize> Source for Packed<BITS> {
    const BITS: usize = BITS;
    const WIDE: bool = BITS == 8;
    const FETCHES: bool = true;
}

/// Codes of one byte each, with at most 4 bits unless `WIDE`.
pub(super) struct Bytes<const WIDE: bool>;

impl<const WIDE: bool> Source for Bytes<WIDE> {
    const BITS: usize = 8;
    const WIDE: bool = WIDE;
    const FETCHES: bool = false;
}

/// See [`Kernel`].
#[inline(always)]
pub(super) unsafe fn tile<D: Dot, S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    let (size, per_block) = (t.b.block, parts_of_block(t.b));
    for column in (0..t.out.columns).step_by(VECTORS * D::Numbers::LANES) {
        let mut totals = [[D::Numbers::splat(0.0); VECTORS]; ROWS];
        // SAFETY: guaranteed by the caller.
        unsafe {
            if t.depth[0] > 0 {
                totals = t.out.load(column);
            }
            for block in t.depth[0] / size..t.depth[1].div_ceil(size) {
                let (first, end) = (t.depth[0].max(block * size), t.depth[1].min((block + 1) * size));
                for from in (first..end).step_by(PART) {
                    let index = block * per_block + (from - block * size) / PART;
                    let part = Part { index, block, terms: [from, end.min(from + PART)] };
                    let sums = sums::<D, S, ROWS, VECTORS>(t, column, part);
                    add::<D, ROWS, VECTORS>(t, column, part, &sums, &mut totals);
                }
            }
            t.out.store(column, &totals);
        }
    }
}

/// Returns the integer sums of a part. If all zero points are one integer, it is subtracted from the codes.
#[inline(always)]
unsafe fn sums<D: Dot, S: Source, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    column: usize,
    part: Part,
) -> [[WordsOf<D>; VECTORS]; ROWS] {
    let (lanes, width, [from, to]) = (D::Numbers::LANES, t.b.width, part.terms);
    let per_word = 32 / S::BITS;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = first_sums::<D, ROWS, VECTORS>(t, part.index);
        let mut words = t.words.wrapping_add((from - t.depth[0]) / per_word * width + column);
        let mut quads = t.left.quads(t.row, from);
        // Whole words of codes, whose bytes are in another order than the codes.
        let quads_of_words = (to - from).div_ceil(32 / t.b.bits) * (8 / t.b.bits);
        for _ in 0..quads_of_words / (8 / S::BITS) {
            if S::FETCHES && lanes > 1 {
                for line in (0..VECTORS * lanes).step_by(LINE) {
                    prefetch_l2(words.wrapping_add(AHEAD + line));
                }
            }
            let mut codes: [WordsOf<D>; VECTORS] =
                std::array::from_fn(|v| D::Numbers::load_words(words.wrapping_add(v * lanes)));
            for i in 0..8 / S::BITS {
                for (r, sums) in sums.iter_mut().enumerate() {
                    let row = D::splat(*quads.wrapping_add(r * t.left.stride() + i));
                    for (sum, &codes) in sums.iter_mut().zip(&codes) {
                        *sum = D::add(*sum, D::lowest(codes, S::BITS), row, S::WIDE);
                    }
                }
                // A loop: a closure would not be inlined.
                for codes in &mut codes {
                    *codes = D::shifted(*codes, S::BITS);
                }
            }
            words = words.wrapping_add(width);
            quads = quads.wrapping_add(8 / S::BITS);
        }
        sums
    }
}

/// Returns what the sums of a part begin with: 0, or the product of a row's sum and the zero point of all codes, negated.
#[inline(always)]
unsafe fn first_sums<D: Dot, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    part: usize,
) -> [[WordsOf<D>; VECTORS]; ROWS] {
    let mut sums = [[D::splat(0); VECTORS]; ROWS];
    if let Zeros::All(zero) = t.b.zeros {
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let [_, sum] = *t.left.found(t.row + r).wrapping_add(part);
                *sums = [D::splat(-i32::from(zero) * sum.to_int_unchecked::<i32>()); VECTORS];
            }
        }
    }
    sums
}

/// Adds the sums of a part to the totals.
#[inline(always)]
unsafe fn add<D: Dot, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    column: usize,
    part: Part,
    sums: &[[WordsOf<D>; VECTORS]; ROWS],
    totals: &mut [[D::Numbers; VECTORS]; ROWS],
) {
    let place = t.b.place(t.panel, part.block) + column;
    // Loops: a closure would not be inlined.
    let (mut scales, mut zeros) = ([D::Numbers::splat(0.0); VECTORS], [D::Numbers::splat(0.0); VECTORS]);
    for v in 0..VECTORS {
        let place = place + v * D::Numbers::LANES;
        // SAFETY: guaranteed by the caller.
        unsafe {
            scales[v] = t.b.scales.load(place);
            if let Zeros::Each(each) = &t.b.zeros {
                zeros[v] = each.load(place);
            }
        }
    }
    let has_zeros = matches!(t.b.zeros, Zeros::Each(_));
    for (r, (sums, totals)) in sums.iter().zip(totals).enumerate() {
        // SAFETY: guaranteed by the caller.
        let [scale, sum] = unsafe { *t.left.found(t.row + r).wrapping_add(part.index) };
        let (scale, sum) = (D::Numbers::splat(scale), D::Numbers::splat(sum));
        for v in 0..VECTORS {
            let mut number = D::Numbers::of_integers(sums[v]);
            if has_zeros {
                number = zeros[v].neg_mul_add(sum, number);
            }
            totals[v] = number.mul_add(scales[v] * scale, totals[v]);
        }
    }
}

/// Writes the codes of `count` words of each column as bytes: `[quad][column]`.
#[inline(always)]
pub(super) unsafe fn unpack<D: Dot, S: Source>(words: *const u32, count: usize, width: usize, to: *mut u32) {
    let lanes = D::Numbers::LANES;
    for word in 0..count {
        for column in (0..width).step_by(lanes) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut codes = D::Numbers::load_words(words.wrapping_add(word * width + column));
                prefetch_l2(words.wrapping_add(word * width + column + AHEAD));
                for i in 0..8 / S::BITS {
                    let to = to.wrapping_add((word * (8 / S::BITS) + i) * width + column);
                    D::Numbers::store_words(D::lowest(codes, S::BITS), to);
                    codes = D::shifted(codes, S::BITS);
                }
            }
        }
    }
}
