//! The diagonal of triangles.

use crate::axes;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::select::Trilu;

impl Trilu {
    /// The diagonal: 0 is the main one, and a positive number is above it.
    pub(crate) fn diagonal(call: &Call) -> Result<i64> {
        call.optional_tensor(1)?.map_or(Ok(0), |k| axes::number("k", k))
    }
}
