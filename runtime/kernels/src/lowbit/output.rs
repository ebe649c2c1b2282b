//! The sums of a tile in the output.

use crate::vector::Vector;

/// The part of the output that a tile computes.
#[derive(Clone, Copy)]
pub(super) struct Output {
    /// The first column of a panel, in the first row.
    pub first: *mut f32,
    /// The elements of a row.
    pub row: usize,
    /// The columns of the panel that the output has.
    pub columns: usize,
}

impl Output {
    /// Loads the sums of the vectors from `column` on.
    ///
    /// # Safety
    /// The rows are inside the allocation, and nothing writes these columns meanwhile.
    #[inline(always)]
    pub unsafe fn load<V: Vector, const ROWS: usize, const VECTORS: usize>(
        &self,
        column: usize,
    ) -> [[V; VECTORS]; ROWS] {
        let mut totals = [[V::splat(0.0); VECTORS]; ROWS];
        let is_whole = column + VECTORS * V::LANES <= self.columns;
        for (m, totals) in totals.iter_mut().enumerate() {
            for (v, total) in totals.iter_mut().enumerate() {
                let column = column + v * V::LANES;
                let out = self.first.wrapping_add(m * self.row + column);
                // SAFETY: guaranteed by the caller; only columns of the output are accessed.
                *total = unsafe {
                    if is_whole {
                        V::load(out)
                    } else {
                        V::load_first(out, self.columns.saturating_sub(column).min(V::LANES))
                    }
                };
            }
        }
        totals
    }

    /// Stores the sums of the vectors from `column` on.
    ///
    /// # Safety
    /// As for [`Output::load`]; and nothing reads these columns meanwhile.
    #[inline(always)]
    pub unsafe fn store<V: Vector, const ROWS: usize, const VECTORS: usize>(
        &self,
        column: usize,
        totals: &[[V; VECTORS]; ROWS],
    ) {
        let is_whole = column + VECTORS * V::LANES <= self.columns;
        for (m, totals) in totals.iter().enumerate() {
            for (v, total) in totals.iter().enumerate() {
                let column = column + v * V::LANES;
                let out = self.first.wrapping_add(m * self.row + column);
                // SAFETY: guaranteed by the caller; only columns of the output are accessed.
                unsafe {
                    if is_whole {
                        total.store(out);
                    } else {
                        total.store_first(out, self.columns.saturating_sub(column).min(V::LANES));
                    }
                }
            }
        }
    }
}
