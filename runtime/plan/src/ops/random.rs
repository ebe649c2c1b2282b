//! Random numbers, the same on every machine. Each step has its own seed of a ChaCha8 generator, and takes the
//! generator's streams in turn. The first run of every session draws the same numbers; later runs and iterations draw
//! others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// Normally distributed numbers of mean `mean` and standard deviation `scale`, in the shape of input 0,
/// `shape: int64 [rank]`.
///
/// Source: [ONNX RandomNormal](https://onnx.ai/onnx/operators/onnx__RandomNormal.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomNormal {
    /// The element type.
    pub dtype: DType,
    /// The mean.
    pub mean: f32,
    /// The standard deviation.
    pub scale: f32,
    /// The seed of the generator.
    pub seed: u64,
}

/// Uniformly distributed numbers from `low` to `high`, in the shape of input 0, `shape: int64 [rank]`.
///
/// Source: [ONNX RandomUniform](https://onnx.ai/onnx/operators/onnx__RandomUniform.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomUniform {
    /// The element type.
    pub dtype: DType,
    /// The lower bound.
    pub low: f32,
    /// The upper bound.
    pub high: f32,
    /// The seed of the generator.
    pub seed: u64,
}

macro_rules! operator {
    ($Op:ident) => {
        impl Operator for $Op {
            fn arity(&self) -> Arity {
                Arity::exact(1, 1)
            }

            fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
                shaped(self.dtype, inputs)
            }

            fn needs(&self, _input: usize) -> Needs {
                Needs::Numbers
            }
        }
    };
}

operator! { RandomNormal }
operator! { RandomUniform }

/// Draws `samples` classes for each row of `X [B, C]`, which holds unnormalized logarithms of the classes'
/// probabilities. The result is `Y [B, samples]`.
///
/// Source: [ONNX Multinomial](https://onnx.ai/onnx/operators/onnx__Multinomial.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multinomial {
    /// The element type of the classes: `int32` or `int64`.
    pub dtype: DType,
    /// The number of classes to draw per row.
    pub samples: usize,
    /// The seed of the generator.
    pub seed: u64,
}

impl Operator for Multinomial {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.rank().is_some_and(|rank| rank != 2) || !x.dtype.is_float() || x.dtype.is_small_float() {
            bail!("expected float [B, C], found {}", inputs.get(0)?);
        }
        if !matches!(self.dtype, DType::Int32 | DType::Int64) {
            bail!("classes must be int32 or int64, not {}", self.dtype);
        }
        let rows = x.shape.as_ref().and_then(|shape| shape[0].clone());
        let shape = Some(vec![rows, Some(Dim::Size(self.samples))]);
        Ok(vec![Type::Tensor(TensorType { dtype: self.dtype, shape })])
    }
}

/// The type of a tensor whose shape is input 0.
fn shaped(dtype: DType, inputs: &Types) -> Result<Vec<Type>> {
    let rank = axes::length(inputs.tensor(0)?)?;
    if !dtype.is_float() || dtype.is_small_float() {
        bail!("random numbers must be float16, bfloat16, float32 or float64, not {dtype}");
    }
    Ok(vec![Type::Tensor(match axes::constant_dims(inputs, 0)? {
        Some(dims) => TensorType::sized(dtype, &dims),
        None => TensorType { dtype, shape: shape_of_rank(rank) },
    })])
}
