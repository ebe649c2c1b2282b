//! Makes a plan executable: it decides everything that can be decided before a run.
//!
//! First, it [computes](dequantize) the numbers of quantized constants, and what steps [make](fold) of weights alone.
//! On a device, prepare [places](placement) the steps. On the CPU, it chooses the size of blocks of channels and the
//! [`layouts`], together with the [pairs] of steps that one kernel computes. Then it packs and [releases](release) constants, lists the values that die
//! at each step, and finds the inputs whose storage a step may take over ([`lifetime`]).

mod chain;
mod cut;
mod deliveries;
mod dequantize;
mod fold;
mod graph;
mod growth;
mod layouts;
mod lifetime;
mod misfit;
mod pairs;
mod placed;
mod placement;
mod prepared;
mod release;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::isa::Isa;

use crate::cpu::{CpuOperands, PlannedKernel, Registered};
use crate::custom::CustomOps;
use crate::device::{Device, Reason};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Kernel, Memory};
use crate::memory::bytes_held;
use crate::ops::Op;
use crate::plan::{Block, ConstantId, Origin, Plan, ValueId};
use crate::types::Type;
use crate::value::{catch_out_of_memory, Value};
use graph::{Graph, Node};
use lifetime::Lifetimes;
use misfit::Misfit;
use placement::{Border, Copies};
pub(crate) use prepared::{
    Growth, Hosted, Mark, NodeId, Operand, PreparedBlock, PreparedStep, SlotContent, SlotId, StepKernel,
};
use release::Readers;
use serde::Serialize;

/// A plan that is prepared for a device.
pub struct PreparedPlan {
    pub(crate) plan: Plan,
    /// The constants of the plan, followed by the constants that prepare made from them.
    pub(crate) constants: Vec<Value>,
    pub(crate) main: PreparedBlock,
    pub(crate) device: Device,
    /// The blocks of channels of images on the CPU.
    pub(crate) blocking: Blocking,
    /// For each pair of the state, whether a step can write rows into its value in place.
    pub(crate) grows: Vec<bool>,
    /// For each input of the plan, whether a step on the host reads its elements. Empty if the device is the host.
    pub(crate) reads_on_host: Vec<bool>,
    /// For each constant that was copied to the device, the constant that is its copy.
    uploaded: HashMap<ConstantId, ConstantId>,
    /// The number of constants before these copies.
    on_host: usize,
}

/// Where a step of a plan runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacedStep {
    /// The op's name.
    pub op: &'static str,
    /// The origin of the step.
    pub origin: String,
    /// Why the step runs on the host, or `None` if it runs on the chosen device.
    pub host: Option<Reason>,
    /// The bytes that the lack of a kernel moves: inputs copied from the device, and outputs copied to it. `None` if a
    /// size is unknown before a run.
    pub bytes: Option<usize>,
}

impl PreparedPlan {
    /// Prepares a [read](crate::read::read) plan and its constants for a device. A step of a custom operator that is not
    /// in `custom` fails when it runs. On a GPU, copies of constants come from `other`, if that is the same plan, prepared for the
    /// same GPU and memory. Its device has finished these copies.
    ///
    /// # Errors
    /// [`Error::Verify`] with every violation, or with a step whose constants do not fit its op; or the device's error
    /// if it lacks memory for the constants; [`ErrorKind::Memory`] if the host lacks memory for packed constants.
    pub fn prepare(
        mut plan: Plan,
        mut constants: Vec<Value>,
        device: &Device,
        memory: Memory,
        custom: &CustomOps,
        other: Option<&PreparedPlan>,
    ) -> Result<PreparedPlan> {
        crate::verify::check(&plan, &constants)?;
        let readers = Self::dequantize(&mut plan, &mut constants, memory);
        let blocking = match device {
            Device::Cpu => layouts::blocking(&plan.main, &constants, memory),
            Device::Gpu(_) => Blocking::largest(Isa::get()),
        };
        let (origins, uploaded, on_host) = (&plan.origins[..], HashMap::new(), constants.len());
        let other = other.filter(|other| other.plan.sha256 == plan.sha256 && other.on_host == on_host);
        let shared = other.map(|other| Copies { values: &other.constants, of: &other.uploaded });
        let mut preparing =
            Preparing { origins, constants, uploaded, shared, readers, device, memory, blocking, custom };
        let mut main = preparing.block(&plan.main, Border::Plan).map_err(|error| match (device, error) {
            (Device::Gpu(_), Error::Op(reason) | Error::Gpu(reason)) => device.refused(reason),
            (_, error) => error,
        })?;
        main.number(&mut Mark(0));
        let (mut constants, uploaded) = (preparing.constants, preparing.uploaded);
        let mut reads_on_host = Vec::new();
        if let Device::Gpu(_) = device {
            main.release_unread(&mut constants);
            main.find_deliveries();
        }
        let grows = main.find_growth(&plan);
        if let Device::Gpu(_) = device {
            reads_on_host = main.inputs.iter().map(|&slot| main.reads(slot)).collect();
        }
        let device = device.clone();
        Ok(PreparedPlan { plan, constants, main, device, blocking, grows, reads_on_host, uploaded, on_host })
    }

