//! The description of a prepared plan: its steps, and their inputs and outputs.

use serde::Serialize;

use crate::form::{Alternative, KernelForm};
use crate::ids::StepId;
use crate::layout::Layout;

/// A prepared plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prepared {
    /// The instruction set that kernels use.
    pub isa: &'static str,
    /// The number of channels in a block of channels.
    pub block: usize,
    /// The bytes of the constants, without those of the packed ones.
    pub constant_bytes: usize,
    /// The bytes of the packed constants.
    pub packed_bytes: usize,
    /// The most bytes that the plan's values hold at once, over the steps whose bytes are known.
    pub peak_bytes: usize,
    /// The number of the plan's steps whose bytes are unknown.
    pub unknown_steps: usize,
    /// The steps in order; the steps of a block follow the step that runs it.
    pub steps: Vec<StepForm>,
    /// The pairs of the state, in the order of the plan.
    pub state: Vec<PairForm>,
}

/// A pair of the state: an output of a run, and the input of the next run that takes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairForm {
    /// The output.
    pub output: String,
    /// The input.
    pub input: String,
    /// Whether a run with a state writes only the new rows, into the storage of the state.
    pub in_place: bool,
    /// The steps that read a copy of such a value, because their kernels cannot read rows with spare elements between them.
    /// If only one row of outer dimensions has elements, the copy is a view. An If stands for the steps in its branches.
    pub copies: Vec<StepId>,
}

/// A prepared step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepForm {
    /// Its place in the plan's block; a step that prepare added has the place of the step that it serves.
    pub index: StepId,
    /// The op's name.
    pub op: &'static str,
    /// 0 for a step of the plan itself, `n + 1` for one of a block that a step of depth `n` runs.
    pub depth: usize,
    /// Where the step came from.
    pub origin: String,
    /// Whether prepare added it.
    pub added: bool,
    /// How it runs.
    #[serde(flatten)]
    pub form: KernelForm,
    /// One entry per input; `None` for an absent one.
    pub inputs: Vec<Option<Slot>>,
    /// One entry per output; `None` for an unused one.
    pub outputs: Vec<Option<Slot>>,
    /// The values that no later step reads.
    pub dies: Vec<String>,
    /// The inputs whose storage the kernel reuses for an output 0 of the same type, if nothing else needs it.
    pub in_place: Vec<usize>,
    /// The inputs whose storage its outputs may share.
    pub shares: Vec<usize>,
    /// An upper bound on the bytes that the values of its block and the scratch of its kernel hold while it runs,
    /// without constants. `None` if a size is unknown, such as that of strings, if the kernel states no bound of its
    /// scratch, or if the step runs blocks.
    pub alive_bytes: Option<usize>,
    /// The multiplications and additions of its formula, as in [`Work`](crate::work::Work), without those of its blocks.
    /// `None` if they depend on unknown sizes.
    pub operations: Option<u64>,
    /// The forms that a planner compared, for a convolution or a matrix product.
    pub alternatives: Vec<Alternative>,
}

/// An input or an output of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slot {
    /// Its number in the plan's block, and its name if it has one: `%3:relu`.
    pub value: String,
    /// dtype and shape in the plan.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its layout.
    pub layout: Layout,
    /// Its bytes, if its size is known.
    pub bytes: Option<usize>,
    /// Whether it is a constant.
    pub constant: bool,
    /// Whether the step may take over its storage.
    pub taken: bool,
}
