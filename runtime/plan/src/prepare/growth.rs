//! Finds the values of the state that change in place.
//!
//! If a step writes rows into an input of the state, and its result is the output that the state takes, a run with a state
//! writes only these rows, into the storage of the state. No other step may read the elements of the input. Steps that read
//! the result get its storage with spare elements between the rows if their kernels can read that, or else a copy.
//!
//! The step may also be an If, as in a decoder with a branch for the prompt and one for later tokens. Then a branch writes the
//! rows. A branch that writes none may not read the elements of the input.
//!
//! On a GPU, a value of the state stays there, so the transfers at the border of the plan and of branches do nothing in such a
//! run.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Growth, NodeId, Operand, PreparedBlock, PreparedStep, SlotId};
use crate::ids::PairId;
use crate::operands::rows::{writes_rows, WritesRows};
use crate::operator::Needs;
use crate::ops::Op;
use crate::plan::{Plan, StatePair};

/// A value of the state.
#[derive(Clone, Copy)]
struct Held {
    pair: PairId,
    rank: usize,
    /// The axis along which it grows, if it does.
    axis: Option<usize>,
}

/// A step that writes rows into a value of the state.
struct Writer {
    step: NodeId,
    axis: usize,
    /// The slots of the value before the step: inputs of the block, and their copies on a GPU.
    before: HashSet<SlotId>,
    /// The slot of the value after the step.
    present: SlotId,
    how: How,
}

enum How {
    /// It writes the rows itself. The input of the step with the positions of the rows, if a GPU would read it, and its slot
    /// on the host.
    Rows(Option<(usize, SlotId)>),
    /// It is an If, whose branches write the rows. A branch without a writer does not read the value.
    Branches(Vec<Option<Writer>>),
}

impl PreparedBlock {
    /// Marks the steps that write rows, those that read the results, and transfers. Returns which pairs of the state change
    /// in place.
    pub fn find_growth(&mut self, plan: &Plan) -> Vec<bool> {
        let mut grows = vec![false; plan.state.len()];
        for (pair, state) in (0..).map(PairId).zip(&plan.state) {
            let Some(held) = Held::of(pair, state, plan) else { continue };
            let past = HashSet::from([SlotId::of(state.input)]);
            let Some(writer) = self.writer(&past, SlotId::of(state.output), held) else { continue };
            self.mark(&writer, held);
            grows[pair.at()] = true;
        }
        grows
    }

    /// The step that writes rows into a value, if the value can change in place. Inputs of the block in the slots `past` are
    /// the value before, and `present` is the slot of the value afterwards.
    fn writer(&self, past: &HashSet<SlotId>, present: SlotId, held: Held) -> Option<Writer> {
        let (at, step) = self.numbered().find(|(_, step)| step.outputs.contains(&Some(present)))?;
        let before = self.with_copies(past);
        let stays = |step: &PreparedStep| !step.is_transfer() || step.delivers || step.reads != [Some(present)];
        if self.reads_value(past, Some(at)) || !self.steps.iter().all(stays) {
            return None;
        }
        let (axis, how) = match step.writes_into(&before, held.rank) {
            Some(axis) => (axis, How::Rows(self.positions(step)?)),
            None => step.branches(&before, present, held)?,
        };
        let fits = held.axis.is_none_or(|own| own == axis);
        fits.then_some(Writer { step: at, axis, before, present, how })
    }

    /// The writer in a branch of an If, whose output `result` is the value afterwards: `Some(None)` if the branch does not read
    /// the value, and `None` if the value cannot change in place.
    fn writer_in_branch(&self, past: &HashSet<SlotId>, result: usize, held: Held) -> Option<Option<Writer>> {
        let present = self.outputs.get(result)?.slot();
        let is_once = |slot: &SlotId| self.outputs.iter().filter(|output| output.slot() == Some(*slot)).count() == 1;
        match present.filter(is_once).and_then(|present| self.writer(past, present, held)) {
            Some(writer) => Some(Some(writer)),
            None => (!self.reads_value(past, None)).then_some(None),
        }
    }

    /// Slots with a value, and those of its copies on a GPU.
    fn with_copies(&self, past: &HashSet<SlotId>) -> HashSet<SlotId> {
        let copies = self.steps.iter().filter(|step| step.copies(past)).flat_map(|step| step.outputs[0]);
        copies.chain(past.iter().copied()).collect()
    }

    /// Whether a step other than `writer` reads elements of a value, or the block returns it.
    fn reads_value(&self, past: &HashSet<SlotId>, writer: Option<NodeId>) -> bool {
        let slots = self.with_copies(past);
        let is_output = |output: &Operand| output.slot().is_some_and(|slot| slots.contains(&slot));
        let is_read = |(at, step): (NodeId, &PreparedStep)| {
            Some(at) != writer && !step.copies(past) && step.reads_elements(&slots)
        };
        self.outputs.iter().any(is_output) || self.numbered().any(is_read)
    }

