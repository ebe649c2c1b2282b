//! Blocks and steps that are ready to run.

use super::chain::Chain;
use crate::device::Reason;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::layout::{in_rows, Layout};
use crate::operator::Operator;
use crate::ops::Op;
use crate::plan::{ConstantId, OriginId, StepId, ValueId};
use crate::types::{TensorType, Type, Types};
use crate::value::Value;
use crate::work::Work;

/// A block whose steps are ready to run.
pub(crate) struct PreparedBlock {
    pub steps: Vec<PreparedStep>,
    /// What each slot of a run is for.
    pub held: Vec<Held>,
    pub inputs: Vec<SlotId>,
    /// The types of the inputs.
    pub takes: Vec<Type>,
    pub outputs: Vec<Operand>,
}

/// The index of a slot: the values of the plan's block, then those that prepare added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(pub u32);

impl SlotId {
    /// The slot of a value of the plan.
    pub fn of(value: ValueId) -> SlotId {
        SlotId(value.0)
    }

    /// The id as an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The number of a step among all steps of a plan and its blocks, from 1 on: what a kernel on a device leaves where it finds a
/// fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(pub u32);

/// What a slot holds: a value of the plan's block, in a layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub value: ValueId,
    pub layout: Layout,
}

/// A step that is ready to run.
pub(crate) struct PreparedStep {
    /// Its place in the plan's block; a step that prepare added has that of the step which it serves.
    pub index: StepId,
    /// Whether prepare added it.
    pub added: bool,
    pub name: &'static str,
    /// The operators whose work it does.
    pub ops: Chain,
    pub kernel: Box<dyn Kernel>,
    pub inputs: Vec<Operand>,
    /// The slot that is meant for each input; those of constants stay empty.
    pub reads: Vec<Option<SlotId>>,
    pub outputs: Vec<Option<SlotId>>,
    /// The channels of each input that is in blocks of them.
    pub channels: Vec<Option<usize>>,
    /// The slots that are free after the step.
    pub drops: Vec<SlotId>,
    pub blocks: Vec<PreparedBlock>,
    /// Why it runs on the host, where that is not the device.
    pub host: Option<Hosted>,
    /// Whether it brings an output of the plan to the host, which no other step reads there.
    pub delivers: bool,
    /// Its number among all steps of the plan and its blocks, from 1 on.
    pub mark: Mark,
    pub origin: OriginId,
}

/// What is known of a step that runs on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hosted {
    pub reason: Reason,
    /// The bytes that move for it.
    pub bytes: Option<usize>,
    /// Whether its output is a view of its first input, wherever that lies.
    pub is_view: bool,
}

/// Where a step finds an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// An optional input that is absent.
    Absent,
    /// A constant of the plan.
    Constant(ConstantId),
    /// A slot, whose value is needed later.
    Slot(SlotId),
    /// A slot, whose value and storage the step may have.
    Dying(SlotId),
}

impl PreparedBlock {
    /// Calls `look` with every step, each before those of its blocks.
    pub(crate) fn each_step<'a>(&'a self, look: &mut impl FnMut(&'a PreparedStep)) {
        for step in &self.steps {
            look(step);
            step.blocks.iter().for_each(|block| block.each_step(look));
        }
    }

    /// The step of this number, and the blocks that it is in, the outermost first.
    pub(crate) fn marked<'a>(&'a self, mark: Mark) -> Option<(&'a PreparedStep, Vec<String>)> {
        self.steps.iter().find_map(|step| {
            let inside = |(index, block): (usize, &'a PreparedBlock)| {
                let (found, mut within) = block.marked(mark)?;
                within.insert(0, step.block_name(index));
                Some((found, within))
            };
            (step.mark == mark).then(|| (step, Vec::new())).or_else(|| step.blocks.iter().enumerate().find_map(inside))
        })
    }

    /// Numbers the steps after the last number.
    pub(super) fn number(&mut self, last: &mut Mark) {
        for step in &mut self.steps {
            last.0 += 1;
            step.mark = *last;
            step.blocks.iter_mut().for_each(|block| block.number(last));
        }
    }

    /// Forgets the elements of constants that no step reads where they lie: they were brought to the device.
    pub(super) fn release_others(&self, constants: &mut [Value]) {
        let mut is_read = vec![false; constants.len()];
        let mut read = |operand: &Operand| {
            if let Operand::Constant(index) = *operand {
                is_read[index.at()] = true;
            }
        };
        self.each_operand(&mut read);
        for (constant, _) in constants.iter_mut().zip(is_read).filter(|(_, is_read)| !is_read) {
            if let Value::Tensor(array) = constant {
                *array = array.outline();
            }
        }
    }

    fn each_operand(&self, look: &mut impl FnMut(&Operand)) {
        self.outputs.iter().for_each(&mut *look);
        for step in &self.steps {
            step.inputs.iter().for_each(&mut *look);
            step.blocks.iter().for_each(|block| block.each_operand(look));
        }
    }
}

impl PreparedStep {
    /// The operator that the step computes on values in the layout of the plan, if it is one alone.
    pub(crate) fn operator(&self) -> Option<&dyn Operator> {
        let is_in_rows = self.channels.iter().all(Option::is_none);
        self.ops.single().filter(|_| is_in_rows).map(Op::operator)
    }

    /// The work of a run on inputs and outputs of these types, in the layouts in which the step takes and gives them.
    pub(crate) fn work(&self, inputs: &[Option<Type>], outputs: &[Type]) -> Option<Work> {
        let given: Vec<Option<&Type>> = inputs.iter().map(Option::as_ref).collect();
        let given = Types::of(&given, outputs.len());
        if self.ops.is_empty() {
            return Work::moving(&given, outputs);
        }
        if let Some(operator) = self.operator() {
            return operator.work(&given, outputs);
        }
        let rows =
            inputs.iter().enumerate().map(|(i, kind)| kind.as_ref().map(|kind| self.in_rows(i, kind)).transpose());
        let rows: Vec<Option<Type>> = rows.collect::<Result<_>>().ok()?;
        let rows: Vec<Option<&Type>> = rows.iter().map(Option::as_ref).collect();
        self.ops.work(&Types::of(&rows, outputs.len()))
    }

    /// The type of input `i` in rows.
    fn in_rows(&self, i: usize, kind: &Type) -> Result<Type> {
        let Some(channels) = self.channels.get(i).copied().flatten() else { return Ok(kind.clone()) };
        let tensor = kind.tensor()?;
        let sizes = tensor.sizes().ok_or_else(|| Error::op("an image whose sizes are not known"))?;
        Ok(Type::Tensor(TensorType::sized(tensor.dtype, &in_rows(&sizes, channels)?)))
    }

    /// What one of its blocks is called.
    pub(crate) fn block_name(&self, index: usize) -> String {
        format!("block {index} of step {} {}", self.index, self.name)
    }
}
