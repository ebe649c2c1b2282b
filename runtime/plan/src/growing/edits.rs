//! The rows that steps write into values of a state.

use std::sync::Arc;

use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::kernel::Call;
use crate::operands::cache::alike;
use crate::ops::join::Concat;
use crate::ops::scatter::{check_places, TensorScatter};
use crate::ops::Op;
use crate::prepare::PreparedStep;
use crate::value::rows::{Edit, Edits};
use crate::value::{list, Grown};

impl PreparedStep {
    /// The rows that the step writes into a value of the state, which stands for its input 0.
    ///
    /// # Errors
    /// The inputs do not fit.
    pub(super) fn edits(&self, grown: &Grown, call: &Call) -> Result<Edits> {
        let new = call.tensor(1)?;
        if new.dtype() != grown.dtype() {
            bail!("{} rows cannot be written into a {} tensor", new.dtype(), grown.dtype());
        }
        match self.ops.single().map(Arc::as_ref) {
            Some(Op::Concat(op)) => op.edits(grown.dims(), new.dims()),
            Some(Op::TensorScatter(op)) => op.edits(grown.dims(), call),
            Some(Op::AppendRows(op)) => op.edits(grown.dims(), grown.filled(), call),
            _ => bail!("the operator writes no rows in place"),
        }
    }
}

impl Concat {
    fn edits(&self, dims: &[usize], new: &[usize]) -> Result<Edits> {
        let axis = axes::resolve(self.axis, dims.len())?;
        let fits = |(i, (own, other)): (usize, (&usize, &usize))| i == axis || own == other;
        if dims.len() != new.len() || !dims.iter().zip(new).enumerate().all(fits) {
            bail!("cannot concatenate tensors of shapes {dims:?} and {new:?} along axis {axis}");
        }
        let Some(end) = dims[axis].checked_add(new[axis]) else { bail!("axis {axis} of {new:?} is too long") };
        let edit = Edit { matrices: 0..dims[..axis].iter().product(), to: dims[axis]..end, from: Some(0) };
        Ok(Edits { length: end, list: vec![edit], filled: end })
    }
}

impl TensorScatter {
    fn edits(&self, dims: &[usize], call: &Call) -> Result<Edits> {
        let new = call.tensor(1)?.dims();
        let axis = self.fitting_axis(dims, new)?;
        let first = match call.optional_tensor(2)? {
            Some(first) => first.to_i64()?,
            None => list(std::iter::repeat_n(0, dims[0]))?,
        };
        check_places(first.len(), dims)?;
        let (size, rows) = (dims[axis], new[axis]);
        self.check_first(&first, [rows, size])?;
        let per_batch: usize = dims[1..axis].iter().product();
        let mut list = Vec::new();
        for (batches, first) in alike(&first).filter(|_| rows > 0) {
            let (start, matrices) = (first as usize % size, batches.start * per_batch..batches.end * per_batch);
            let end = size.min(start + rows);
            list.push(Edit { matrices: matrices.clone(), to: start..end, from: Some(0) });
            list.push(Edit { matrices, to: 0..start + rows - end, from: Some(end - start) });
        }
        list.retain(|edit| !edit.to.is_empty());
        Ok(Edits { length: size, list, filled: size })
    }
}
