//! The register tile of matrix products and convolutions.
//!
//! A tile is a few rows by a few vectors of the output. Its sums stay in registers over the whole depth. For each step,
//! one scalar of the left operand per row is broadcast and multiplied with a row of vectors of the right operand. A
//! table holds the offsets of the right operand's rows, so the same tile works on a matrix, a packed panel and the
//! shifted windows of an image.

use super::table::kernels;
use crate::vector::Vector;

/// The value to which the sums are added.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// Zero.
    Zero,
    /// One value per row.
    Rows(*const f32),
    /// One value per column.
    Columns(*const f32),
    /// The output's current value.
    Output,
}

/// The operands of one tile: `out[m][c] = start + Σₖ a[m · a_row + k · a_step] · b[offsets[k] + c]` for `c < width`.
pub(crate) struct Tile<'a> {
    pub a: *const f32,
    pub a_row: usize,
    pub a_step: usize,
    pub b: *const f32,
    /// One entry per step of the depth.
    pub offsets: &'a [u32],
    pub start: Start,
    pub out: *mut f32,
    pub out_row: usize,
    /// The number of columns. The tile with `n` vectors supports `(n - 1) · lanes + 1 ..= n · lanes`.
    pub width: usize,
}

/// A tile with a fixed number of rows and vectors.
///
/// # Safety
/// Every address in the formula of [`Tile`] is inside its allocation, nothing else writes `out`, and the processor has
/// the instruction set.
pub(super) type Kernel = unsafe fn(&Tile);

impl Tile<'_> {
    /// Returns the tile with `width` columns from `column` on.
    ///
    /// # Safety
    /// The tile has these columns.
    pub(super) unsafe fn at(&self, column: usize, width: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Tile { b: self.b.add(column), out: self.out.add(column), start: self.start.at(column), width, ..*self }
        }
    }
}

impl Start {
    /// Returns the start of the tile `rows` rows further down.
    ///
    /// # Safety
    /// The values of the rows extend that far.
    pub(super) unsafe fn below(self, rows: usize) -> Start {
        match self {
            // SAFETY: guaranteed by the caller.
            Start::Rows(values) => Start::Rows(unsafe { values.add(rows) }),
            other => other,
        }
    }

    /// Returns the start of the tile whose first column is `column`.
    ///
    /// # Safety
    /// The values of the columns extend that far.
    pub(super) unsafe fn at(self, column: usize) -> Start {
        match self {
            // SAFETY: guaranteed by the caller.
            Start::Columns(values) => Start::Columns(unsafe { values.add(column) }),
            other => other,
        }
    }
}

/// The terms that are summed separately before the sum is added to the total. Rounding errors then grow with the length
/// of a piece and the number of pieces, not with the depth.
pub(crate) const PIECE: usize = 64;

/// See [`Kernel`]. The last vector is masked, so that nothing beyond `width` is accessed.
#[inline(always)]
unsafe fn tile<V: Vector, const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    let (mut start, mut depth) = (t.start, 0);
    loop {
        let end = t.offsets.len().min(depth + PIECE);
        // SAFETY: guaranteed by the caller; after the first block, this tile has written the output.
        unsafe { block::<V, ROWS, VECTORS>(t, depth, end, start) };
        if end == t.offsets.len() {
            return;
        }
        (start, depth) = (Start::Output, end);
    }
}

/// Sums the terms `depth .. end`, and adds them to `start`.
#[inline(always)]
unsafe fn block<V: Vector, const ROWS: usize, const VECTORS: usize>(t: &Tile, depth: usize, end: usize, start: Start) {
    // SAFETY: the caller guarantees every address below.
    unsafe {
        let last = t.width - (VECTORS - 1) * V::LANES;
        let mut sums = [[V::splat(0.0); VECTORS]; ROWS];
        let mut a = t.a.wrapping_add(depth * t.a_step);
        for &offset in t.offsets.get_unchecked(depth..end) {
            let b = row::<V, VECTORS>(t.b.add(offset as usize), last);
            for (m, sums) in sums.iter_mut().enumerate() {
                let a = V::splat(*a.add(m * t.a_row));
                for (sum, &b) in sums.iter_mut().zip(&b) {
                    *sum = a.mul_add(b, *sum);
                }
            }
            a = a.wrapping_add(t.a_step);
        }
        finish::<V, ROWS, VECTORS>(t, last, start, &mut sums);
    }
}

