//! What crosses the border of a run on a GPU: outputs that no step reads on the host, and inputs that none reads there.

use std::collections::HashSet;

use super::{Operand, PreparedBlock, PreparedStep, SlotId};
use crate::gpu::TRANSFER;
use crate::operator::Needs;

impl PreparedBlock {
    /// Finds the steps that bring an output to the host, which no other step reads there.
    pub fn find_deliveries(&mut self) {
        let given: HashSet<SlotId> = self.outputs.iter().filter_map(|output| output.slot()).collect();
        let read: HashSet<SlotId> = self.steps.iter().flat_map(|step| &step.inputs).filter_map(Operand::slot).collect();
        let delivers = |slot: &Option<SlotId>| slot.is_some_and(|slot| given.contains(&slot) && !read.contains(&slot));
        for step in self.steps.iter_mut().filter(|step| step.is_transfer()) {
            step.delivers = step.outputs.iter().all(delivers) && step.inputs.iter().all(|input| input.slot().is_some());
        }
    }

    /// Whether a step reads the elements of an input of the plan where it is given, and does not only move or view them.
    pub fn reads(&self, slot: SlotId) -> bool {
        let mut views = HashSet::from([slot]);
        let mut steps = self.steps.iter().filter(|step| !step.is_transfer());
        steps.any(|step| step.reads_any(&mut views))
    }
}

impl Operand {
    /// The slot that the input is in.
    fn slot(&self) -> Option<SlotId> {
        match *self {
            Operand::Slot(slot) | Operand::Dying(slot) => Some(slot),
            Operand::Constant(_) | Operand::Absent => None,
        }
    }
}

impl PreparedStep {
    /// Whether it reads the elements of one of these slots; where it makes a view of one, the view is one of them too.
    fn reads_any(&self, views: &mut HashSet<SlotId>) -> bool {
        let is_one = |input: &Operand| input.slot().is_some_and(|slot| views.contains(&slot));
        let inputs = self.inputs.iter().enumerate().filter(|(_, input)| is_one(input));
        let read: Vec<usize> = inputs.map(|(i, _)| i).filter(|&i| self.ops.needs(i) != Needs::Dims).collect();
        let is_view = self.host.is_some_and(|host| host.is_view) && read == [0];
        if is_view {
            views.extend(self.outputs.iter().flatten());
        }
        !read.is_empty() && !is_view
    }

    /// Whether prepare added it to move a value to the device, or to the host.
    fn is_transfer(&self) -> bool {
        self.added && self.name == TRANSFER
    }
}
