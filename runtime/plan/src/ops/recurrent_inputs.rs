//! The expected types of the inputs of recurrent layers.

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::types::{Dim, TensorType, Type};
use crate::value::{try_list, Array};

/// The names of the inputs of an LSTM; the other layers lack the last ones.
const NAMES: [&str; 8] = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"];

/// Returns the error for sequence `place`, whose length is negative or exceeds the number of steps.
pub(crate) fn length_out_of_range(length: i64, place: usize, steps: usize) -> String {
    format!("length {length} is out of range for sequences of {steps} steps (element {place} of sequence_lens)")
}

/// The lengths of sequences of `steps` steps.
///
/// # Errors
/// A length is negative, or exceeds the number of steps.
pub(crate) fn lengths_within<T: Copy + Into<i64>>(lengths: &[T], steps: usize) -> Result<Vec<usize>> {
    let within = |(place, &length): (usize, &T)| {
        let fitting = usize::try_from(length.into()).ok().filter(|&length| length <= steps);
        fitting.ok_or_else(|| Error::Op(length_out_of_range(length.into(), place, steps)))
    };
    try_list(lengths.iter().enumerate().map(within))
}

/// The required element type and sizes of an input.
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
        bail!("{} is {}; it must be {}", NAMES[i], Type::Tensor(found.clone()), Type::Tensor(expected))
    }

    /// Whether all sizes are known, and an array has exactly these.
    pub fn is_met(&self, array: &Array) -> bool {
        array.dtype() == self.dtype
            && array.dims().iter().map(|&size| Some(size)).eq(self.sizes[..self.rank].iter().copied())
    }
}