/// Adds the sums to `start` and stores them.
///
/// # Safety
/// As for [`Kernel`]; the last vector has `last` elements.
#[inline(always)]
pub(super) unsafe fn finish<V: Vector, const ROWS: usize, const VECTORS: usize>(
    t: &Tile,
    last: usize,
    start: Start,
    sums: &mut [[V; VECTORS]; ROWS],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        add::<V, ROWS, VECTORS>(t, last, start, sums);
        for (m, sums) in sums.iter().enumerate() {
            let out = t.out.add(m * t.out_row);
            for (v, sum) in sums.iter().enumerate().take(VECTORS - 1) {
                sum.store(out.add(v * V::LANES));
            }
            sums[VECTORS - 1].store_first(out.add((VECTORS - 1) * V::LANES), last);
        }
    }
}

/// Loads a row as vectors. The last vector has `last` elements.
#[inline(always)]
unsafe fn row<V: Vector, const VECTORS: usize>(from: *const f32, last: usize) -> [V; VECTORS] {
    let mut row = [V::splat(0.0); VECTORS];
    // SAFETY: guaranteed by the caller.
    unsafe {
        for (v, vector) in row.iter_mut().enumerate().take(VECTORS - 1) {
            *vector = V::load(from.add(v * V::LANES));
        }
        row[VECTORS - 1] = V::load_first(from.add((VECTORS - 1) * V::LANES), last);
    }
    row
}

/// Adds `start` to the sums.
#[inline(always)]
unsafe fn add<V: Vector, const R: usize, const VECTORS: usize>(
    t: &Tile,
    last: usize,
    start: Start,
    sums: &mut [[V; VECTORS]; R],
) {
    // One short loop per kind of start, and no closures: sums stay in registers only if the code is unrolled and
    // inlined.
    // SAFETY: guaranteed by the caller.
    unsafe {
        match start {
            Start::Zero => {}
            Start::Rows(values) => {
                for (m, sums) in sums.iter_mut().enumerate() {
                    add_row(sums, &[V::splat(*values.add(m)); VECTORS]);
                }
            }
            Start::Columns(values) => {
                let values = row::<V, VECTORS>(values, last);
                for sums in sums.iter_mut() {
                    add_row(sums, &values);
                }
            }
            Start::Output => {
                for (m, sums) in sums.iter_mut().enumerate() {
                    add_row(sums, &row::<V, VECTORS>(t.out.add(m * t.out_row), last));
                }
            }
        }
    }
}

#[inline(always)]
fn add_row<V: Vector, const VECTORS: usize>(sums: &mut [V; VECTORS], values: &[V; VECTORS]) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum = value + *sum;
    }
}

unsafe fn scalar<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<f32, ROWS, VECTORS>(t) }
}

pub(super) static SCALAR: &[&[Kernel]] = kernels!(scalar scalar);

#[cfg(target_arch = "aarch64")]
unsafe fn neon<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<crate::vector::F32x4x2, ROWS, VECTORS>(t) }
}

#[cfg(target_arch = "aarch64")]
pub(super) static NEON: &[&[Kernel]] = kernels!(neon neon);

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::{kernels, tile, Kernel, Tile};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<F32x16, ROWS, VECTORS>(t) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<const ROWS: usize, const VECTORS: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<F32x8, ROWS, VECTORS>(t) }
    }

    pub static AVX512: &[&[Kernel]] = kernels!(avx512 avx512);
    pub static AVX2: &[&[Kernel]] = kernels!(avx2 avx2);
}
