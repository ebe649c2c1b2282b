//! What crosses the border of a run on a GPU: outputs that no step reads on the host, and inputs that none reads there.

use std::collections::HashSet;

use super::{Operand, PreparedBlock, PreparedStep};
use crate::device::{Needs, TRANSFER};

impl PreparedBlock {
    /// Finds the steps that bring an output to the host, which no other step reads there.
    pub fn find_deliveries(&mut self) {
        let given: HashSet<u32> = self.outputs.iter().filter_map(|output| output.slot()).collect();
        let read: HashSet<u32> = self.steps.iter().flat_map(|step| &step.inputs).filter_map(Operand::slot).collect();
        let delivers = |slot: &Option<u32>| slot.is_some_and(|slot| given.contains(&slot) && !read.contains(&slot));
        for step in self.steps.iter_mut().filter(|step| step.is_transfer()) {
            step.delivers = step.outputs.iter().all(delivers) && step.inputs.iter().all(|input| input.slot().is_some());
        }
    }

    /// Whether a step reads the elements of an input of the plan where it is given, and does not only move them.
    pub fn reads(&self, slot: u32) -> bool {
        let reads = |step: &PreparedStep| {
            let inputs = step.inputs.iter().enumerate().filter(|(_, input)| input.slot() == Some(slot));
            inputs.map(|(i, _)| step.kernel.needs(i)).any(|needs| needs != Needs::Dims)
        };
        self.steps.iter().any(|step| !step.is_transfer() && reads(step))
    }
}

impl Operand {
    /// The slot that the input is in.
    fn slot(&self) -> Option<u32> {
        match *self {
            Operand::Slot(slot) | Operand::Dying(slot) => Some(slot),
            Operand::Constant(_) | Operand::Absent => None,
        }
    }
}

impl PreparedStep {
    /// Whether prepare added it to move a value to the device, or to the host.
    fn is_transfer(&self) -> bool {
        self.added && self.name == TRANSFER
    }
}