    /// The positions of the rows that a step writes, if they are on the host but a GPU reads a copy; `None` if they are only on
    /// the GPU.
    fn positions(&self, step: &PreparedStep) -> Option<Option<(usize, SlotId)>> {
        let Some((input, slot)) = step.positions() else { return Some(None) };
        let made = self.steps.iter().find(|step| step.is_transfer() && step.outputs == [Some(slot)])?;
        Some(Some((input, made.reads.first().copied().flatten()?)))
    }

    /// Marks a step that writes rows, the transfers of its value, and the steps that read the result.
    fn mark(&mut self, writer: &Writer, held: Held) {
        let is_value = |slot: SlotId| slot == writer.present || writer.before.contains(&slot);
        for step in self.steps.iter_mut().filter(|step| step.is_transfer()) {
            step.carries |= step.reads.first().copied().flatten().is_some_and(is_value);
        }
        let step = &mut self.steps[writer.step.at()];
        match &writer.how {
            How::Rows(positions) => {
                step.grows = Some(Growth { pair: held.pair, axis: writer.axis });
                if let Some((input, slot)) = *positions {
                    step.inputs[input] = Operand::Slot(slot);
                    step.reads[input] = Some(slot);
                    self.keep(slot);
                }
            }
            How::Branches(writers) => {
                for (block, writer) in step.blocks.iter_mut().zip(writers) {
                    writer.iter().for_each(|writer| block.mark(writer, held));
                }
            }
        }
        for step in self.steps.iter_mut().filter(|step| !step.carries) {
            step.pack(writer.present, held.rank - writer.axis, held.pair);
        }
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

impl Held {
    fn of(pair: PairId, state: &StatePair, plan: &Plan) -> Option<Held> {
        let rank = plan.main.values.get(state.input.at())?.kind.tensor().ok()?.rank()?;
        Some(Held { pair, rank, axis: state.axis })
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

    /// If the step is an If whose branches write rows into the value in the slots `before`: their axis, and the writers.
    fn branches(&self, before: &HashSet<SlotId>, present: SlotId, held: Held) -> Option<(usize, How)> {
        let (Op::If(_), Some((_, taken))) = (Arc::as_ref(self.ops.single()?), self.reads.split_first()) else {
            return None;
        };
        let result = self.outputs.iter().position(|output| *output == Some(present))?;
        let mut writers = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let given = block.inputs.iter().zip(taken);
            let is_value = |(_, slot): &(&SlotId, &Option<SlotId>)| slot.is_some_and(|slot| before.contains(&slot));
            let past = given.filter(is_value).map(|(own, _)| *own).collect();
            writers.push(block.writer_in_branch(&past, result, held)?);
        }
        let mut axes = writers.iter().flatten().map(|writer| writer.axis);
        let axis = axes.next()?;
        axes.all(|other| other == axis).then_some((axis, How::Branches(writers)))
    }

    /// Whether the step only copies the value in one of the slots to or from a GPU.
    fn copies(&self, slots: &HashSet<SlotId>) -> bool {
        self.is_transfer() && matches!(self.reads[..], [Some(slot)] if slots.contains(&slot))
    }

    /// Whether the step reads elements of one of the slots, or makes a view of it.
    fn reads_elements(&self, slots: &HashSet<SlotId>) -> bool {
        let mut read = self.reads.iter().enumerate().filter(|(_, slot)| slot.is_some_and(|slot| slots.contains(&slot)));
        read.any(|(i, _)| self.ops.needs(i) != Needs::Dims || self.ops.shares(i))
    }

    /// Marks the inputs in a slot, whose value may have spare elements `from_end` axes before its end, if the kernel cannot read
    /// that.
    fn pack(&mut self, slot: SlotId, from_end: usize, pair: PairId) {
        for i in 0..self.reads.len() {
            if self.reads[i] == Some(slot) && !self.kernel().reads_grown(i, from_end) {
                self.packs.resize(self.reads.len(), None);
                self.packs[i] = Some(pair);
            }
        }
    }

    /// Whether the step, or one in its blocks, reads a copy of the value of a pair, which grows.
    pub fn packs_elements(&self, pair: PairId) -> bool {
        let mut packed = self.packs.iter().enumerate().filter(|(_, packed)| **packed == Some(pair));
        let mut nested = self.blocks.iter().flat_map(|block| &block.steps);
        packed.any(|(i, _)| self.ops.needs(i) != Needs::Dims) || nested.any(|step| step.packs_elements(pair))
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
