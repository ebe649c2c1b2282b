//! Plan → executable: everything that can be decided before a run is decided here, once.
//!
//! Steps are [placed](placement) on the device, or their layouts chosen ([`layouts`]) and some of them [joined](pairs),
//! constants are prepacked and [released](release), values that die with a step are listed, and inputs whose storage a step
//! may take over are found ([`lifetime`]).

mod chain;
mod cut;
mod deliveries;
mod graph;
mod layouts;
mod lifetime;
mod pairs;
mod placement;
mod prepared;
mod release;

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::cpu::Choice;
use crate::device::{Device, Reason};
use crate::error::{Error, Result};
use crate::kernel::{Constants, Kernel, Memory};
use crate::memory::bytes_held;
use crate::plan::{Block, ConstantId, Origin, Plan, ValueId};
use crate::types::Type;
use crate::value::{catch_out_of_memory, Value};
use graph::{Graph, Node};
use lifetime::Lifetimes;
use placement::Border;
pub(crate) use prepared::{Held, Hosted, Mark, Operand, PreparedBlock, PreparedStep, SlotId};
use release::Readers;
use serde::Serialize;

/// A plan that is ready to run.
pub struct Executable {
    pub(crate) plan: Plan,
    /// The plan's, then those that prepare made of them.
    pub(crate) constants: Vec<Value>,
    pub(crate) main: PreparedBlock,
    pub(crate) device: Device,
    /// What packed weights may take.
    pub(crate) memory: Memory,
    /// By input of the plan, whether a step of the host reads its elements, on a device that is not the host.
    pub(crate) reads_on_host: Vec<bool>,
}

/// Where a step of a plan runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedStep {
    /// The op's name.
    pub op: &'static str,
    /// Where the step came from.
    pub origin: String,
    /// Why it runs on the host, though the device is another; `None` where it runs on the device.
    pub host: Option<Reason>,
    /// The bytes of its inputs that come from the device for want of a kernel, and of its outputs that go there; `None`
    /// where a size is not known before a run.
    pub bytes: Option<usize>,
}

impl Executable {
    /// Prepares a plan that was [read](crate::read::read) with its constants for a device.
    ///
    /// # Errors
    /// [`Error::Verify`] with every violation, or with a step whose constants do not fit its op; what the device
    /// says where it has no room for the constants.
    pub fn prepare(plan: Plan, constants: Vec<Value>, device: &Device, memory: Memory) -> Result<Executable> {
        let violations = crate::verify::verify(&plan, &constants);
        if !violations.is_empty() {
            return Err(Error::Verify(violations));
        }
        let mut preparing = Preparing {
            origins: &plan.origins,
            constants,
            uploaded: HashMap::new(),
            readers: Readers::of(&plan),
            device,
            memory,
        };
        let mut main = preparing.block(&plan.main, Border::Plan).map_err(|error| match (device, error) {
            (Device::Gpu(_), Error::Op(reason)) => device.refused(reason),
            (_, error) => error,
        })?;
        main.number(&mut Mark(0));
        let mut constants = preparing.constants;
        let mut reads_on_host = Vec::new();
        if let Device::Gpu(_) = device {
            main.release_others(&mut constants);
            main.find_deliveries();
            reads_on_host = main.inputs.iter().map(|&slot| main.reads(slot)).collect();
        }
        Ok(Executable { plan, constants, main, device: device.clone(), memory, reads_on_host })
    }

    /// The names and types of the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.plan.main.inputs.iter().map(|id| self.describe(*id))
    }

    /// The names and types of the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.plan.main.outputs.iter().map(|id| self.describe(*id))
    }

    /// Where every step of the plan runs, in order.
    pub fn placed_steps(&self) -> Vec<PlacedStep> {
        let mut steps = Vec::new();
        self.main.each_step(&mut |step| {
            if !step.added {
                let (host, bytes) = step.host.map_or((None, Some(0)), |hosted| (Some(hosted.reason), hosted.bytes));
                steps.push(PlacedStep { op: step.name, origin: self.origin(step), host, bytes });
            }
        });
        steps
    }

    /// Where a step came from.
    pub(crate) fn origin(&self, step: &PreparedStep) -> String {
        self.plan.origins.get(step.origin.at()).map_or_else(String::new, ToString::to_string)
    }

    fn describe(&self, id: ValueId) -> (&str, &Type) {
        let info = &self.plan.main.values[id.at()];
        (&info.name, &info.kind)
    }
}

/// What preparing a plan's blocks needs of the plan, and makes of its constants.
struct Preparing<'a> {
    origins: &'a [Origin],
    constants: Vec<Value>,
    /// By constant, the one that is its copy on the device.
    uploaded: HashMap<ConstantId, ConstantId>,
    readers: Readers,
    device: &'a Device,
    memory: Memory,
}

