//! The schema of a plan: everything that the file holds.
//!
//! A plan is one safetensors file. Its metadata has `format` = [`FORMAT`], `plan_version` and `plan`, the canonical
//! JSON of [`Plan`] (sorted keys, no white space). Its tensors are the numeric constants, named by their index.
//! `plan.schema.json` and the modules of `compiler/plan/ops/` are generated from these types (`make generate`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::ids::{ConstantId, OriginId, StepId, ValueId};
use crate::ops::block;
pub use crate::ops::block::{ConstantValue, ValueInfo, MAX_DEPTH};
use crate::ops::Op;
use crate::types::Type;
use crate::value::{Array, Value};

/// The value of the metadata key `format`.
pub const FORMAT: &str = "candle-plan";

/// The newest version that this crate reads and the only one that the compiler writes.
pub const VERSION: u32 = 1;

/// A graph of a plan.
pub type Block = block::Block<Op>;

/// One operation of a plan.
pub type Step = block::Step<Op>;

/// A compiled model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The model's graph. Its inputs and outputs are the plan's.
    pub main: Block,
    /// The constants that steps refer to by index; the numeric ones are the file's tensors of the same index.
    pub constants: Vec<Constant>,
    /// The origins of steps; steps refer to these by index.
    pub origins: Vec<Origin>,
    /// The passes that ran, in order.
    pub passes: Vec<String>,
    /// SHA-256 of the model file the plan was compiled from, in hexadecimal.
    pub source_sha256: String,
    /// The most bytes that the values of a run may hold at once, beside the constants; null for no bound.
    pub max_memory: Option<usize>,
    /// The model's own metadata (`metadata_props`).
    pub metadata: BTreeMap<String, String>,
    /// The outputs that a caller would feed back as inputs of its next run; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StatePair>,
    /// The constants that are weights of the model, which a session may replace; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<NamedWeight>,
    /// The checksum of the plan's file, in hexadecimal; empty for a plan without a file.
    #[serde(skip)]
    pub sha256: String,
}

/// An output of the plan that is an input of its next run with the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatePair {
    /// The output, a value of the main block.
    pub output: ValueId,
    /// The input, a value of the main block.
    pub input: ValueId,
    /// The axis along which the value grows from run to run; null if none is known to grow.
    pub axis: Option<usize>,
}

/// A constant that is a weight of the model, with its elements. No decision of the compiler depends on the elements, so
/// that the plan computes the model with any other ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedWeight {
    /// The name that the model gives it.
    pub name: String,
    /// The constant, which is no other weight.
    pub constant: ConstantId,
}

/// A constant, with its dtype and shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Constant {
    /// A tensor of the file, named by this constant's index in decimal.
    Tensor(crate::types::TensorType),
    /// Strings, in row-major order.
    Strings {
        /// The dimensions.
        shape: Vec<usize>,
        /// The elements.
        data: Vec<String>,
    },
}

/// The origin of a step: the nodes of the model that it computes, and the source lines that made them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The ONNX nodes, as `Conv(encoder.0.conv)`.
    pub nodes: Vec<String>,
    /// The path of the PyTorch module, as `encoder.0.conv`; empty if the model does not record it.
    pub module: String,
    /// File and line, relative to the project, as `model.py:118 in UNet3D.forward`; empty if the model does not record
    /// them.
    pub source: String,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [self.nodes.join(" + "), self.module.clone(), self.source.clone()];
        f.write_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
    }
}

impl Plan {
    /// The names, types and indices of the named constants of the main block. Prepare adds constants, which are not in the
    /// plan's list.
    pub(crate) fn named_constants(&self) -> impl Iterator<Item = (&str, &Type, usize)> {
        self.main.constants.iter().filter_map(|entry| {
            let info = self.main.values.get(entry.value.at())?;
            let is_listed = entry.constant.at() < self.constants.len() && !info.name.is_empty();
            is_listed.then_some((info.name.as_str(), &info.kind, entry.constant.at()))
        })
    }

    /// The named numeric constants among `constants`, which are those of the plan.
    pub(crate) fn arrays(&self, constants: &[Value]) -> BTreeMap<String, Array> {
        let numeric = self.named_constants().filter_map(|(name, _, at)| match constants.get(at) {
            Some(Value::Tensor(array)) => Some((name.to_string(), array.clone())),
            _ => None,
        });
        numeric.collect()
    }
}

/// The JSON schema of `Plan`, which is the content of `plan.schema.json`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Plan);
    format!("{:#}\n", schema.as_value())
}