    /// Dequantizes constants, and computes what steps make of weights alone, unless the numbers may take no more memory
    /// than the constants. Returns the readers of all constants.
    fn dequantize(plan: &mut Plan, constants: &mut Vec<Value>, memory: Memory) -> Readers {
        if matches!(memory, Memory::Full) {
            dequantize::dequantize(&mut plan.main, constants);
            if !plan.weights.is_empty() {
                fold::fold(&mut plan.main, constants);
            }
        }
        let readers = Readers::of(plan, constants.len());
        readers.release_unread(constants);
        readers
    }

    /// The names and types of the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.plan.main.inputs.iter().map(|id| self.describe(*id))
    }

    /// The names and types of the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.plan.main.outputs.iter().map(|id| self.describe(*id))
    }

    /// Returns where each step of the plan runs, in order.
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

    /// Describes the origin of a step.
    pub(crate) fn origin(&self, step: &PreparedStep) -> String {
        self.plan.origins.get(step.origin.at()).map_or_else(String::new, ToString::to_string)
    }

    fn describe(&self, id: ValueId) -> (&str, &Type) {
        let info = &self.plan.main.values[id.at()];
        (&info.name, &info.kind)
    }
}

/// The state shared by all blocks while they are prepared.
struct Preparing<'a> {
    origins: &'a [Origin],
    constants: Vec<Value>,
    /// For each uploaded constant, the constant that is its copy on the device.
    uploaded: HashMap<ConstantId, ConstantId>,
    /// The constants of the same plan, which was prepared for the same GPU.
    shared: Option<Copies<'a>>,
    readers: Readers,
    device: &'a Device,
    memory: Memory,
    blocking: Blocking,
    custom: &'a CustomOps,
}

impl Preparing<'_> {
    fn block(&mut self, block: &Block, border: Border) -> Result<PreparedBlock> {
        let graph = Graph { memory: self.memory, blocking: self.blocking, ..Graph::of(block) };
        let graph = match self.device {
            Device::Cpu => layouts::choose(graph, &mut self.constants)?,
            Device::Gpu(gpu) => {
                let (values, uploaded, shared) = (&mut self.constants, &mut self.uploaded, self.shared);
                let constants = placement::Uploads { values, uploaded, shared };
                placement::choose(graph, constants, gpu, border)?
            }
        };
        let (mut graph, is_nested) = (graph, !matches!(border, Border::Plan));
        let kernels = std::mem::take(&mut graph.kernels);
        let mut parts = Vec::with_capacity(graph.nodes.len());
        for ((at, node), kernel) in self.largest_first(&graph, kernels) {
            let border = Border::of(&graph, node);
            let blocks =
                node.ops.blocks().into_iter().map(|nested| self.block(nested, border)).collect::<Result<_>>()?;
            parts.push((at, Part { blocks, kernel: self.pack(&graph, node, kernel, is_nested)? }));
        }
        parts.sort_by_key(|(at, _)| *at);
        Ok(assembled(graph, parts.into_iter().map(|(_, part)| part).collect()))
    }

    /// Returns the nodes with their kernels, those with the largest constants first. The largest constant and its
    /// packed copy are in memory together. They come first, before other packed constants add to the peak.
    fn largest_first<'a>(
        &self,
        graph: &'a Graph,
        kernels: Vec<StepKernel<dyn PlannedKernel>>,
    ) -> Vec<NumberedNode<'a>> {
        let constant = |id: SlotId| graph.constant_of[id.at()].and_then(|constant| self.constants.get(constant.at()));
        let bytes = |node: &Node| bytes_held(node.inputs.iter().flatten().filter_map(|&id| constant(id)));
        let mut nodes: Vec<NumberedNode> = graph.numbered().zip(kernels).collect();
        nodes.sort_by_cached_key(|((_, node), _)| Reverse(bytes(node)));
        nodes
    }

    /// Packs the constants of a step into a kernel, and releases the elements of constants that no other step reads. If a
    /// constant does not fit, the step of a nested block fails when it runs.
    fn pack(
        &mut self,
        graph: &Graph,
        node: &Node,
        kernel: StepKernel<dyn PlannedKernel>,
        is_nested: bool,
    ) -> Result<StepKernel> {
        let kernel = match kernel {
            StepKernel::Host(kernel) => kernel,
            StepKernel::Gpu(placed) => return Ok(StepKernel::Gpu(placed)),
        };
        if let Some(kernel) = self.registered(graph, node) {
            return Ok(StepKernel::Host(kernel));
        }
        let pack = |operands: &CpuOperands| match kernel.pack(operands) {
            Err(Error::Op(message) | Error::Gpu(message)) if is_nested => {
                Ok(Box::new(Misfit(message)) as Box<dyn Kernel>)
            }
            kernel => kernel,
        };
        let kernel = graph.operands(node, &self.constants, |operands| catch_out_of_memory(|| pack(operands)));
        let kernel = kernel.map_err(|error| match (self.describe_error(node, &error), error) {
            (reason, Error::Memory(_)) => Error::Read { kind: ErrorKind::Memory, reason },
            (reason, _) => Error::Verify(vec![reason]),
        })?;
        if matches!(self.device, Device::Cpu) {
            self.readers.release(graph, node, kernel.as_ref(), &mut self.constants)?;
        }
        Ok(StepKernel::Host(kernel))
    }

    /// Returns the kernel of a custom operator that is registered.
    fn registered(&self, graph: &Graph, node: &Node) -> Option<Box<dyn Kernel>> {
        let Op::Custom(op) = &**node.ops.single()? else { return None };
        let function = self.custom.find(op)?;
        Some(Box::new(graph.constants(node, &self.constants, |given| Registered::new(op, function, given.types))))
    }

    /// Describes an op's error about its constants, with the step's place.
    fn describe_error(&self, node: &Node, error: &Error) -> String {
        let origin = self.origins.get(node.origin.at()).map_or_else(String::new, ToString::to_string);
        let from = if origin.is_empty() { String::new() } else { format!(" from {origin}") };
        format!("step {} {}{from}: {error}", node.index, node.name)
    }
}

