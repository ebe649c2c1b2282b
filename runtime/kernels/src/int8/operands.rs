//! The operands of a register tile.

use super::finish::Finish;

/// The operands of one tile: rows of unsigned bytes, and a panel.
pub(super) struct Tile<'a> {
    pub a: *const u8,
    /// The row stride of `a`.
    pub a_row: usize,
    /// The offsets of the pieces of a row, and the quads of bytes per piece.
    pub pieces: &'a [usize],
    pub quads: usize,
    /// The offsets of the quads of a row that the panel's [additional quads](super::remainder) multiply.
    pub again: &'a [usize],
    pub panel: *const i8,
    pub finish: &'a Finish,
    /// One per row; null if they are not needed.
    pub row_sums: *const i32,
    /// The panel's first column, and its number of columns.
    pub column: usize,
    pub columns: usize,
    /// The first element to write, and the row stride of the output.
    pub out: usize,
    pub out_row: usize,
}

impl Tile<'_> {
    /// Returns the tile from row `row` on.
    ///
    /// # Safety
    /// The row exists.
    pub(super) unsafe fn below(&self, row: usize) -> Tile<'_> {
        let sums = if self.row_sums.is_null() { self.row_sums } else { self.row_sums.wrapping_add(row) };
        let (a, out) = (self.a.wrapping_add(row * self.a_row), self.out + row * self.out_row);
        Tile { a, out, row_sums: sums, ..*self }
    }

    /// The sum of a row's bytes; 0 if it is not needed.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    pub(super) unsafe fn row_sum(&self, row: usize) -> i32 {
        if self.row_sums.is_null() {
            return 0;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { *self.row_sums.add(row) }
    }

    /// The first result of a row.
    #[inline(always)]
    pub(super) fn at(&self, row: usize) -> usize {
        self.out + row * self.out_row
    }
}
