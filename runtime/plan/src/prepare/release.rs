//! Releases the elements of constants after they are packed.

use super::graph::{Graph, Node};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::plan::{Block, Plan};
use crate::value::Value;

/// For each constant of the plan, the number of steps and outputs that still need its elements. Steps whose results are
/// constants have run.
pub(super) struct Readers(Vec<usize>);

impl Readers {
    /// Counts the readers of the first `count` constants.
    pub fn of(plan: &Plan, count: usize) -> Readers {
        let mut readers = Readers(vec![0; count]);
        readers.count(&plan.main);
        readers
    }

    fn count(&mut self, block: &Block) {
        let read = block.unknown_steps().flat_map(|(_, step)| &step.inputs).flatten().chain(&block.outputs);
        let mut reads = vec![0; block.values.len()];
        read.for_each(|value| reads[value.at()] += 1);
        for entry in &block.constants {
            self.0[entry.constant.at()] += reads[entry.value.at()];
        }
        for step in &block.steps {
            step.op.blocks().into_iter().for_each(|block| self.count(block));
        }
    }

    /// Drops the elements of constants that no step needs.
    pub fn release_unread(&self, constants: &mut [Value]) {
        for (_, constant) in self.0.iter().zip(constants).filter(|(readers, _)| **readers == 0) {
            if let Value::Tensor(array) = constant {
                *array = array.outline();
            }
        }
    }

    /// Drops the elements of constants that a step has packed, if the step is their last reader.
    pub fn release(&mut self, graph: &Graph, node: &Node, kernel: &dyn Kernel, constants: &mut [Value]) -> Result<()> {
        for (_, id) in node.inputs.iter().enumerate().filter(|(i, _)| kernel.is_replaced(*i)) {
            let Some(constant) = id.and_then(|id| graph.constant_of[id.at()]) else { continue };
            let Some(readers) = self.0.get_mut(constant.at()) else { continue };
            *readers -= 1;
            if let (0, Value::Tensor(array)) = (*readers, &mut constants[constant.at()]) {
                *array = array.outline();
            }
        }
        Ok(())
    }
}
