//! Rows of a left operand that have a zero point and a scale of their own.

use std::ops::Range;

use crate::gemm::Finish;
use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::scratch::Scratch;

/// The zero point and the scale of each row of the left operand, and the function that finishes each row of each block.
pub(super) struct EachRow<'a> {
    pub isa: Isa,
    pub zeros: Scratch<i32>,
    pub scales: Scratch<f32>,
    pub finish: Option<Finish<'a>>,
}

impl EachRow<'_> {
    /// Multiplies some rows and columns of an output of `n` columns by the scale of their row, and finishes them.
    ///
    /// # Safety
    /// They are inside the output, have been written, and belong to no other task.
    pub unsafe fn finish(&self, out: *mut f32, n: usize, rows: Range<usize>, columns: [usize; 2]) {
        for row in rows {
            let first = row * n + columns[0];
            // SAFETY: guaranteed by the caller.
            let run = unsafe { std::slice::from_raw_parts_mut(out.add(first), columns[1] - columns[0]) };
            multiply(self.isa, run, self.scales[row]);
            if let Some(finish) = self.finish {
                finish(run, first);
            }
        }
    }
}

per_isa! {
    fn multiply(run: &mut [f32], factor: f32) where FMA {
        run.iter_mut().for_each(|x| *x *= factor);
    }
}
