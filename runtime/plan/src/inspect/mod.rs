//! The result of prepare: every step with its kernel, the layouts of its values, and the bytes that are alive while it
//! runs.

mod alive;
mod forms;
mod listing;

pub use forms::{PairForm, Prepared, StepForm};

use alive::Alive;
use listing::{takes, Listing};

use crate::executable::Executable;
use crate::ids::{PairId, ValueId};
use crate::memory::bytes_held;
use crate::plan::StatePair;

impl Executable {
    /// Describes the decisions of prepare.
    pub fn inspect(&self) -> Prepared {
        let mut steps = Vec::new();
        list(&Listing { executable: self, plan: &self.plan.main, block: &self.main, depth: 0 }, &mut steps);
        let alive = steps.iter().filter(|step| step.depth == 0).map(|step| step.alive_bytes);
        Prepared {
            isa: self.blocking.isa().level().name(),
            block: self.blocking.block(),
            constant_bytes: bytes_held(self.constants.iter()),
            packed_bytes: steps.iter().map(|step| step.form.packed_bytes).sum(),
            peak_bytes: alive.clone().flatten().max().unwrap_or(0),
            unknown_steps: alive.filter(Option::is_none).count(),
            steps,
            state: (0..).map(PairId).zip(&self.plan.state).map(|(id, pair)| self.pair(id, pair)).collect(),
        }
    }

    /// Describes a pair of the state.
    fn pair(&self, id: PairId, pair: &StatePair) -> PairForm {
        let name = |value: ValueId| self.plan.main.values[value.at()].name.clone();
        let in_place = self.grows[id.at()];
        let copies = self.main.steps.iter().filter(|step| in_place && step.packs_elements(id));
        let copies = copies.map(|step| step.index).collect();
        PairForm { output: name(pair.output), input: name(pair.input), in_place, copies }
    }
}

/// Appends the steps of a block, each with the steps of its nested blocks after it.
fn list(listing: &Listing, steps: &mut Vec<StepForm>) {
    let mut alive = Alive::of(listing);
    for step in &listing.block.steps {
        let inputs = listing.input_types(step);
        steps.push(StepForm {
            index: step.index,
            op: step.name,
            depth: listing.depth,
            origin: listing.executable.origin(step),
            added: step.added,
            form: step.kernel().form(),
            inputs: step.inputs.iter().enumerate().map(|(i, operand)| listing.input(step, i, *operand)).collect(),
            outputs: step.outputs.iter().map(|slot| slot.map(|slot| listing.slot(slot, false, false))).collect(),
            dies: step.drops.iter().map(|slot| listing.name(*slot)).collect(),
            in_place: (0..step.inputs.len()).filter(|&i| takes(step, &inputs, i)).collect(),
            shares: (0..step.inputs.len()).filter(|&i| step.ops.shares(i)).collect(),
            alive_bytes: alive.during(listing, step),
            operations: listing.with_types(step, |types| step.ops.work(types)).map(|work| work.operations),
            alternatives: listing.with_types(step, |types| step.kernel().alternatives(types)),
        });
        for (plan, block) in step.ops.blocks().into_iter().zip(&step.blocks) {
            list(&Listing { executable: listing.executable, plan, block, depth: listing.depth + 1 }, steps);
        }
    }
}
