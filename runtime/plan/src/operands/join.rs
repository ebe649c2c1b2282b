//! The rows that `Concat` writes.

use super::rows::WritesRows;
use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::join::Concat;
use crate::value::rows::{Edit, Edits};
use crate::value::Grown;

/// A concatenation of two tensors writes the second one behind the first one.
impl WritesRows for Concat {
    fn rows_axis(&self, rank: usize, inputs: usize) -> Option<usize> {
        axes::resolve(self.axis, rank).ok().filter(|_| inputs == 2)
    }

    fn edits(&self, grown: &Grown, call: &Call) -> Result<Edits> {
        let (dims, new) = (grown.dims(), call.tensor(1)?.dims());
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
