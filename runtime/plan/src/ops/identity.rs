//! Values that are passed on unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::operator::{Arity, Operator, OperatorKind};
use crate::types::{Type, Types};

/// `Y = X`, for a value of any kind. `Y` shares the storage of `X`. Source:
/// [ONNX Identity](https://onnx.ai/onnx/operators/onnx__Identity.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {}

impl Operator for Identity {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        Ok(vec![inputs.get(0)?.clone()])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> OperatorKind {
        OperatorKind::View
    }

    fn is_foldable(&self) -> bool {
        true
    }
}
