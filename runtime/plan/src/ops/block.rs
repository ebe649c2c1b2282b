//! Blocks: the graphs that a plan consists of. Their steps may have operations of any type `O`.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ConstantId, OriginId, StepId, ValueId};
use crate::types::Type;

/// The maximum depth of nested blocks. A JSON reader allows 128 levels, and a block takes five of them.
pub const MAX_DEPTH: usize = 20;

/// A graph: the main graph of the model, or a nested one of a control-flow op. It sees only its own values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Block")]
pub struct Block<O> {
    /// Every value of the block; everything else refers to values by their index here.
    pub values: Vec<ValueInfo>,
    /// The values that the caller passes in.
    pub inputs: Vec<ValueId>,
    /// The values that are constants.
    pub constants: Vec<ConstantValue>,
    /// The steps, in order. A step's inputs are defined before it.
    pub steps: Vec<Step<O>>,
    /// The values that the caller receives.
    pub outputs: Vec<ValueId>,
}

impl<O> Block<O> {
    /// Returns the steps with a result that is no constant.
    pub(crate) fn unknown_steps(&self) -> impl Iterator<Item = (StepId, &Step<O>)> {
        let constants: HashSet<ValueId> = self.constants.iter().map(|entry| entry.value).collect();
        let is_known = move |step: &Step<O>| {
            let mut results = step.outputs.iter().flatten().peekable();
            results.peek().is_some() && results.all(|value| constants.contains(value))
        };
        (0..).map(StepId).zip(&self.steps).filter(move |(_, step)| !is_known(step))
    }
}

/// A value's name in the model (empty if a pass made the value) and its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ValueInfo {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
}

/// A constant value, and the constant that it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ConstantValue {
    pub value: ValueId,
    pub constant: ConstantId,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub struct Step<O> {
    /// The op.
    pub op: O,
    /// The inputs; `null` for an absent optional one.
    pub inputs: Vec<Option<ValueId>>,
    /// The outputs; `null` for an unused one.
    pub outputs: Vec<Option<ValueId>>,
    /// The origin of the step.
    pub origin: OriginId,
}
