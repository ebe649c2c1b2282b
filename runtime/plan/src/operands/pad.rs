//! The paddings and sizes that operands give.

use crate::error::Result;
use crate::kernel::Call;
use crate::ops::pad::{pads_by_axis, CenterCropPad, Pad, Window};

impl Pad {
    /// The window of each axis of a tensor of shape `dims`.
    pub(crate) fn windows(&self, call: &Call, dims: &[usize]) -> Result<Vec<Window>> {
        let pads = pads_by_axis(call.tensor(1)?, call.optional_tensor(3)?, dims.len())?;
        dims.iter().zip(pads).map(|(&dim, pads)| self.mode.window(dim, pads)).collect()
    }
}

impl CenterCropPad {
    /// The window of each axis of a tensor of shape `dims`.
    pub(crate) fn windows(&self, call: &Call, dims: &[usize]) -> Result<Vec<Window>> {
        let sizes = self.sizes_by_axis(call.tensor(1)?, dims.len())?;
        let window = |(&dim, size): (&usize, Option<usize>)| {
            let size = size.unwrap_or(dim);
            let (cut, put) = (dim.saturating_sub(size) / 2, size.saturating_sub(dim) / 2);
            Window { count: size, before: put, first: cut, kept: dim.min(size) }
        };
        Ok(dims.iter().zip(sizes).map(window).collect())
    }
}
