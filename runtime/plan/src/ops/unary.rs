//! Elementwise functions of one input.

use candle_plan_descriptors::program::Unary as Function;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// `Y = function(X)`, element by element; `IsNaN` and `IsInf` give booleans.
///
/// Every function except `Not` and `BitwiseNot` supports floating point; 16-bit types are computed in `float32` and
/// rounded once. `Abs`, `Neg`, `Sign`, `Square`, `Relu` and `BitwiseNot` support integers, which wrap around. `Not`
/// supports booleans. `IsNaN` and `IsInf` also support 8-bit and 4-bit floating point. Source: the
/// [ONNX operators](https://onnx.ai/onnx/operators/) with the functions' names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unary {
    /// The function.
    pub function: Function,
}

impl Operator for Unary {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if !self.is_defined_for(x.dtype) {
            bail!("{:?} is not defined for {}", self.function, x.dtype);
        }
        let dtype = if self.is_predicate() { DType::Bool } else { x.dtype };
        Ok(vec![Type::Tensor(TensorType { dtype, shape: x.shape.clone() })])
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

impl Unary {
    pub(crate) fn is_predicate(&self) -> bool {
        matches!(self.function, Function::IsNaN | Function::IsInf { .. })
    }

    fn is_defined_for(&self, dtype: DType) -> bool {
        use DType::*;
        match self.function {
            Function::Not => dtype == Bool,
            Function::BitwiseNot => is_computed(dtype),
            Function::IsNaN | Function::IsInf { .. } => dtype.is_float(),
            Function::Abs | Function::Neg | Function::Sign | Function::Square | Function::Relu => {
                is_computed(dtype) || dtype.is_float() && !dtype.is_small_float()
            }
            _ => matches!(dtype, Float16 | Bfloat16 | Float32 | Float64),
        }
    }
}

/// Whether a dtype is an integer with arithmetic.
pub(crate) fn is_computed(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64)
}
