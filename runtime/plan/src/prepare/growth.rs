//! Finds the values of the state that grow in place.
//!
//! If a Concat appends rows to an input of the state, and its result is the output that the state takes, a run with a state
//! writes only the new rows, behind the old ones. No other step may read the elements of the input. Steps that read the
//! result get its storage with spare elements between the rows if their kernels can read that, or else a copy.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Operand, PreparedBlock, PreparedStep, SlotId};
use crate::operator::Needs;
use crate::ops::Op;
use crate::plan::{Plan, StatePair};

impl PreparedBlock {
    /// Marks the steps that append rows, and those that read the results. Returns which pairs of the state grow in place.
    pub fn find_growth(&mut self, plan: &Plan) -> Vec<bool> {
        let mut axes = HashMap::new();
        let mut grows = vec![false; plan.state.len()];
        for (at, pair) in plan.state.iter().enumerate() {
            if let Some((step, from_end)) = self.appends(pair, plan) {
                self.steps[step].grows = Some(at);
                axes.insert(SlotId::of(pair.output), from_end);
                grows[at] = true;
            }
        }
        for step in self.steps.iter_mut().filter(|_| !axes.is_empty()) {
            let axis = |slot: &Option<SlotId>| slot.and_then(|slot| axes.get(&slot).copied());
            let packs = |(i, slot)| axis(slot).is_some_and(|from_end| !step.kernel().reads_grown(i, from_end));
            step.packs = step.reads.iter().enumerate().map(packs).collect();
        }
        grows
    }

    /// The step that appends rows to the value of a pair, if the value can grow in place; and its axis, from the end.
    fn appends(&self, pair: &StatePair, plan: &Plan) -> Option<(usize, usize)> {
        let (past, present) = (SlotId::of(pair.input), SlotId::of(pair.output));
        let rank = plan.main.values.get(pair.input.at())?.kind.tensor().ok()?.rank()?;
        let at = self.steps.iter().position(|step| step.outputs.contains(&Some(present)))?;
        let step = &self.steps[at];
        let is_output =
            |output: &Operand| matches!(*output, Operand::Slot(slot) | Operand::Dying(slot) if slot == past);
        let reads_elements = |(other, step): (usize, &PreparedStep)| {
            let mut read = step.reads.iter().enumerate().filter(|(_, slot)| **slot == Some(past));
            other != at && read.any(|(i, _)| step.ops.needs(i) != Needs::Dims || step.ops.shares(i))
        };
        let is_alone = !self.outputs.iter().any(is_output) && !self.steps.iter().enumerate().any(reads_elements);
        let axis = pair.axis?;
        (step.joins(past, axis, rank) && is_alone).then(|| (at, rank - axis))
    }
}

impl PreparedStep {
    /// Whether the step concatenates the value of a slot and another one along an axis.
    fn joins(&self, slot: SlotId, axis: usize, rank: usize) -> bool {
        let Some(Op::Concat(concat)) = self.ops.single().map(Arc::as_ref) else { return false };
        let own = usize::try_from(if concat.axis < 0 { concat.axis + rank as i64 } else { concat.axis });
        let [first, second] = self.reads[..] else { return false };
        own == Ok(axis) && first == Some(slot) && second != Some(slot) && self.channels.iter().all(Option::is_none)
    }
}
