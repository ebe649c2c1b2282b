//! Fused elementwise functions.

use candle_plan_descriptors::program::{Program, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::broadcast::shape_of;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// The result of a program on `float32` inputs, which broadcast to one shape as NumPy does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elementwise {
    /// The program for each element; it begins with `Load`.
    pub program: Program,
}

/// The maximum number of inputs of a step.
const MAX_INPUTS: usize = 32;

impl Operator for Elementwise {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=MAX_INPUTS)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        self.program.check(Start::Empty, inputs.len()).map_err(|error| Error::op(error.to_string()))?;
        let types = (0..inputs.len()).map(|i| inputs.tensor(i)).collect::<Result<Vec<_>>>()?;
        if let Some(other) = types.iter().find(|kind| kind.dtype != DType::Float32) {
            bail!("a program computes with float32, not {}", other.dtype);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Float32, shape: shape_of(&types)? })])
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
