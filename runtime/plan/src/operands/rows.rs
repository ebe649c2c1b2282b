//! Operators that write rows into a tensor, such as a cache.

use crate::error::Result;
use crate::kernel::Call;
use crate::ops::Op;
use crate::value::rows::Edits;
use crate::value::Grown;

/// An operator that writes the rows of input 1 into input 0. If input 0 is a value of a state, a run may write the rows into
/// its storage instead of a copy.
pub(crate) trait WritesRows {
    /// The axis of the rows, if input 0 has this rank and a step has this number of inputs. `None` if such a step copies
    /// input 0.
    fn rows_axis(&self, rank: usize, inputs: usize) -> Option<usize>;

    /// The input with the positions of the rows, if there is one and a GPU kernel reads it. A run reads it on the host.
    fn positions(&self) -> Option<usize> {
        None
    }

    /// The rows that change in `grown`, which stands for input 0.
    ///
    /// # Errors
    /// The inputs do not fit.
    fn edits(&self, grown: &Grown, call: &Call) -> Result<Edits>;
}

/// Returns an operator as one that writes rows, if it does.
pub(crate) fn writes_rows(op: &Op) -> Option<&dyn WritesRows> {
    match op {
        Op::AppendRows(op) => Some(op),
        Op::Concat(op) => Some(op),
        Op::TensorScatter(op) => Some(op),
        _ => None,
    }
}
