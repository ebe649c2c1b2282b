//! The register tile of products with codes.
//!
//! A tile is a few rows by the columns of a panel. It sums a piece of the depth in registers: `Σₖ a[k] · (code[k] −
//! zero)` from 0, in order, with one [`mul_add`](crate::vector::Vector::mul_add) per term. Then it adds the sum times the
//! scale of its block to the output, with one `mul_add`. A piece is a block, or [`PIECE`] terms of a longer block.

use super::output::Output;
use super::pack::{PackedCodes, PANEL};
use super::points::{codes_of_half, Points};
use crate::gemm::tile::PIECE;
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
    /// The rows of the left operand, from depth 0 on.
    pub a: *const f32,
    pub a_row: usize,
    pub panel: usize,
    /// `[depth][column]`: the codes of the panel minus their zero points. [`Unpacked`] reads them. [`Packed`] writes them,
    /// unless this is null.
    pub numbers: *mut f32,
    /// The depth to sum. It begins and ends where pieces do.
    pub depth: [usize; 2],
    pub out: Output,
}

/// A tile with a fixed number of rows.
///
/// # Safety
/// The rows of the left operand and of the output, and the numbers of the panel if the tile reads them, are inside their
/// allocations. Nothing else writes these parts of the output. The processor has the instruction set.
pub(super) type Kernel = unsafe fn(&Tile);

/// Where a tile finds the numbers of codes.
pub(super) trait Source {
    /// Returns the sums of the terms `from .. to` of the vectors from `column` on. These terms are in a block whose zero
    /// points are at `place`.
    ///
    /// # Safety
    /// As for [`Kernel`]; the panel has these vectors.
    unsafe fn sums<V: Words, const ROWS: usize, const VECTORS: usize>(
        t: &Tile,
        column: usize,
        place: usize,
        terms: [usize; 2],
    ) -> [[V; VECTORS]; ROWS];
}

/// The numbers are computed from words of codes of `BITS` bits. With `EACH`, each block has a zero point.
pub(super) struct Packed<const BITS: usize, const EACH: bool>;

/// The numbers were stored by a tile of other rows.
pub(super) struct Unpacked;

/// Whether a tile of words stores numbers for other tiles: those of few rows have no time for it.
pub(super) const fn can_store<V: Vector>(rows: usize) -> bool {
    rows >= 3 || V::LANES == 1
}

/// See [`Kernel`].
#[inline(always)]
pub(super) unsafe fn tile<V: Words, S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    let size = t.b.block;
    for column in (0..t.out.columns).step_by(VECTORS * V::LANES) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut totals = [[V::splat(0.0); VECTORS]; ROWS];
            if t.depth[0] > 0 {
                totals = t.out.load(column);
            }
            for block in t.depth[0] / size..t.depth[1].div_ceil(size) {
                let place = t.b.place(t.panel, block) + column;
                let (first, end) = (t.depth[0].max(block * size), t.depth[1].min((block + 1) * size));
                for k in (first..end).step_by(PIECE) {
                    let sums = S::sums::<V, ROWS, VECTORS>(t, column, place, [k, end.min(k + PIECE)]);
                    add(t.b, place, &sums, &mut totals);
                }
            }
            t.out.store(column, &totals);
        }
    }
}

/// Adds the sums of a piece, times their scales, to the totals.
#[inline(always)]
unsafe fn add<V: Vector, const ROWS: usize, const VECTORS: usize>(
    b: &PackedCodes,
    place: usize,
    sums: &[[V; VECTORS]; ROWS],
    totals: &mut [[V; VECTORS]; ROWS],
) {
    for v in 0..VECTORS {
        // SAFETY: guaranteed by the caller.
        let scale = unsafe { b.scales.load::<V>(place + v * V::LANES) };
        for (sums, totals) in sums.iter().zip(totals.iter_mut()) {
            totals[v] = sums[v].mul_add(scale, totals[v]);
        }
    }
}

