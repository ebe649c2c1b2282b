//! The register tile of products with codes.
//!
//! A tile is a few rows by the columns of a panel. It sums a piece of the depth in registers: `Σₖ a[k] · (code[k] −
//! zero)` from 0, in order, with one [`mul_add`](crate::vector::Vector::mul_add) per term. Then it adds the sum times the
//! scale of its block to the output, with one `mul_add`. A piece is a block, or [`PIECE`] terms of a longer block.

use super::pack::{PackedCodes, PANEL};
use super::points::Points;
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
    /// `[depth][column]`: the codes of the panel minus their zero points, for [`Unpacked`].
    pub numbers: *const f32,
    /// The depth to sum. It begins and ends where pieces do.
    pub depth: [usize; 2],
    /// The output, from the panel's first column on.
    pub out: *mut f32,
    pub out_row: usize,
    /// The columns of the panel that the output has.
    pub columns: usize,
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

/// The numbers were computed before, for many rows.
pub(super) struct Unpacked;

/// See [`Kernel`].
#[inline(always)]
pub(super) unsafe fn tile<V: Words, S: Source, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    let size = t.b.block;
    for column in (0..t.columns).step_by(VECTORS * V::LANES) {
        for block in t.depth[0] / size..t.depth[1].div_ceil(size) {
            let place = t.b.place(t.panel, block) + column;
            let (first, end) = (t.depth[0].max(block * size), t.depth[1].min((block + 1) * size));
            for k in (first..end).step_by(PIECE) {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let sums = S::sums::<V, ROWS, VECTORS>(t, column, place, [k, end.min(k + PIECE)]);
                    add(t, column, place, k == 0, &sums);
                }
            }
        }
    }
}

/// Adds the sums of a piece, times their scales, to the output; `is_first` if this is the first piece.
#[inline(always)]
unsafe fn add<V: Vector, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    column: usize,
    place: usize,
    is_first: bool,
    sums: &[[V; VECTORS]; ROWS],
) {
    for v in 0..VECTORS {
        let column = column + v * V::LANES;
        let count = t.columns.saturating_sub(column).min(V::LANES);
        // SAFETY: guaranteed by the caller; only the first `count` columns are accessed.
        unsafe {
            let scale = t.b.scales.load::<V>(place + v * V::LANES);
            for (m, sums) in sums.iter().enumerate() {
                let out = t.out.wrapping_add(m * t.out_row + column);
                let total = if is_first { V::splat(0.0) } else { V::load_first(out, count) };
                sums[v].mul_add(scale, total).store_first(out, count);
            }
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
        let mut k = from;
        while k + per_word <= to {
            if V::LANES > 1 {
                for line in (0..VECTORS * V::LANES).step_by(LINE) {
                    prefetch_l2(words.wrapping_add(AHEAD + line));
                }
            }
            // SAFETY: guaranteed by the caller.
            unsafe { word::<V, BITS, EACH, ROWS, VECTORS>(t, words, &zeros, [k, per_word], &mut sums) };
            k += per_word;
            words = words.wrapping_add(PANEL * V::LANES);
        }
        if k < to {
            // SAFETY: guaranteed by the caller.
            unsafe { word::<V, BITS, EACH, ROWS, VECTORS>(t, words, &zeros, [k, to - k], &mut sums) };
        }
        sums
    }
}

/// Adds the terms of the first `count` codes of a word in each lane.
#[inline(always)]
unsafe fn word<V: Words, const BITS: usize, const EACH: bool, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    words: *const u32,
    zeros: &Points<V, VECTORS>,
    [k, count]: [usize; 2],
    sums: &mut [[V; VECTORS]; ROWS],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut words: [V::Words; VECTORS] = std::array::from_fn(|v| V::load_words(words.wrapping_add(v * V::LANES)));
        for i in 0..count {
            step(t.a.wrapping_add(k + i), t.a_row, &zeros.numbers::<BITS, EACH>(&words), sums);
            for words in &mut words {
                *words = V::next::<BITS>(*words);
            }
        }
    }
}
