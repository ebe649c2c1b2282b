//! Values at the border of a run on a GPU: outputs that no step reads on the host, and inputs that some step reads
//! there.

use std::collections::HashSet;

use super::{Operand, PreparedBlock, PreparedStep, SlotId};
use crate::gpu::TRANSFER;
use crate::operator::Needs;

impl PreparedBlock {
    /// Marks the transfers to the host that only deliver an output: no step reads the output on the host.
    pub fn find_deliveries(&mut self) {
        let outputs: HashSet<SlotId> = self.outputs.iter().filter_map(|output| output.slot()).collect();
        let read: HashSet<SlotId> = self.steps.iter().flat_map(|step| &step.inputs).filter_map(Operand::slot).collect();
        let delivers =
            |slot: &Option<SlotId>| slot.is_some_and(|slot| outputs.contains(&slot) && !read.contains(&slot));
        for step in self.steps.iter_mut().filter(|step| step.is_transfer()) {
            step.delivers = step.outputs.iter().all(delivers) && step.inputs.iter().all(|input| input.slot().is_some());
        }
    }

    /// Whether a step reads the elements of a plan input on the side where the caller provided it. A transfer or a view
    /// does not.
    pub fn reads(&self, slot: SlotId) -> bool {
        let mut views = HashSet::from([slot]);
        let mut steps = self.steps.iter().filter(|step| !step.is_transfer());
        steps.any(|step| step.reads_any(&mut views))
    }
}

impl Operand {
    /// Returns the slot of the input.
    pub(super) fn slot(&self) -> Option<SlotId> {
        match *self {
            Operand::Slot(slot) | Operand::Dying(slot) => Some(slot),
            Operand::Constant(_) | Operand::Absent => None,
        }
    }
}

impl PreparedStep {
    /// Whether the step reads the elements of one of the slots `views`. If it makes a view of one, adds the view.
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

    /// Whether prepare added the step to move a value to the device or to the host.
    pub(super) fn is_transfer(&self) -> bool {
        self.added && self.name == TRANSFER
    }
}
