//! The elements of one weight.

use std::sync::Arc;

use candle_core::quantized::QTensor;

use crate::error::{Error, ErrorKind};
use crate::value::Array;

/// The elements of a weight.
#[derive(Clone)]
pub(super) enum Weight {
    Array(Array),
    /// A tensor of a GGUF file, in any of its types.
    Quantized(Arc<QTensor>),
}

impl Weight {
    /// The type of the elements, and the shape.
    pub fn kind(&self) -> (String, &[usize]) {
        match self {
            Weight::Array(array) => (array.dtype().to_string(), array.dims()),
            Weight::Quantized(tensor) => (format!("{:?}", tensor.dtype()), tensor.shape().dims()),
        }
    }
}

/// The error of a session that lacks memory for its weights.
pub(super) fn no_memory(reason: String) -> Error {
    Error::Read { kind: ErrorKind::Memory, reason: format!("its weights need more memory: {reason}") }
}

pub(super) fn unreadable(error: std::io::Error) -> Error {
    Error::op(format!("it cannot be read to its end: {error}"))
}
