//! The expected types of the inputs of recurrent layers.

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::types::{Dim, TensorType, Type};
use crate::value::Array;

/// The names of the inputs of an LSTM; the other layers lack the last ones.
const NAMES: [&str; 8] = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"];

/// The expected type of an input.
pub(crate) struct Expected {
    pub dtype: DType,
    /// The sizes of the first `rank` axes, if they are known.
    pub sizes: [Option<usize>; 3],
    pub rank: usize,
}

impl Expected {
    /// Rejects a tensor of another type as input `i`.
    pub fn check(&self, i: usize, found: &TensorType) -> Result<()> {
        let sizes = self.sizes[..self.rank].iter().map(|size| size.map(Dim::Size));
        let expected = TensorType { dtype: self.dtype, shape: Some(sizes.collect()) };
        if found.agrees_with(&expected) {
            return Ok(());
        }
        bail!("{} is {}, where {} is needed", NAMES[i], Type::Tensor(found.clone()), Type::Tensor(expected))
    }

    /// Whether all sizes are known, and an array has exactly these.
    pub fn is_met(&self, array: &Array) -> bool {
        array.dtype() == self.dtype
            && array.dims().iter().map(|&size| Some(size)).eq(self.sizes[..self.rank].iter().copied())
    }
}
