//! The sizes of a selection of elements.

use crate::axes;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::sort::{selected, TopK};

/// The sizes of one run of [`TopK`].
pub(crate) struct Wanted {
    /// The dimensions of both outputs.
    pub dims: Vec<usize>,
    /// `[outer, n, inner]` of X.
    pub split: [usize; 3],
    pub k: usize,
}

impl TopK {
    /// The sizes of a run.
    pub(crate) fn wanted(&self, call: &Call) -> Result<Wanted> {
        let (x, k) = (call.tensor(0)?, axes::number("K", call.tensor(1)?)?);
        let mut dims = x.dims().to_vec();
        let axis = axes::resolve(self.axis, dims.len())?;
        let split = axes::split(&dims, self.axis)?;
        dims[axis] = selected(k, axis, &dims[axis])?;
        Ok(Wanted { k: dims[axis], dims, split })
    }
}
