//! Finds the values of the state that change in place.
//!
//! If a step writes rows into an input of the state, and its result is the output that the state takes, a run with a state
//! writes only these rows, into the storage of the state. No other step may read the elements of the input. Steps that read
//! the result get its storage with spare elements between the rows if their kernels can read that, or else a copy.
//!
//! On a GPU, a value of the state stays there, so the transfers at the border of the plan do nothing in such a run.

use std::collections::{HashMap, HashSet};

use super::{Growth, NodeId, Operand, PreparedBlock, PreparedStep, SlotId};
use crate::ids::PairId;
use crate::operands::rows::{writes_rows, WritesRows};
use crate::operator::Needs;
use crate::plan::{Plan, StatePair};

/// A step that writes rows into a value of the state.
struct Writer {
    step: NodeId,
    axis: usize,
    /// The axis, counted from the end.
    from_end: usize,
    /// The slots of the value before the step: the input of the plan, and its copy on a GPU.
    before: HashSet<SlotId>,
    /// The input of the step with the positions of the rows, if a GPU would read it, and its slot on the host.
    positions: Option<(usize, SlotId)>,
}

impl PreparedBlock {
    /// Marks the steps that write rows, those that read the results, and transfers. Returns which pairs of the state change
    /// in place.
    pub fn find_growth(&mut self, plan: &Plan) -> Vec<bool> {
        let mut axes = HashMap::new();
        let mut grows = vec![false; plan.state.len()];
        for (pair, state) in (0..).map(PairId).zip(&plan.state) {
            let Some(writer) = self.writer(state, plan) else { continue };
            let present = SlotId::of(state.output);
            self.steps[writer.step.at()].grows = Some(Growth { pair, axis: writer.axis });
            for step in self.steps.iter_mut().filter(|step| step.is_transfer()) {
                let read = step.reads.first().copied().flatten();
                step.carries |= read.is_some_and(|slot| slot == present || writer.before.contains(&slot));
            }
            if let Some((input, slot)) = writer.positions {
                self.steps[writer.step.at()].inputs[input] = Operand::Slot(slot);
                self.steps[writer.step.at()].reads[input] = Some(slot);
                self.keep(slot);
            }
            axes.insert(present, writer.from_end);
            grows[pair.at()] = true;
        }
        for step in self.steps.iter_mut().filter(|step| !axes.is_empty() && !step.carries) {
            let axis = |slot: &Option<SlotId>| slot.and_then(|slot| axes.get(&slot).copied());
            let packs = |(i, slot)| axis(slot).is_some_and(|from_end| !step.kernel().reads_grown(i, from_end));
            step.packs = step.reads.iter().enumerate().map(packs).collect();
        }
        grows
    }

    /// The step that writes rows into the value of a pair, if the value can change in place.
    fn writer(&self, pair: &StatePair, plan: &Plan) -> Option<Writer> {
        let (past, present) = (SlotId::of(pair.input), SlotId::of(pair.output));
        let rank = plan.main.values.get(pair.input.at())?.kind.tensor().ok()?.rank()?;
        let (at, step) = self.numbered().find(|(_, step)| step.outputs.contains(&Some(present)))?;
        let is_past = |step: &&PreparedStep| step.is_transfer() && step.reads == [Some(past)];
        let mut before: HashSet<SlotId> = self.steps.iter().filter(is_past).flat_map(|step| step.outputs[0]).collect();
        before.insert(past);
        let axis = step.writes_into(&before, rank).filter(|axis| pair.axis.is_none_or(|own| own == *axis))?;
        let is_output = |output: &Operand| output.slot().is_some_and(|slot| before.contains(&slot));
        let is_read =
            |(other, step): (NodeId, &PreparedStep)| other != at && !is_past(&step) && step.reads_elements(&before);
        let stays = |step: &PreparedStep| !step.is_transfer() || step.delivers || step.reads != [Some(present)];
        if self.outputs.iter().any(is_output) || self.numbered().any(is_read) || !self.steps.iter().all(stays) {
            return None;
        }
        Some(Writer { step: at, axis, from_end: rank - axis, before, positions: self.positions(step)? })
    }

    /// The positions of the rows that a step writes, if they are on the host but a GPU reads a copy; `None` if they are only on
    /// the GPU.
    fn positions(&self, step: &PreparedStep) -> Option<Option<(usize, SlotId)>> {
        let Some((input, slot)) = step.positions() else { return Some(None) };
        let made = self.steps.iter().find(|step| step.is_transfer() && step.outputs == [Some(slot)])?;
        Some(Some((input, made.reads.first().copied().flatten()?)))
    }

    /// Keeps the value of a slot until the end of a run.
    fn keep(&mut self, slot: SlotId) {
        for step in &mut self.steps {
            step.drops.retain(|dropped| *dropped != slot);
            for input in step.inputs.iter_mut().filter(|input| **input == Operand::Dying(slot)) {
                *input = Operand::Slot(slot);
            }
        }
    }
}

impl PreparedStep {
    /// The axis along which the step writes rows into the value in one of the slots, its input 0.
    fn writes_into(&self, slots: &HashSet<SlotId>, rank: usize) -> Option<usize> {
        let axis = self.writes_rows()?.rows_axis(rank, self.reads.len())?;
        let is_value = |slot: &Option<SlotId>| slot.is_some_and(|slot| slots.contains(&slot));
        let is_first = self.reads.iter().enumerate().all(|(i, slot)| is_value(slot) == (i == 0));
        (is_first && self.channels.iter().all(Option::is_none)).then_some(axis)
    }

    /// Whether the step reads elements of one of the slots, or makes a view of it.
    fn reads_elements(&self, slots: &HashSet<SlotId>) -> bool {
        let mut read = self.reads.iter().enumerate().filter(|(_, slot)| slot.is_some_and(|slot| slots.contains(&slot)));
        read.any(|(i, _)| self.ops.needs(i) != Needs::Dims || self.ops.shares(i))
    }

    /// Whether the step reads a copy of the value in a slot, which grows.
    pub fn packs_elements(&self, slot: SlotId) -> bool {
        let mut read = self.reads.iter().zip(&self.packs).enumerate();
        read.any(|(i, (read, packs))| *packs && *read == Some(slot) && self.ops.needs(i) != Needs::Dims)
    }

    /// The input with the positions of the rows that the step writes, and its slot, if the step reads them on a GPU.
    fn positions(&self) -> Option<(usize, SlotId)> {
        let input = self.writes_rows()?.positions().filter(|_| self.kernel.gpu().is_some())?;
        Some((input, self.reads.get(input).copied().flatten()?))
    }

    /// The step's operator, if it writes rows.
    fn writes_rows(&self) -> Option<&dyn WritesRows> {
        writes_rows(self.ops.single()?)
    }
}
