//! Values passed on unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::on_device;
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::Type;
use crate::value::Value;

/// `Y = X`, for a value of any kind, sharing storage. Source: [ONNX
/// Identity](https://onnx.ai/onnx/operators/onnx__Identity.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {}

impl Kernel for Identity {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        Ok(vec![inputs.get(0)?.clone()])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!(View);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![call.value(0)?.clone()])
    }
}
