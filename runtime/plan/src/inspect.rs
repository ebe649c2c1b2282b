//! What prepare made of a plan: every step with its kernel, the layouts of its values, and what is alive at once.

use crate::cpu;
use crate::device::Device;
use crate::operator::Kind;
use crate::ops::Op;
use crate::types::{Type, Types};
use std::collections::HashMap;

use candle_plan_kernels::blocked;
use candle_plan_kernels::isa::Isa;
use serde::Serialize;

use crate::form::Form;
use crate::layout::{type_in_blocks, Layout};
use crate::memory::bytes_held;
use crate::plan::{Block, ValueInfo};
use crate::prepare::{Executable, Operand, PreparedBlock, PreparedStep, SlotId};

/// A prepared plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prepared {
    /// The instruction set that kernels use.
    pub isa: &'static str,
    /// The bytes of the constants, beside what was packed of them.
    pub constant_bytes: usize,
    /// The bytes of what was packed.
    pub packed_bytes: usize,
    /// The most bytes that the plan's values hold at once, as far as its steps tell.
    pub peak_bytes: usize,
    /// The number of the plan's steps that do not tell.
    pub untold: usize,
    /// The steps in their order, those of a block behind the step that runs it.
    pub steps: Vec<StepForm>,
}

/// A prepared step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepForm {
    /// Its place in the plan's block; a step that prepare added has that of the step which it serves.
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
    /// One entry an input; `None` for an absent one.
    pub inputs: Vec<Option<Slot>>,
    /// One entry an output; `None` for one that nobody uses.
    pub outputs: Vec<Option<Slot>>,
    /// The values that nobody reads after it.
    pub dies: Vec<String>,
    /// The inputs whose storage its op can give its first output, where nobody else needs it.
    pub in_place: Vec<usize>,
    /// The inputs whose storage its outputs may share.
    pub shares: Vec<usize>,
    /// The bytes that the values of its block and its op's scratch hold while it runs, constants aside: at most, as an
    /// op that may give a view of an input counts as giving one where sizes are equal alone. `None` where a size is not
    /// known, the op does not tell its scratch, or the step runs blocks.
    pub alive_bytes: Option<usize>,
    /// The forms that the planner compared, of a convolution with constant weights.
    pub alternatives: Vec<Alternative>,
}

/// A form of a convolution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// The form, in words.
    pub form: String,
    /// Whether its image is in blocks of channels already, and its result stays so.
    pub in_blocks: bool,
    /// The time of one image as the planner expects it, in multiply-adds of a vector.
    pub time: f64,
}

/// A value that a step takes or gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slot {
    /// Its number in the plan's block, and its name where it has one: `%3:relu`.
    pub value: String,
    /// dtype and shape, as the plan knows them.
    #[serde(rename = "type")]
    pub kind: String,
    /// The layout in which it is held.
    pub layout: Layout,
    /// The bytes that it takes, where its size is known.
    pub bytes: Option<usize>,
    /// Whether it is a constant.
    pub constant: bool,
    /// Whether the step may have its storage.
    pub taken: bool,
}

impl Executable {
    /// What prepare decided.
    pub fn inspect(&self) -> Prepared {
        let mut steps = Vec::new();
        Listing { executable: self, plan: &self.plan.main, block: &self.main, depth: 0 }.list(&mut steps);
        let alive = steps.iter().filter(|step| step.depth == 0).map(|step| step.alive_bytes);
        Prepared {
            isa: Isa::get().level().name(),
            constant_bytes: bytes_held(self.constants.iter()),
            packed_bytes: steps.iter().map(|step| step.form.packed_bytes).sum(),
            peak_bytes: alive.clone().flatten().max().unwrap_or(0),
            untold: alive.filter(Option::is_none).count(),
            steps,
        }
    }
}

/// A block that is being listed.
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
                alternatives: self.alternatives(step),
            });
            for (plan, block) in step.ops.blocks().into_iter().zip(&step.blocks) {
                Listing { executable: self.executable, plan, block, depth: self.depth + 1 }.list(steps);
            }
        }
    }

    /// The forms that the planner compared for a step.
    fn alternatives(&self, step: &PreparedStep) -> Vec<Alternative> {
        let is_constant = matches!(step.inputs.get(1), Some(Operand::Constant(_)));
        let kind = |i: usize| step.reads.get(i).copied().flatten().map(|slot| &self.info(slot).kind);
        let (Some(Op::Conv(conv)), true, Device::Cpu) = (step.ops.single(), is_constant, &self.executable.device)
        else {
            return Vec::new();
        };
        let found = cpu::alternatives(conv, kind(0), kind(1), self.executable.memory).into_iter();
        found.map(|blocked::Alternative { form, in_blocks, time }| Alternative { form, in_blocks, time }).collect()
    }

    fn input(&self, step: &PreparedStep, i: usize, operand: Operand) -> Option<Slot> {
        match operand {
            Operand::Absent => None,
            Operand::Slot(slot) => Some(self.slot(slot, false, false)),
            Operand::Dying(slot) => Some(self.slot(slot, false, true)),
            Operand::Constant(_) => step.reads.get(i).copied().flatten().map(|slot| self.slot(slot, true, false)),
        }
    }

    /// The bytes that a step's op holds beside its inputs and outputs, where it tells.
    fn scratch(&self, step: &PreparedStep) -> Option<usize> {
        let kind = |(i, operand): (usize, &Operand)| match *operand {
            Operand::Absent => None,
            Operand::Slot(slot) | Operand::Dying(slot) => Some(&self.info(slot).kind),
            Operand::Constant(_) => step.reads.get(i).copied().flatten().map(|slot| &self.info(slot).kind),
        };
        let inputs: Vec<Option<&Type>> = step.inputs.iter().enumerate().map(kind).collect();
        step.kernel.scratch(&Types::of(&inputs, step.outputs.len()))
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

    /// The bytes of a slot's value, where its size is known.
    fn bytes(&self, slot: SlotId) -> Option<usize> {
        let Type::Tensor(tensor) = &self.info(slot).kind else { return None };
        tensor.sizes()?;
        match self.block.held[slot.at()].layout {
            Layout::Rows => Some(tensor.bytes()),
            Layout::Blocks => Some(type_in_blocks(tensor).bytes()),
        }
    }
}

/// The storages that values of a block lie in, step by step.
struct Alive {
    /// By slot, the storage that its value lies in.
    storage_of: HashMap<SlotId, usize>,
    /// By storage, its bytes, where they are known.
    sizes: Vec<Option<usize>>,
}

impl Alive {
    /// Before the first step: the inputs, which the caller of a nested block holds and counts.
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

    /// The bytes while a step runs; what is alive after it is alive then.
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

    /// The storage of an input that output `i` lies in, if it does: that of a view, or that of one which it takes over.
    fn storage_for(&self, listing: &Listing, step: &PreparedStep, i: usize, bytes: Option<usize>) -> Option<usize> {
        let lies_in = |(input, operand): (usize, &Operand)| {
            let slot = match *operand {
                Operand::Dying(slot) if i == 0 => slot,
                Operand::Slot(slot) if input == 0 && is_view(step) => slot,
                _ => return None,
            };
            (bytes.is_some() && listing.bytes(slot) == bytes).then(|| self.storage_of.get(&slot).copied()).flatten()
        };
        step.inputs.iter().enumerate().find_map(lies_in)
    }
}

/// Whether the step always gives a view; a transpose, say, does so only where no element moves.
fn is_view(step: &PreparedStep) -> bool {
    step.ops.single().is_some_and(|op| op.kind() == Kind::View)
}
