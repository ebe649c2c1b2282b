//! Counts of n-grams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// Counts each n-gram of a pool in each row of `X [C]` or `[N, C]`: `Y: float32 [columns]` or `[N, columns]`.
///
/// An n-gram is `n` elements of the row at equal distances, from 1 (neighbors) up to `max_skips + 1`; n-grams of one
/// element count once. Inputs: `X`, of int32, int64 or strings; `pool: [P]`, of int64 or strings, the n-grams one after
/// another, by increasing `n`; `starts: int64 [n]`, the positions in the pool where the n-grams of 1, 2 … elements
/// begin; `columns: int64`, the column of `Y` for each n-gram.
///
/// Source: [ONNX TfIdfVectorizer](https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TfIdfVectorizer {
    /// The minimum number of elements of an n-gram that counts.
    pub shortest: usize,
    /// The maximum number of elements of an n-gram that counts.
    pub longest: usize,
    /// The maximum number of elements to skip between two elements of an n-gram.
    pub max_skips: usize,
    /// The number of columns.
    pub columns: usize,
}

impl Operator for TfIdfVectorizer {
    fn arity(&self) -> Arity {
        Arity::exact(4, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, pool) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let fits = match pool.dtype {
            DType::String => x.dtype == DType::String,
            DType::Int64 => matches!(x.dtype, DType::Int32 | DType::Int64),
            _ => false,
        };
        if !fits || x.rank().is_some_and(|rank| rank == 0 || rank > 2) {
            bail!("a pool of {} does not fit {}", pool.dtype, inputs.get(0)?);
        }
        let mut shape = x.shape.clone();
        if let Some(last) = shape.as_mut().and_then(|shape| shape.last_mut()) {
            *last = Some(Dim::Size(self.columns));
        }
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Float32, shape })])
    }
}