impl Preparing<'_> {
    fn block(&mut self, block: &Block, border: Border) -> Result<PreparedBlock> {
        let graph = Graph { memory: self.memory, ..Graph::of(block) };
        let graph = match self.device {
            Device::Cpu => pairs::join(layouts::choose(graph, &mut self.constants)?, &self.constants),
            Device::Gpu(gpu) => {
                let constants = placement::Constants { values: &mut self.constants, uploaded: &mut self.uploaded };
                placement::choose(graph, constants, gpu, border)?
            }
        };
        let mut graph = graph;
        let mut choices: Vec<Choice> = graph.nodes.iter_mut().map(Node::take_choice).collect();
        let mut parts = Vec::with_capacity(graph.nodes.len());
        for (at, node) in self.largest_first(&graph) {
            let border = Border::of(&graph, node);
            let blocks =
                node.ops.blocks().into_iter().map(|nested| self.block(nested, border)).collect::<Result<_>>()?;
            let choice = std::mem::replace(&mut choices[at], Choice::Own);
            parts.push((at, Part { blocks, kernel: self.pack(&graph, node, choice)? }));
        }
        parts.sort_by_key(|(at, _)| *at);
        Ok(assembled(graph, parts.into_iter().map(|(_, part)| part).collect()))
    }

    /// The steps with their places, those of many bytes of constants before others: what is packed of the largest
    /// constant and the constant itself, which are in memory at once, are so before the rest is packed.
    fn largest_first<'a>(&self, graph: &'a Graph) -> Vec<(usize, &'a Node)> {
        let constant = |id: SlotId| graph.constant_of[id.at()].and_then(|constant| self.constants.get(constant.at()));
        let bytes = |node: &Node| bytes_held(node.inputs.iter().flatten().filter_map(|&id| constant(id)));
        let mut nodes: Vec<(usize, &Node)> = graph.nodes.iter().enumerate().collect();
        nodes.sort_by_cached_key(|(_, node)| Reverse(bytes(node)));
        nodes
    }

    /// The kernel of a step with its packed constants, which are released where nobody else reads them.
    fn pack(&mut self, graph: &Graph, node: &Node, choice: Choice) -> Result<Box<dyn Kernel>> {
        let make = |operands: &Constants| catch_out_of_memory(|| choice.pack(node.ops.single(), operands));
        let kernel = graph.operands(node, &self.constants, make);
        let kernel = kernel.map_err(|error| Error::Verify(vec![self.complaint(node, &error)]))?;
        if matches!(self.device, Device::Cpu) {
            self.readers.release(graph, node, kernel.as_ref(), &mut self.constants)?;
        }
        Ok(kernel)
    }

    /// What an op says of its constants, with the step's place.
    fn complaint(&self, node: &Node, error: &Error) -> String {
        let origin = self.origins.get(node.origin.at()).map_or_else(String::new, ToString::to_string);
        let from = if origin.is_empty() { String::new() } else { format!(" from {origin}") };
        format!("step {} {}{from}: {error}", node.index, node.name)
    }
}

/// What is made for a step.
struct Part {
    blocks: Vec<PreparedBlock>,
    kernel: Box<dyn Kernel>,
}

/// The block of steps with their parts.
fn assembled(graph: Graph, parts: Vec<Part>) -> PreparedBlock {
    let lifetimes = Lifetimes::of(&graph);
    let context = Context { graph: &graph, lifetimes: &lifetimes };
    let nodes = graph.nodes.iter().zip(&parts).enumerate();
    let inputs: Vec<Vec<Operand>> =
        nodes.map(|(at, (node, part))| context.inputs(at, node, part.kernel.as_ref())).collect();
    let outputs = graph.outputs.iter().map(|&id| context.operand(id)).collect();
    let takes = graph.inputs.iter().map(|&id| graph.kind(id).clone()).collect();
    let (held, starts) = (graph.held, graph.inputs);
    let steps = graph.nodes.into_iter().zip(inputs).zip(parts).enumerate();
    let steps = steps.map(|(at, ((node, inputs), Part { blocks, kernel }))| PreparedStep {
        index: node.index,
        added: node.added,
        name: node.name,
        ops: node.ops,
        kernel,
        inputs,
        reads: node.inputs,
        outputs: node.outputs,
        channels: node.channels,
        drops: lifetimes.dead_after(at).to_vec(),
        blocks,
        host: node.host,
        delivers: false,
        mark: Mark(0),
        origin: node.origin,
    });
    PreparedBlock { steps: steps.collect(), held, inputs: starts, takes, outputs }
}

struct Context<'a> {
    graph: &'a Graph,
    lifetimes: &'a Lifetimes,
}

impl Context<'_> {
    fn operand(&self, id: SlotId) -> Operand {
        self.graph.constant_of[id.at()].map_or(Operand::Slot(id), Operand::Constant)
    }

    fn inputs(&self, at: usize, node: &Node, kernel: &dyn Kernel) -> Vec<Operand> {
        let input = |(i, id): (usize, &Option<SlotId>)| match id.map(|id| self.operand(id)) {
            None => Operand::Absent,
            Some(Operand::Slot(slot)) if self.is_taken(at, (node, kernel), i, slot) => Operand::Dying(slot),
            Some(operand) => operand,
        };
        node.inputs.iter().enumerate().map(input).collect()
    }

    /// Whether step `at` takes over input `i`, in slot `slot`.
    fn is_taken(&self, at: usize, (node, kernel): (&Node, &dyn Kernel), i: usize, slot: SlotId) -> bool {
        let is_sequence = matches!(self.graph.kind(slot), Type::Sequence(_));
        let is_last = || self.lifetimes.dead_after(at).contains(&slot);
        let is_once = || node.inputs.iter().flatten().filter(|&&id| id == slot).count() == 1;
        kernel.in_place().contains(&i) && self.lifetimes.is_free(at, node, slot)
            || is_sequence && kernel.takes_sequence(i) && is_last() && is_once()
    }
}
