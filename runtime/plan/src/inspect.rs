//! The result of prepare: every step with its kernel, the layouts of its values, and the bytes that are alive while it
//! runs.

use crate::operator::Kind;
use crate::types::{Type, Types};
use std::collections::HashMap;

use serde::Serialize;

use crate::form::{Alternative, Form};
use crate::layout::{type_in_blocks, Layout};
use crate::memory::bytes_held;
use crate::plan::{Block, ValueInfo};
use crate::prepare::{Executable, Operand, PreparedBlock, PreparedStep, SlotId};

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
}

/// A prepared step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepForm {
    /// Its place in the plan's block; a step that prepare added has the place of the step that it serves.
    pub index: usize,
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
    pub form: Form,
    /// One entry per input; `None` for an absent one.
    pub inputs: Vec<Option<Slot>>,
    /// One entry per output; `None` for an unused one.
    pub outputs: Vec<Option<Slot>>,
    /// The values that no later step reads.
    pub dies: Vec<String>,
    /// The inputs whose storage the op can reuse for its first output, if nothing else needs it.
    pub in_place: Vec<usize>,
    /// The inputs whose storage its outputs may share.
    pub shares: Vec<usize>,
    /// An upper bound on the bytes that the values of its block and the scratch of its kernel hold while it runs,
    /// without constants. An op that may return a view of an input counts as returning one only if their sizes are
    /// equal. `None` if a size or the scratch is unknown, or the step runs blocks.
    pub alive_bytes: Option<usize>,
    /// The multiplications and additions of its formula, as in [`Work`](crate::work::Work), without those of its blocks.
    /// `None` if they depend on unknown sizes.
    pub operations: Option<u64>,
    /// The forms that a planner compared, for a convolution with constant weights or a matrix product.
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

impl Executable {
    /// Describes what prepare decided.
    pub fn inspect(&self) -> Prepared {
        let mut steps = Vec::new();
        Listing { executable: self, plan: &self.plan.main, block: &self.main, depth: 0 }.list(&mut steps);
        let alive = steps.iter().filter(|step| step.depth == 0).map(|step| step.alive_bytes);
        Prepared {
            isa: self.blocking.isa().level().name(),
            block: self.blocking.block(),
            constant_bytes: bytes_held(self.constants.iter()),
            packed_bytes: steps.iter().map(|step| step.form.packed_bytes).sum(),
            peak_bytes: alive.clone().flatten().max().unwrap_or(0),
            unknown_steps: alive.filter(Option::is_none).count(),
            steps,
        }
    }
}

/// A block to list.
struct Listing<'a> {
    executable: &'a Executable,
    plan: &'a Block,
    block: &'a PreparedBlock,
    depth: usize,
}

impl Listing<'_> {
    fn list(&self, steps: &mut Vec<StepForm>) {
        let mut alive = Alive::of(self);
        for step in &self.block.steps {
            let inputs = self.input_types(step);
            let types = Types::of(&inputs, step.outputs.len());
            steps.push(StepForm {
                index: step.index.0 as usize,
                op: step.name,
                depth: self.depth,
                origin: self.executable.origin(step),
                added: step.added,
                form: step.kernel.form(),
                inputs: step.inputs.iter().enumerate().map(|(i, operand)| self.input(step, i, *operand)).collect(),
                outputs: step.outputs.iter().map(|slot| slot.map(|slot| self.slot(slot, false, false))).collect(),
                dies: step.drops.iter().map(|slot| self.name(*slot)).collect(),
                in_place: step.kernel.in_place().to_vec(),
                shares: (0..step.inputs.len()).filter(|&i| step.ops.shares(i)).collect(),
                alive_bytes: alive.during(self, step),
                operations: step.ops.work(&types).map(|work| work.operations),
                alternatives: step.kernel.alternatives(&types),
            });
            for (plan, block) in step.ops.blocks().into_iter().zip(&step.blocks) {
                Listing { executable: self.executable, plan, block, depth: self.depth + 1 }.list(steps);
            }
        }
    }

    fn input(&self, step: &PreparedStep, i: usize, operand: Operand) -> Option<Slot> {
        match operand {
            Operand::Absent => None,
            Operand::Slot(slot) => Some(self.slot(slot, false, false)),
            Operand::Dying(slot) => Some(self.slot(slot, false, true)),
            Operand::Constant(_) => step.reads.get(i).copied().flatten().map(|slot| self.slot(slot, true, false)),
        }
    }

    /// The scratch bytes of a step's kernel, if they are known.
    fn scratch(&self, step: &PreparedStep) -> Option<usize> {
        step.kernel.scratch(&Types::of(&self.input_types(step), step.outputs.len()))
    }

    /// The types of a step's inputs, in rows; `None` for an absent one.
    fn input_types(&self, step: &PreparedStep) -> Vec<Option<&Type>> {
        let kind = |(i, operand): (usize, &Operand)| match *operand {
            Operand::Absent => None,
            Operand::Slot(slot) | Operand::Dying(slot) => Some(&self.info(slot).kind),
            Operand::Constant(_) => step.reads.get(i).copied().flatten().map(|slot| &self.info(slot).kind),
        };
        step.inputs.iter().enumerate().map(kind).collect()
    }

    fn slot(&self, slot: SlotId, constant: bool, taken: bool) -> Slot {
        let layout = self.block.held[slot.at()].layout;
        let kind = self.info(slot).kind.to_string();
        Slot { value: self.name(slot), kind, layout, bytes: self.bytes(slot), constant, taken }
    }

    fn info(&self, slot: SlotId) -> &ValueInfo {
        &self.plan.values[self.block.held[slot.at()].value.at()]
    }

    fn name(&self, slot: SlotId) -> String {
        let (number, name) = (self.block.held[slot.at()].value.0, &self.info(slot).name);
        if name.is_empty() {
            format!("%{number}")
        } else {
            format!("%{number}:{name}")
        }
    }

    /// The bytes of a slot's value, if its size is known.
    fn bytes(&self, slot: SlotId) -> Option<usize> {
        let Type::Tensor(tensor) = &self.info(slot).kind else { return None };
        tensor.sizes()?;
        match self.block.held[slot.at()].layout {
            Layout::Rows => Some(tensor.bytes()),
            Layout::Blocks => Some(type_in_blocks(tensor, self.executable.blocking).bytes()),
        }
    }
}

