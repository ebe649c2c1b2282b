//! The sizes of max unpooling.

use candle_plan_descriptors::broadcast::Dims;

use crate::error::Result;
use crate::extent::known_sizes;
use crate::kernel::Call;
use crate::ops::unpool::{check_indices, MaxUnpool};

impl MaxUnpool {
    /// The shape that the indices count in, and that of the result.
    pub(crate) fn sizes(&self, call: &Call) -> Result<(Dims, Dims)> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        check_indices(x.dims(), indices.dims())?;
        let [counted, dims] = self.shapes(x.dims(), call.optional_tensor(2)?)?;
        Ok((known_sizes(&counted)?, known_sizes(&dims)?))
    }
}
