//! Counts of runs of words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// How often each n-gram of a pool occurs in each row of `X [C]` or `[N, C]`: `Y: float32 [columns]` or `[N, columns]`.
///
/// An n-gram is `n` elements of the row at equal distances, from 1 (neighbors) up to `max_skips + 1`; those of one element
/// count once. Inputs: `X`, of int32, int64 or strings; `pool: [P]` of int64 or strings, the n-grams one after the other,
/// by rising `n`; `starts: int64 [n]`, where in the pool those of 1, 2 … elements begin; and `columns: int64`, the column
/// of `Y` that each n-gram counts in.
///
/// Source: [ONNX TfIdfVectorizer](https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TfIdfVectorizer {
    /// The fewest elements of an n-gram that counts.
    pub shortest: usize,
    /// The most elements of an n-gram that counts.
    pub longest: usize,
    /// How many elements may be left out between two of an n-gram.
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
            bail!("a pool of {} is not for {}", pool.dtype, inputs.get(0)?);
        }
        let mut shape = x.shape.clone();
        if let Some(last) = shape.as_mut().and_then(|shape| shape.last_mut()) {
            *last = Some(Dim::Size(self.columns));
        }
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Float32, shape })])
    }
}
