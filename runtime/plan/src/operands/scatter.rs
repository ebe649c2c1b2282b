//! The rows that `TensorScatter` writes.

use super::cache::alike;
use super::rows::WritesRows;
use crate::axes;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::scatter::{check_places, TensorScatter};
use crate::value::rows::{Edit, Edits};
use crate::value::{list, Grown};

impl WritesRows for TensorScatter {
    fn rows_axis(&self, rank: usize, _: usize) -> Option<usize> {
        axes::resolve(self.axis, rank).ok().filter(|axis| *axis > 0)
    }

    fn positions(&self) -> Option<usize> {
        Some(2)
    }

    fn edits(&self, grown: &Grown, call: &Call) -> Result<Edits> {
        let (dims, new) = (grown.dims(), call.tensor(1)?.dims());
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
