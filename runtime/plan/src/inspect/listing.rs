//! The values of a prepared block: their types, layouts, names and bytes, as far as they are known.

use super::forms::Slot;
use crate::array::Array;
use crate::dtype::DType;
use crate::executable::Executable;
use crate::layout::{type_in_blocks, Layout};
use crate::plan::{Block, ValueInfo};
use crate::prepare::{Operand, PreparedBlock, PreparedStep, SlotId};
use crate::types::{Type, Types};

/// A block of a prepared plan, and the plan's block that it was made from.
pub(super) struct Listing<'a> {
    pub(super) executable: &'a Executable,
    pub(super) plan: &'a Block,
    pub(super) block: &'a PreparedBlock,
    pub(super) depth: usize,
}

impl Listing<'_> {
    pub(super) fn input(&self, step: &PreparedStep, i: usize, operand: Operand) -> Option<Slot> {
        match operand {
            Operand::Absent => None,
            Operand::Slot(slot) => Some(self.slot(slot, false, false)),
            Operand::Dying(slot) => Some(self.slot(slot, false, true)),
            Operand::Constant(_) => step.reads.get(i).copied().flatten().map(|slot| self.slot(slot, true, false)),
        }
    }

    /// Calls `ask` with the types of a step's inputs, in rows, and with its constants.
    pub(super) fn with_types<R>(&self, step: &PreparedStep, ask: impl FnOnce(&Types) -> R) -> R {
        let constant = |operand: &Operand| match *operand {
            Operand::Constant(id) => self.executable.constants.get(id.at()).and_then(|value| value.tensor().ok()),
            _ => None,
        };
        let constants: Vec<Option<&Array>> = step.inputs.iter().map(constant).collect();
        ask(&Types { inputs: &self.input_types(step), constants: &constants, outputs: step.outputs.len() })
    }

    /// The bytes of the outputs that a step computes and no step reads, if they are known.
    pub(super) fn dropped_bytes(&self, step: &PreparedStep) -> Option<usize> {
        if step.outputs.iter().all(Option::is_some) {
            return Some(0);
        }
        let op = step.ops.single()?;
        let made = self.with_types(step, |types| op.infer(types)).ok()?;
        let dropped = made.iter().zip(&step.outputs).filter(|(_, slot)| slot.is_none());
        dropped.map(|(kind, _)| bytes_of(kind)).try_fold(0, |sum: usize, bytes| Some(sum.saturating_add(bytes?)))
    }

    /// The types of a step's inputs, in rows; `None` for an absent one.
    pub(super) fn input_types(&self, step: &PreparedStep) -> Vec<Option<&Type>> {
        let kind = |(i, operand): (usize, &Operand)| match *operand {
            Operand::Absent => None,
            Operand::Slot(slot) | Operand::Dying(slot) => Some(&self.info(slot).kind),
            Operand::Constant(_) => step.reads.get(i).copied().flatten().map(|slot| &self.info(slot).kind),
        };
        step.inputs.iter().enumerate().map(kind).collect()
    }

    pub(super) fn slot(&self, slot: SlotId, constant: bool, taken: bool) -> Slot {
        let layout = self.block.held[slot.at()].layout;
        let kind = self.info(slot).kind.to_string();
        Slot { value: self.name(slot), kind, layout, bytes: self.bytes(slot), constant, taken }
    }

    pub(super) fn info(&self, slot: SlotId) -> &ValueInfo {
        &self.plan.values[self.block.held[slot.at()].value.at()]
    }

    pub(super) fn name(&self, slot: SlotId) -> String {
        let (number, name) = (self.block.held[slot.at()].value.0, &self.info(slot).name);
        if name.is_empty() {
            format!("%{number}")
        } else {
            format!("%{number}:{name}")
        }
    }

    /// The bytes of a slot's value, if its size is known.
    pub(super) fn bytes(&self, slot: SlotId) -> Option<usize> {
        match (self.block.held[slot.at()].layout, &self.info(slot).kind) {
            (Layout::Blocks, Type::Tensor(tensor)) => {
                bytes_of(&Type::Tensor(type_in_blocks(tensor, self.executable.blocking)))
            }
            (_, kind) => bytes_of(kind),
        }
    }
}

/// The bytes of a value of this type, if its size is known. The size of strings depends on their lengths.
fn bytes_of(kind: &Type) -> Option<usize> {
    let tensor = kind.tensor().ok().filter(|tensor| tensor.dtype != DType::String)?;
    tensor.sizes().map(|_| tensor.bytes())
}

/// Whether the kernel of a step takes the storage of input `i`.
pub(super) fn takes(step: &PreparedStep, inputs: &[Option<&Type>], i: usize) -> bool {
    let dtype = inputs[i].and_then(|kind| kind.tensor().ok()).map(|tensor| tensor.dtype);
    dtype.is_some_and(|dtype| step.kernel().takes(i, dtype))
}
