//! Values that may be there or not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::device::on_device;
use crate::dtype::Bool;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::Type;
use crate::value::{Array, Value};

/// The input as an optional that holds it; without an input, an optional that holds nothing.
///
/// Source: [ONNX Optional](https://onnx.ai/onnx/operators/onnx__Optional.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Optional {
    /// The type of what the optional could hold; needed when there is no input.
    #[serde(rename = "type")]
    pub kind: Option<Type>,
}

impl Kernel for Optional {
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

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![call.optional(0).cloned().unwrap_or(Value::None)])
    }
}

/// Whether the input is there and, if it is an optional, holds something: `bool []`.
///
/// Source: [ONNX OptionalHasElement](https://onnx.ai/onnx/operators/onnx__OptionalHasElement.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionalHasElement {}

impl Kernel for OptionalHasElement {
    fn arity(&self) -> Arity {
        Arity::inputs(0..=1)
    }

    fn infer(&self, _: &Types) -> Result<Vec<Type>> {
        Ok(vec![Type::ranked(DType::Bool, 0)])
    }

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let holds = !matches!(call.optional(0), None | Some(Value::None));
        Ok(vec![Array::scalar(Bool::from(holds)).into()])
    }
}

/// What an optional holds, which must be something; a value that is no optional is passed on.
///
/// Source: [ONNX OptionalGetElement](https://onnx.ai/onnx/operators/onnx__OptionalGetElement.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionalGetElement {}

impl Kernel for OptionalGetElement {
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

    on_device!(Host);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        match call.value(0)? {
            Value::None => bail!("the optional holds nothing"),
            value => Ok(vec![value.clone()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn optionals() {
        let kind = Some(Type::any(DType::Int8));
        let full = run(&Optional { kind: kind.clone() }, &[Some(tensor(&[1i8], &[1]))]).expect("int8 fits");
        let empty = run(&Optional { kind: kind.clone() }, &[]).expect("the type is given");
        assert!(run(&Optional { kind: None }, &[]).is_err());
        assert!(run(&Optional { kind }, &[Some(tensor(&[1f32], &[1]))]).is_err());

        let holds = |inputs: &[Option<Value>]| {
            let y = run(&OptionalHasElement {}, inputs).expect("any input");
            y.tensor().expect("a tensor").to_i64().expect("bool")[0]
        };
        assert_eq!([holds(&[Some(full.clone())]), holds(&[Some(empty.clone())]), holds(&[])], [1, 0, 0]);
        assert!(run(&OptionalGetElement {}, &[Some(full)]).is_ok());
        assert!(run(&OptionalGetElement {}, &[Some(empty)]).is_err());
    }
}
