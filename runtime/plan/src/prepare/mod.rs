//! Plan → executable: everything that can be decided before a run is decided here, once.
//!
//! Constants are prepacked, values that die with a step are listed, and inputs whose storage a step may take over are
//! found ([`lifetime`]).

mod lifetime;

use crate::error::{Error, Result};
use crate::kernel::{Constants, Packed};
use crate::ops::Op;
use crate::plan::{Block, Origin, OriginId, Plan, Step, ValueId};
use crate::types::Type;
use crate::value::Value;
use lifetime::Lifetimes;

/// A plan that is ready to run.
pub struct Executable {
    pub(crate) plan: Plan,
    pub(crate) constants: Vec<Value>,
    pub(crate) main: PreparedBlock,
}

/// A block whose steps are ready to run.
pub(crate) struct PreparedBlock {
    pub steps: Vec<PreparedStep>,
    /// How many values a run holds, dead or alive.
    pub slots: usize,
    pub inputs: Vec<u32>,
    pub outputs: Vec<Operand>,
    /// For each output, whether its storage belongs to it alone: no constant, no input, no other output shares it.
    pub exclusive: Vec<bool>,
}

/// A step that is ready to run.
pub(crate) struct PreparedStep {
    pub index: usize,
    pub op: Op,
    pub inputs: Vec<Operand>,
    pub outputs: Vec<Option<u32>>,
    /// The slots that are free after the step.
    pub drops: Vec<u32>,
    pub packed: Option<Packed>,
    pub blocks: Vec<PreparedBlock>,
    pub origin: OriginId,
}

/// Where a step finds an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// An optional input that is absent.
    Absent,
    /// A constant of the plan.
    Constant(u32),
    /// A slot, whose value is needed later.
    Slot(u32),
    /// A slot, whose value and storage the step may have.
    Dying(u32),
}

impl Executable {
    /// Prepares a plan that was [read](crate::read::read) with its constants.
    ///
    /// # Errors
    /// [`Error::Verify`] with every violation, or with the first step whose constants do not fit its op.
    pub fn prepare(plan: Plan, constants: Vec<Value>) -> Result<Executable> {
        let violations = crate::verify::verify(&plan);
        if !violations.is_empty() {
            return Err(Error::Verify(violations));
        }
        let main = prepare_block(&plan.main, &plan.origins, &constants)?;
        Ok(Executable { plan, constants, main })
    }

    /// The names and types of the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.plan.main.inputs.iter().map(|id| self.describe(*id))
    }

    /// The names and types of the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.plan.main.outputs.iter().map(|id| self.describe(*id))
    }

    /// For each output, whether its storage belongs to it alone, so that the caller may have it.
    pub fn exclusive_outputs(&self) -> &[bool] {
        &self.main.exclusive
    }

    fn describe(&self, id: ValueId) -> (&str, &Type) {
        let info = &self.plan.main.values[id.0 as usize];
        (&info.name, &info.kind)
    }
}

fn prepare_block(block: &Block, origins: &[Origin], constants: &[Value]) -> Result<PreparedBlock> {
    let mut constant_of = vec![None; block.values.len()];
    for entry in &block.constants {
        constant_of[entry.value.0 as usize] = Some(entry.constant.0);
    }
    let lifetimes = Lifetimes::of(block);
    let context = Context { block, origins, constants, constant_of, lifetimes };
    let steps = block.steps.iter().enumerate().map(|(index, step)| context.step(index, step));
    Ok(PreparedBlock {
        steps: steps.collect::<Result<_>>()?,
        slots: block.values.len(),
        inputs: block.inputs.iter().map(|id| id.0).collect(),
        outputs: block.outputs.iter().map(|id| context.operand(*id)).collect(),
        exclusive: block.outputs.iter().map(|id| context.lifetimes.is_exclusive_output(*id)).collect(),
    })
}

struct Context<'a> {
    block: &'a Block,
    origins: &'a [Origin],
    constants: &'a [Value],
    constant_of: Vec<Option<u32>>,
    lifetimes: Lifetimes,
}

impl Context<'_> {
    fn operand(&self, id: ValueId) -> Operand {
        self.constant_of[id.0 as usize].map_or(Operand::Slot(id.0), Operand::Constant)
    }

    fn step(&self, index: usize, step: &Step) -> Result<PreparedStep> {
        let kernel = step.op.kernel();
        let inputs = (0..step.inputs.len()).map(|i| self.input(index, step, i)).collect();
        let values: Vec<Option<&Value>> = step.inputs.iter().map(|id| self.constant(*id)).collect();
        let kind = |id: ValueId| &self.block.values[id.0 as usize].kind;
        let types: Vec<Option<&Type>> = step.inputs.iter().map(|id| id.map(kind)).collect();
        let packed = kernel
            .prepack(&Constants { values: &values, types: &types })
            .map_err(|error| Error::Verify(vec![self.complaint(index, step, &error)]))?;
        let blocks = kernel.blocks().into_iter().map(|nested| prepare_block(nested, self.origins, self.constants));
        Ok(PreparedStep {
            index,
            inputs,
            outputs: step.outputs.iter().map(|id| id.map(|id| id.0)).collect(),
            drops: self.lifetimes.dead_after(index).to_vec(),
            packed,
            blocks: blocks.collect::<Result<_>>()?,
            origin: step.origin,
            op: step.op.clone(),
        })
    }

    /// What an op says of its constants, with the step's place.
    fn complaint(&self, index: usize, step: &Step, error: &Error) -> String {
        let origin = self.origins.get(step.origin.0 as usize).map_or_else(String::new, ToString::to_string);
        let from = if origin.is_empty() { String::new() } else { format!(" from {origin}") };
        format!("step {index} {}{from}: {error}", step.op.name())
    }

    fn constant(&self, id: Option<ValueId>) -> Option<&Value> {
        let constant = self.constant_of[id?.0 as usize]?;
        self.constants.get(constant as usize)
    }

    fn input(&self, index: usize, step: &Step, i: usize) -> Operand {
        match step.inputs[i] {
            None => Operand::Absent,
            Some(id) => match self.operand(id) {
                Operand::Slot(slot)
                    if step.op.kernel().in_place().contains(&i) && self.lifetimes.is_free(index, step, id) =>
                {
                    Operand::Dying(slot)
                }
                operand => operand,
            },
        }
    }
}
