//! The schema of a plan: what the file holds, and all of it.
//!
//! A plan is one safetensors file. Its metadata has `format` = [`FORMAT`], `plan_version` and `plan`, the canonical JSON
//! of [`Plan`] (sorted keys, no white space). Its tensors are the numeric constants, named by their index.
//! `plan.schema.json` and `compiler/plan/ops.py` are generated from these types (`make generate`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ops::Op;
use crate::types::Type;

/// The value of the metadata key `format`.
pub const FORMAT: &str = "candle-plan";

/// The newest version that this crate reads and the only one that the compiler writes.
pub const VERSION: u32 = 1;

/// How deep blocks may nest: as deep as a JSON reader follows that allows 128 levels, of which a block takes five.
pub const MAX_DEPTH: usize = 20;

/// A compiled model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The model's graph. Its inputs and outputs are the plan's.
    pub main: Block,
    /// The constants that steps refer to by index; the numeric ones are the file's tensors of the same index.
    pub constants: Vec<Constant>,
    /// Where steps came from; steps refer to these by index.
    pub origins: Vec<Origin>,
    /// The passes that ran, in order.
    pub passes: Vec<String>,
    /// SHA-256 of the model file the plan was compiled from, in hexadecimal.
    pub source_sha256: String,
    /// The most bytes that the values of a run may hold at once, beside the constants; null: as many as there are.
    pub max_memory: Option<usize>,
    /// The model's own metadata (`metadata_props`).
    pub metadata: BTreeMap<String, String>,
}

/// A graph: the model's, or a nested one of a control-flow op. It sees its own values only.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Every value of the block; everything else refers to values by their index here.
    pub values: Vec<ValueInfo>,
    /// The values that the caller gives.
    pub inputs: Vec<ValueId>,
    /// The values that are constants.
    pub constants: Vec<ConstantValue>,
    /// What is computed, in order: a step's inputs stand before it.
    pub steps: Vec<Step>,
    /// The values that the caller gets.
    pub outputs: Vec<ValueId>,
}

impl Block {
    /// How deep blocks nest in this one: 0 where there is none.
    pub fn depth(&self) -> usize {
        let nested = self.steps.iter().flat_map(|step| step.op.kernel().blocks());
        nested.map(|block| 1 + block.depth()).max().unwrap_or(0)
    }
}

/// The index of a value in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ValueId(pub u32);

/// The index of a constant in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ConstantId(pub u32);

/// The index of an origin in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct OriginId(pub u32);

/// A value's name in the model (empty where a pass made it) and its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ValueInfo {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
}

/// A value that is a constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ConstantValue {
    pub value: ValueId,
    pub constant: ConstantId,
}

/// A constant: its type says dtype and shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Constant {
    /// A tensor of the file, by this constant's index in decimal.
    Tensor(crate::types::TensorType),
    /// Strings, in row-major order.
    Strings {
        /// The dimensions.
        shape: Vec<usize>,
        /// The elements.
        data: Vec<String>,
    },
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub op: Op,
    /// The inputs; `null` for an optional one that is absent.
    pub inputs: Vec<Option<ValueId>>,
    /// The outputs; `null` for one that nobody uses.
    pub outputs: Vec<Option<ValueId>>,
    /// Where the step came from.
    pub origin: OriginId,
}

/// Where a step came from: the nodes of the model that it does the work of, and the source lines that made them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The ONNX nodes, as `Conv(encoder.0.conv)`.
    pub nodes: Vec<String>,
    /// The path of the PyTorch module, as `encoder.0.conv`; empty where the model does not say.
    pub module: String,
    /// File and line, relative to the project, as `model.py:118 in UNet3D.forward`; empty where the model does not say.
    pub source: String,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [self.nodes.join(" + "), self.module.clone(), self.source.clone()];
        f.write_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
    }
}

/// The JSON schema of [`Plan`]: what `plan.schema.json` holds.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Plan);
    format!("{:#}\n", schema.as_value())
}