/// A node with its number, and its kernel before packing.
type NumberedNode<'a> = ((NodeId, &'a Node), StepKernel<dyn PlannedKernel>);

/// The nested blocks and the kernel of a step.
struct Part {
    blocks: Vec<PreparedBlock>,
    kernel: StepKernel,
}

/// Assembles a prepared block from the steps and their parts.
fn assembled(graph: Graph, parts: Vec<Part>) -> PreparedBlock {
    let lifetimes = Lifetimes::of(&graph);
    let context = Context { graph: &graph, lifetimes: &lifetimes };
    let nodes = graph.numbered().zip(&parts);
    let inputs: Vec<Vec<Operand>> = nodes.map(|(node, part)| context.inputs(node, part.kernel.kernel())).collect();
    let outputs = graph.outputs.iter().map(|&id| context.operand(id)).collect();
    let takes = graph.inputs.iter().map(|&id| graph.kind(id).clone()).collect();
    let (held, starts) = (graph.held, graph.inputs);
    let steps = (0..).map(NodeId).zip(graph.nodes).zip(inputs).zip(parts);
    let steps = steps.map(|(((at, node), inputs), Part { blocks, kernel })| PreparedStep {
        passes: is_passed_on(&node, &kernel, &inputs),
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
        grows: None,
        carries: false,
        packs: Vec::new(),
        mark: Mark(0),
        origin: node.origin,
    });
    PreparedBlock { steps: steps.collect(), held, inputs: starts, takes, outputs }
}

/// Whether a step only passes its input on.
fn is_passed_on(node: &Node, kernel: &StepKernel, inputs: &[Operand]) -> bool {
    matches!(node.ops.single().map(Arc::as_ref), Some(Op::Identity(_)))
        && matches!((kernel, inputs), (StepKernel::Host(_), [Operand::Slot(_)]))
}

struct Context<'a> {
    graph: &'a Graph,
    lifetimes: &'a Lifetimes,
}

impl Context<'_> {
    fn operand(&self, id: SlotId) -> Operand {
        self.graph.constant_of[id.at()].map_or(Operand::Slot(id), Operand::Constant)
    }

    fn inputs(&self, (at, node): (NodeId, &Node), kernel: &dyn Kernel) -> Vec<Operand> {
        let input = |(i, id): (usize, &Option<SlotId>)| match id.map(|id| self.operand(id)) {
            None => Operand::Absent,
            Some(Operand::Slot(slot)) if self.is_taken((at, node), kernel, i, slot) => Operand::Dying(slot),
            Some(operand) => operand,
        };
        node.inputs.iter().enumerate().map(input).collect()
    }

    /// Whether a node takes over its input `i`, in slot `slot`.
    fn is_taken(&self, (at, node): (NodeId, &Node), kernel: &dyn Kernel, i: usize, slot: SlotId) -> bool {
        let kind = self.graph.kind(slot);
        let is_sequence = matches!(kind, Type::Sequence(_));
        let takes = kind.tensor().is_ok_and(|tensor| kernel.takes(i, tensor.dtype));
        let is_last = || self.lifetimes.dead_after(at).contains(&slot);
        let is_once = || node.inputs.iter().flatten().filter(|&&id| id == slot).count() == 1;
        takes && self.lifetimes.is_free((at, node), slot)
            || is_sequence && kernel.takes_sequence(i) && is_last() && is_once()
    }
}
