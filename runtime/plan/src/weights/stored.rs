//! The tensors of a file of weights, for a compiler that stores them in plans.

use super::named::Weights;
use super::products::codes;
use super::replace::dequantized;
use super::weight::Weight;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::value::Array;

/// The tensors of [`Weights`] that a file holds.
pub trait Stored {
    /// The name, the type of the elements, and the shape of each tensor.
    fn kinds(&self) -> Vec<(String, String, Vec<usize>)>;

    /// The numbers and texts that describe a GGUF file, as JSON.
    fn metadata(&self) -> String;

    /// The elements of a tensor. Those of a GGUF file become `float32`.
    ///
    /// # Errors
    /// There is no such tensor, or the host lacks memory.
    fn elements(&self, name: &str) -> Result<Array>;

    /// The bits of a code, and the constants of a product with a transposed matrix: codes, scales and, in a type with minima,
    /// zero points. `None` for a tensor that is no matrix of codes.
    ///
    /// # Errors
    /// There is no such tensor, or the host lacks memory.
    fn codes(&self, name: &str) -> Result<Option<(usize, Vec<Array>)>>;
}

impl Stored for Weights {
    fn kinds(&self) -> Vec<(String, String, Vec<usize>)> {
        let described = self.tensors.iter().map(|(name, weight)| (name, weight.kind()));
        described.map(|(name, (kind, dims))| (name.clone(), kind, dims.to_vec())).collect()
    }

    fn metadata(&self) -> String {
        serde_json::json!(self.metadata).to_string()
    }

    fn elements(&self, name: &str) -> Result<Array> {
        match weight(self, name)? {
            Weight::Array(array) => Ok(array.clone()),
            Weight::Quantized(tensor) => dequantized(tensor, DType::Float32),
        }
    }

    fn codes(&self, name: &str) -> Result<Option<(usize, Vec<Array>)>> {
        match weight(self, name)? {
            Weight::Array(_) => Ok(None),
            Weight::Quantized(tensor) => codes(tensor),
        }
    }
}

fn weight<'a>(weights: &'a Weights, name: &str) -> Result<&'a Weight> {
    weights.tensors.get(name).ok_or_else(|| Error::op(format!("the file has no tensor {name:?}")))
}
