//! Determinants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// `Y [..]`, the determinant of each matrix of the floating-point tensor `X [.., M, M]`. It is computed in float64 by
/// elimination with row pivots.
///
/// Source: [ONNX Det](https://onnx.ai/onnx/operators/onnx__Det.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Det {}

impl Operator for Det {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let sides = x.rank().map(|rank| (rank >= 2).then(|| (x.size(rank - 2), x.size(rank - 1))));
        let is_square = match sides {
            Some(Some((Some(rows), Some(columns)))) => rows == columns,
            Some(None) => false,
            _ => true,
        };
        if !x.dtype.is_float() || x.dtype.is_small_float() || !is_square {
            bail!("expected square matrices of floating-point numbers, found {}", inputs.get(0)?);
        }
        let shape = x.shape.as_ref().map(|shape| shape[..shape.len() - 2].to_vec());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }
}