/// Adds the products of one column of the left operand and one row of numbers.
#[inline(always)]
unsafe fn step<V: Vector, const ROWS: usize, const VECTORS: usize>(
    a: *const f32,
    a_row: usize,
    b: &[V; VECTORS],
    sums: &mut [[V; VECTORS]; ROWS],
) {
    for (m, sums) in sums.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        let a = V::splat(unsafe { *a.wrapping_add(m * a_row) });
        for (sum, &b) in sums.iter_mut().zip(b) {
            *sum = a.mul_add(b, *sum);
        }
    }
}

impl Source for Unpacked {
    #[inline(always)]
    unsafe fn sums<V: Words, const ROWS: usize, const VECTORS: usize>(
        t: &Tile,
        column: usize,
        _: usize,
        [from, to]: [usize; 2],
    ) -> [[V; VECTORS]; ROWS] {
        let mut sums = [[V::splat(0.0); VECTORS]; ROWS];
        let width = PANEL * V::LANES;
        let mut b = t.numbers.wrapping_add((from - t.depth[0]) * width + column);
        for k in from..to {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let row: [V; VECTORS] = std::array::from_fn(|v| V::load(b.wrapping_add(v * V::LANES)));
                step(t.a.wrapping_add(k), t.a_row, &row, &mut sums);
            }
            b = b.wrapping_add(width);
        }
        sums
    }
}

impl<const BITS: usize, const EACH: bool> Source for Packed<BITS, EACH> {
    #[inline(always)]
    unsafe fn sums<V: Words, const ROWS: usize, const VECTORS: usize>(
        t: &Tile,
        column: usize,
        place: usize,
        [from, to]: [usize; 2],
    ) -> [[V; VECTORS]; ROWS] {
        let mut sums = [[V::splat(0.0); VECTORS]; ROWS];
        let (mut words, per_word) = (t.b.words(t.panel, from).wrapping_add(column), 32 / BITS);
        // SAFETY: guaranteed by the caller.
        let zeros = unsafe { Points::<V, VECTORS>::load::<BITS>(t.b, place) };
        for k in (from..to).step_by(per_word) {
            if V::LANES > 1 {
                for line in (0..VECTORS * V::LANES).step_by(LINE) {
                    prefetch_l2(words.wrapping_add(AHEAD + line));
                }
            }
            let count = per_word.min(to - k);
            // SAFETY: guaranteed by the caller.
            unsafe {
                if ROWS == 1 && count == per_word {
                    word::<V, BITS, EACH, ROWS, VECTORS>(t, words, &zeros, [column, k, per_word], &mut sums);
                } else {
                    word::<V, BITS, EACH, ROWS, VECTORS>(t, words, &zeros, [column, k, count], &mut sums);
                }
            }
            words = words.wrapping_add(PANEL * V::LANES);
        }
        sums
    }
}

/// Adds the terms of the first `count` codes of a word in each lane. Stores their numbers if the tile has memory for them.
#[inline(always)]
unsafe fn word<V: Words, const BITS: usize, const EACH: bool, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    words: *const u32,
    zeros: &Points<V, VECTORS>,
    [column, k, count]: [usize; 3],
    sums: &mut [[V; VECTORS]; ROWS],
) {
    let width = PANEL * V::LANES;
    // The compiler unrolls loops of a known count, and then has too few registers for several rows.
    let half = if ROWS == 1 { codes_of_half::<BITS>() } else { std::hint::black_box(codes_of_half::<BITS>()) };
    let stored = t.numbers.wrapping_add((k - t.depth[0]) * width + column);
    let is_stored = can_store::<V>(ROWS) && !t.numbers.is_null();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut words: [V::Words; VECTORS] = std::array::from_fn(|v| V::load_words(words.wrapping_add(v * V::LANES)));
        for first in [0, half] {
            for i in 0..count.saturating_sub(first).min(half) {
                let numbers = zeros.numbers::<EACH, ROWS>(&words, i);
                if is_stored {
                    let to = stored.wrapping_add((first + i) * width);
                    for (v, number) in numbers.iter().enumerate() {
                        number.store(to.wrapping_add(v * V::LANES));
                    }
                }
                step(t.a.wrapping_add(k + first + i), t.a_row, &numbers, sums);
            }
            for words in &mut words {
                *words = V::upper(*words);
            }
        }
    }
}
