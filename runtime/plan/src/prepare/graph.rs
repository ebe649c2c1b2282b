//! The steps of a block during prepare, which may change their kernels and add steps.

use std::sync::Arc;

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::isa::Isa;

use super::chain::Chain;
use super::{Hosted, NodeId, SlotContent, SlotId, StepKernel};
use crate::cpu::{CpuOperands, Own, PlannedKernel, Ready};
use crate::kernel::{Constants, Kernel, Memory};
use crate::layout::Layout;
use crate::operator::Needs;
use crate::plan::{Block, ConstantId, OriginId, Step, StepId, ValueId};
use crate::types::Type;
use crate::value::Value;

/// A block during prepare.
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// The chosen kernel of each node.
    pub kernels: Vec<StepKernel<dyn PlannedKernel>>,
    /// The type of each value, as in the plan.
    pub kinds: Vec<Type>,
    /// The plan value and layout of each value.
    pub held: Vec<SlotContent>,
    /// The constant of each value that is one.
    pub constant_of: Vec<Option<ConstantId>>,
    pub inputs: Vec<SlotId>,
    pub outputs: Vec<SlotId>,
    pub memory: Memory,
    pub blocking: Blocking,
}

/// A step during prepare.
pub(super) struct Node {
    /// The step of the plan. A step that prepare added has the index of the step that it serves.
    pub index: StepId,
    /// Whether prepare added it.
    pub added: bool,
    pub name: &'static str,
    /// The operators that the step computes.
    pub ops: Chain,
    pub inputs: Vec<Option<SlotId>>,
    pub outputs: Vec<Option<SlotId>>,
    /// The channels of each input in blocks of channels.
    pub channels: Vec<Option<usize>>,
    /// Why the step runs on the host, if the device is another.
    pub host: Option<Hosted>,
    pub origin: OriginId,
}

impl Graph {
    /// Makes a graph of the steps as they are in the plan.
    pub fn of(block: &Block) -> Graph {
        let mut constant_of = vec![None; block.values.len()];
        for entry in &block.constants {
            constant_of[entry.value.at()] = Some(entry.constant);
        }
        let steps = block.unknown_steps().map(|(index, step)| Node::of(index, step));
        let (nodes, kernels) = steps.unzip();
        Graph {
            nodes,
            kernels,
            kinds: block.values.iter().map(|value| value.kind.clone()).collect(),
            held: (0..block.values.len() as u32)
                .map(|value| SlotContent { value: ValueId(value), layout: Layout::Rows })
                .collect(),
            constant_of,
            inputs: block.inputs.iter().map(|&id| SlotId::of(id)).collect(),
            outputs: block.outputs.iter().map(|&id| SlotId::of(id)).collect(),
            memory: Memory::Full,
            blocking: Blocking::largest(Isa::get()),
        }
    }

    /// Appends a node with its kernel.
    pub fn push(&mut self, node: Node, kernel: StepKernel<dyn PlannedKernel>) {
        self.nodes.push(node);
        self.kernels.push(kernel);
    }

    /// Takes the nodes and their kernels out of the graph.
    pub fn take_nodes(&mut self) -> impl Iterator<Item = (Node, StepKernel<dyn PlannedKernel>)> {
        std::mem::take(&mut self.nodes).into_iter().zip(std::mem::take(&mut self.kernels))
    }

    /// Appends a step that prepare adds, from value `from` to value `to`.
    pub fn push_added(
        &mut self,
        (index, origin): (StepId, OriginId),
        name: &'static str,
        kernel: Box<dyn Kernel>,
        [from, to]: [SlotId; 2],
    ) {
        let (inputs, outputs, channels) = (vec![Some(from)], vec![Some(to)], Vec::new());
        let node =
            Node { index, added: true, name, ops: Chain::default(), inputs, outputs, channels, host: None, origin };
        self.push(node, StepKernel::Host(Box::new(Ready(kernel))));
    }

    /// Adds a copy of a value in another layout or on another device.
    pub fn add(&mut self, slot: SlotId, layout: Layout, constant: Option<ConstantId>) -> SlotId {
        self.kinds.push(self.kind(slot).clone());
        self.held.push(SlotContent { layout, ..self.held[slot.at()] });
        self.constant_of.push(constant);
        SlotId(self.kinds.len() as u32 - 1)
    }

    /// Returns the nodes with their indices.
    pub fn numbered(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..).map(NodeId).zip(&self.nodes)
    }

    /// Returns the type of a value.
    pub fn kind(&self, slot: SlotId) -> &Type {
        &self.kinds[slot.at()]
    }

    /// Returns the step that writes a value.
    pub fn writer(&self, slot: SlotId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.outputs.contains(&Some(slot)))
    }

    /// Calls `look` with the types and constants of a step's inputs.
    pub fn constants<R>(&self, node: &Node, constants: &[Value], look: impl FnOnce(Constants) -> R) -> R {
        let constant = |id: SlotId| constants.get(self.constant_of[id.at()]?.at());
        let values: Vec<Option<&Value>> = node.inputs.iter().map(|id| id.and_then(constant)).collect();
        let types: Vec<Option<&Type>> = node.inputs.iter().map(|id| id.map(|id| self.kind(id))).collect();
        look(Constants { values: &values, types: &types })
    }

    /// Like [`constants`](Graph::constants), with the facts that decide how constants are packed for the CPU.
    pub fn operands<R>(&self, node: &Node, constants: &[Value], look: impl FnOnce(&CpuOperands) -> R) -> R {
        let (memory, blocking) = (self.memory, self.blocking);
        self.constants(node, constants, |constants| look(&CpuOperands { constants, memory, blocking }))
    }
}

impl Node {
    /// Returns a step of the plan with its operator's own kernel.
    fn of(index: StepId, step: &Step) -> (Node, StepKernel<dyn PlannedKernel>) {
        let op = Arc::new(step.op.clone());
        let node = Node {
            index,
            added: false,
            name: step.op.name(),
            ops: Chain::of(Arc::clone(&op)),
            inputs: step.inputs.iter().map(|id| id.map(SlotId::of)).collect(),
            outputs: step.outputs.iter().map(|id| id.map(SlotId::of)).collect(),
            channels: Vec::new(),
            host: None,
            origin: step.origin,
        };
        (node, StepKernel::Host(Box::new(Own(op))))
    }

    /// Returns the part of an input that the step reads.
    pub fn needs(&self, input: usize) -> Needs {
        self.ops.needs(input)
    }

    /// Fuses `first`, whose output is input 0 of this step, into this step. The new inputs are the inputs of `first`,
    /// then the other inputs of this step.
    pub fn follow(&mut self, first: &Node) {
        let mut channels = first.channels.clone();
        channels.resize(first.inputs.len(), None);
        channels.extend(self.channels.iter().skip(1));
        self.channels = channels;
        self.ops.follow(&first.ops, first.inputs.len());
        self.inputs.splice(..1, first.inputs.iter().copied());
    }
}
