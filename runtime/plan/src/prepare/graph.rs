//! The steps of a block during prepare, which may change their kernels and add steps.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::isa::Isa;

use super::chain::Chain;
use super::{Hosted, NodeId, SlotContent, SlotId};
use crate::cpu::Choice;
use crate::kernel::{Constants, Kernel, Memory};
use crate::layout::Layout;
use crate::operator::Needs;
use crate::plan::{Block, ConstantId, OriginId, Step, StepId, ValueId};
use crate::types::Type;
use crate::value::Value;

/// A block during prepare.
pub(super) struct Graph {
    pub nodes: Vec<Node>,
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
    /// The chosen kernel.
    pub choice: Choice,
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
        Graph {
            nodes: block.unknown_steps().map(|(index, step)| Node::of(index, step)).collect(),
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
    pub fn operands<R>(&self, node: &Node, constants: &[Value], look: impl FnOnce(&Constants) -> R) -> R {
        let constant = |id: SlotId| constants.get(self.constant_of[id.at()]?.at());
        let values: Vec<Option<&Value>> = node.inputs.iter().map(|id| id.and_then(constant)).collect();
        let types: Vec<Option<&Type>> = node.inputs.iter().map(|id| id.map(|id| self.kind(id))).collect();
        look(&Constants { values: &values, types: &types, memory: self.memory, blocking: self.blocking })
    }
}

impl Node {
    fn of(index: StepId, step: &Step) -> Node {
        Node {
            index,
            added: false,
            name: step.op.name(),
            ops: Chain::of(step.op.clone()),
            choice: Choice::Own,
            inputs: step.inputs.iter().map(|id| id.map(SlotId::of)).collect(),
            outputs: step.outputs.iter().map(|id| id.map(SlotId::of)).collect(),
            channels: Vec::new(),
            host: None,
            origin: step.origin,
        }
    }

    /// Takes the chosen kernel out of the step.
    pub fn take_choice(&mut self) -> Choice {
        std::mem::replace(&mut self.choice, Choice::Own)
    }

    /// Returns the part of an input that the step reads.
    pub fn needs(&self, input: usize) -> Needs {
        self.ops.needs(input)
    }

    /// Fuses `first`, whose output is input 0 of this step, into this step. The new inputs are the inputs of `first`,
    /// then the other inputs of this step.
    pub fn follow(&mut self, first: &Node, choice: Choice) {
        let mut channels = first.channels.clone();
        channels.resize(first.inputs.len(), None);
        channels.extend(self.channels.iter().skip(1));
        self.channels = channels;
        self.ops.follow(&first.ops, first.inputs.len());
        self.inputs.splice(..1, first.inputs.iter().copied());
        self.choice = choice;
    }

    /// Makes a step that prepare adds, from value `from` to value `to`.
    pub fn added(
        place: (StepId, OriginId),
        name: &'static str,
        kernel: Box<dyn Kernel>,
        from: SlotId,
        to: SlotId,
    ) -> Node {
        let (index, origin) = place;
        let (inputs, outputs) = (vec![Some(from)], vec![Some(to)]);
        let channels = Vec::new();
        let (ops, choice) = (Chain::default(), Choice::Ready(kernel));
        Node { index, added: true, name, ops, choice, inputs, outputs, channels, host: None, origin }
    }
}
