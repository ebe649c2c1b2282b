//! When values die, and which storage nobody else reads.
//!
//! Values that may share storage (an op that [makes views](crate::kernel::Kernel::makes_views), and its inputs) form a
//! group. A step may write into an input's storage when the whole group dies with the step, holds no input of the block
//! and no constant, and no other input of the step belongs to it.

use crate::plan::{Block, Step, ValueId};

/// The last step that is needed for a block's outputs.
const FOREVER: usize = usize::MAX;

pub(super) struct Lifetimes {
    /// A representative of each value's group.
    group: Vec<u32>,
    /// By representative: the last step that reads a value of the group.
    group_dies: Vec<usize>,
    /// By representative: whether the group holds an input of the block or a constant.
    foreign: Vec<bool>,
    /// By representative: how many outputs of the block are in the group.
    outputs: Vec<usize>,
    /// By step: the slots that nobody reads after it.
    dead_after: Vec<Vec<u32>>,
}

impl Lifetimes {
    pub fn of(block: &Block) -> Lifetimes {
        let count = block.values.len();
        let dies = last_reads(block);
        let group = groups(block);
        let mut lifetimes = Lifetimes {
            group_dies: vec![0; count],
            foreign: vec![false; count],
            outputs: vec![0; count],
            dead_after: vec![Vec::new(); block.steps.len()],
            group,
        };
        let constants: Vec<ValueId> = block.constants.iter().map(|entry| entry.value).collect();
        for (value, &step) in dies.iter().enumerate() {
            let group = lifetimes.group[value] as usize;
            lifetimes.group_dies[group] = lifetimes.group_dies[group].max(step);
            if step != FOREVER && !constants.contains(&ValueId(value as u32)) {
                if let Some(dead) = lifetimes.dead_after.get_mut(step) {
                    dead.push(value as u32);
                }
            }
        }
        for id in block.inputs.iter().chain(&constants) {
            lifetimes.foreign[lifetimes.group[id.0 as usize] as usize] = true;
        }
        for id in &block.outputs {
            lifetimes.outputs[lifetimes.group[id.0 as usize] as usize] += 1;
        }
        lifetimes
    }

    /// The slots that nobody reads after step `index`.
    pub fn dead_after(&self, index: usize) -> &[u32] {
        &self.dead_after[index]
    }

    /// Whether step `index` may have the storage of its input `id`.
    pub fn is_free(&self, index: usize, step: &Step, id: ValueId) -> bool {
        let group = self.group[id.0 as usize];
        let same = step.inputs.iter().flatten().filter(|other| self.group[other.0 as usize] == group);
        self.group_dies[group as usize] <= index && !self.foreign[group as usize] && same.count() == 1
    }

    /// Whether the storage of output `id` belongs to it alone.
    pub fn is_exclusive_output(&self, id: ValueId) -> bool {
        let group = self.group[id.0 as usize] as usize;
        !self.foreign[group] && self.outputs[group] == 1
    }
}

/// For each value, the last step that reads it, or that defines it when none does; [`FOREVER`] for the block's outputs.
fn last_reads(block: &Block) -> Vec<usize> {
    let mut last = vec![0; block.values.len()];
    for (index, step) in block.steps.iter().enumerate() {
        for id in step.inputs.iter().chain(&step.outputs).flatten() {
            last[id.0 as usize] = index;
        }
    }
    for id in &block.outputs {
        last[id.0 as usize] = FOREVER;
    }
    last
}

/// For each value, the representative of the values it may share storage with (union–find).
fn groups(block: &Block) -> Vec<u32> {
    fn find(parent: &mut [u32], mut value: u32) -> u32 {
        while parent[value as usize] != value {
            parent[value as usize] = parent[parent[value as usize] as usize];
            value = parent[value as usize];
        }
        value
    }
    let mut parent: Vec<u32> = (0..block.values.len() as u32).collect();
    for step in block.steps.iter().filter(|step| step.op.kernel().makes_views()) {
        let mut ids = step.inputs.iter().chain(&step.outputs).flatten();
        let Some(first) = ids.next() else { continue };
        for other in ids {
            let (a, b) = (find(&mut parent, first.0), find(&mut parent, other.0));
            parent[b as usize] = a;
        }
    }
    (0..parent.len() as u32).map(|value| find(&mut parent, value)).collect()
}
