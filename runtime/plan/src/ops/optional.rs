//! Optionals: values that may be absent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Arity, Operator, OperatorKind};
use crate::types::{Type, Types};

/// An optional that holds the input, or that holds nothing if there is no input.
///
/// Source: [ONNX Optional](https://onnx.ai/onnx/operators/onnx__Optional.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Optional {
    /// The type of the optional's value; needed if there is no input.
    #[serde(rename = "type")]
    pub kind: Option<Type>,
}

impl Operator for Optional {
    fn arity(&self) -> Arity {
        Arity::inputs(0..=1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        match (inputs.optional(0), &self.kind) {
            (Some(given), Some(kind)) if !given.agrees_with(kind) => bail!("an optional {kind} cannot hold {given}"),
            (Some(kind), _) | (None, Some(kind)) => Ok(vec![Type::Optional(Box::new(kind.clone()))]),
            (None, None) => bail!("an optional without a value needs a type"),
        }
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Whether the input is present and, if it is an optional, holds a value: `bool []`.
///
/// Source: [ONNX OptionalHasElement](https://onnx.ai/onnx/operators/onnx__OptionalHasElement.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionalHasElement {}

impl Operator for OptionalHasElement {
    fn arity(&self) -> Arity {
        Arity::inputs(0..=1)
    }

    fn infer(&self, _: &Types) -> Result<Vec<Type>> {
        Ok(vec![Type::ranked(DType::Bool, 0)])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// The value of an optional, which must hold one. A value that is not an optional is passed on.
///
/// Source: [ONNX OptionalGetElement](https://onnx.ai/onnx/operators/onnx__OptionalGetElement.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionalGetElement {}

impl Operator for OptionalGetElement {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        Ok(vec![match inputs.get(0)? {
            Type::Optional(kind) => (**kind).clone(),
            kind => kind.clone(),
        }])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}