/// The storages of a block's living values, updated step by step.
struct Alive {
    /// The storage of each slot's value.
    storage_of: HashMap<SlotId, usize>,
    /// The bytes of each storage, if they are known.
    sizes: Vec<Option<usize>>,
}

impl Alive {
    /// The state before the first step. The inputs of a nested block count 0 bytes, because its caller holds and counts
    /// them.
    fn of(listing: &Listing) -> Alive {
        let mut alive = Alive { storage_of: HashMap::new(), sizes: Vec::new() };
        for &slot in &listing.block.inputs {
            let bytes = if listing.depth == 0 { listing.bytes(slot) } else { Some(0) };
            alive.add(slot, bytes);
        }
        alive
    }

    fn add(&mut self, slot: SlotId, bytes: Option<usize>) {
        self.storage_of.insert(slot, self.sizes.len());
        self.sizes.push(bytes);
    }

    /// The bytes that are alive while a step runs. Afterwards, the state is that after the step.
    fn during(&mut self, listing: &Listing, step: &PreparedStep) -> Option<usize> {
        for (i, &slot) in step.outputs.iter().enumerate().filter_map(|(i, slot)| Some((i, slot.as_ref()?))) {
            let bytes = listing.bytes(slot);
            match self.storage_for(listing, step, i, bytes) {
                Some(storage) => {
                    self.storage_of.insert(slot, storage);
                }
                None => self.add(slot, bytes),
            }
        }
        let mut storages: Vec<usize> = self.storage_of.values().copied().collect();
        storages.sort_unstable();
        storages.dedup();
        for slot in &step.drops {
            self.storage_of.remove(slot);
        }
        if !step.blocks.is_empty() {
            return None;
        }
        let values: Option<usize> = storages.into_iter().map(|storage| self.sizes[storage]).sum();
        values.zip(listing.scratch(step)).map(|(bytes, scratch)| bytes.saturating_add(scratch))
    }

    /// The storage of an input that output `i` reuses, if any: because it is a view, or because it takes the storage
    /// over.
    fn storage_for(&self, listing: &Listing, step: &PreparedStep, i: usize, bytes: Option<usize>) -> Option<usize> {
        let reused = |(input, operand): (usize, &Operand)| {
            let slot = match *operand {
                Operand::Dying(slot) if i == 0 => slot,
                Operand::Slot(slot) if input == 0 && is_view(step) => slot,
                _ => return None,
            };
            (bytes.is_some() && listing.bytes(slot) == bytes).then(|| self.storage_of.get(&slot).copied()).flatten()
        };
        step.inputs.iter().enumerate().find_map(reused)
    }
}

/// Whether the step always returns a view. A transpose, for example, does so only if no element moves.
fn is_view(step: &PreparedStep) -> bool {
    step.ops.single().is_some_and(|op| op.kind() == Kind::View)
}
