//! The operands of a matrix product, its sizes and its output.

pub use candle_plan_descriptors::gemm::ProductSizes;

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// The row stride.
    pub row: usize,
    /// The column stride.
    pub column: usize,
}

/// The start values of the sums.
#[derive(Debug, Clone, Copy)]
pub enum Bias<'a> {
    /// Zero.
    None,
    /// `[m]`: one value per row of the output.
    Rows(&'a [f32]),
    /// `[n]`: one value per column of the output.
    Columns(&'a [f32]),
}

/// Rewrites a finished run of the output; the second argument is its offset in the output.
pub type Finish<'a> = &'a (dyn Fn(&mut [f32], usize) + Sync);

impl Matrix<'_> {
    /// A matrix with contiguous rows.
    pub fn contiguous(data: &[f32], columns: usize) -> Matrix<'_> {
        Matrix { data, row: columns, column: 1 }
    }

    pub(super) fn holds(&self, rows: usize, columns: usize) -> bool {
        let last = || {
            let down = rows.checked_sub(1)?.checked_mul(self.row)?;
            down.checked_add(columns.checked_sub(1)?.checked_mul(self.column)?)
        };
        rows == 0 || columns == 0 || last().is_some_and(|last| last < self.data.len())
    }
}

/// The output, shared by tasks that write disjoint parts of it.
#[derive(Clone, Copy)]
pub(crate) struct Shared(*mut f32);

// SAFETY: tasks that share it write disjoint elements.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn new(out: &mut [f32]) -> Shared {
        Shared(out.as_mut_ptr())
    }

    pub fn at(self, offset: usize) -> *mut f32 {
        self.0.wrapping_add(offset)
    }

    /// Calls `finish` with columns `columns[0] .. columns[1]` of each row in `rows` of an output of `n` columns.
    ///
    /// # Safety
    /// They are inside the output, have been written, and belong to no other task.
    pub unsafe fn finish(self, finish: Option<Finish>, n: usize, rows: [usize; 2], columns: [usize; 2]) {
        let Some(finish) = finish else { return };
        for row in rows[0]..rows[1] {
            let offset = row * n + columns[0];
            // SAFETY: guaranteed by the caller.
            finish(unsafe { std::slice::from_raw_parts_mut(self.at(offset), columns[1] - columns[0]) }, offset);
        }
    }
}
