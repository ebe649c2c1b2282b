//! Chooses the layout of every image of a block, and the pairs of steps that one kernel computes. Adds the steps that reorder
//! images. Also chooses the size of blocks of channels for a whole plan.

use std::collections::HashMap;

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::convolution::reorder;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;

use super::cut::{Choices, Item};
use super::graph::{Graph, Node};
use super::pairs::{self, StepPair};
use super::{NodeId, SlotId, StepKernel};
use crate::cpu::reorder::Reorder;
use crate::cpu::{self, Blocked, OnBlocks, PlannedKernel};
use crate::error::{Error, Result};
use crate::kernel::Memory;
use crate::layout::{Image, Layout};
use crate::plan::{Block, ConstantId, OriginId, StepId};
use crate::types::Type;
use crate::value::Value;

/// The time that a step takes beside its work, in multiply-adds of a vector.
const STEP: f64 = 800.0;
/// Prepare chooses smaller blocks only if they take less than this fraction of the time of the largest blocks. If the
/// numbers of channels are multiples of 16, convolutions take up to 4 % longer in blocks of 8. The costs do not include
/// this difference.
const SMALLER: f64 = 0.96;

/// Returns the blocks of channels with which a plan takes the least time.
pub(super) fn blocking(main: &Block, constants: &[Value], memory: Memory) -> Blocking {
    let (isa, largest) = (Isa::get(), Blocking::largest(Isa::get()));
    let Some(smaller) = Blocking::all(isa).find(|&blocking| blocking != largest) else { return largest };
    let [most, least] = [largest, smaller].map(|blocking| time(main, constants, memory, blocking));
    if least < SMALLER * most {
        smaller
    } else {
        largest
    }
}

/// Returns the time of the steps that can run on blocks of channels, and of the reorders that they need, for the best
/// layouts. It lacks the time that does not depend on the layouts.
fn time(block: &Block, constants: &[Value], memory: Memory, blocking: Blocking) -> f64 {
    let graph = Graph { memory, blocking, ..Graph::of(block) };
    let found = Candidates::of(&graph, constants);
    let (cost, _) = found.chosen(&graph);
    let least = found.kernels.iter().flatten().map(|kernel| kernel.layouts.times[0].min(kernel.layouts.times[1]));
    let overhead = found.pairs.iter().map(|StepPair { paired, .. }| paired.overhead - paired.saving);
    let nested = graph.nodes.iter().flat_map(|node| node.ops.blocks());
    let nested = nested.map(|block| time(block, constants, memory, blocking));
    cost as f64 + least.chain(overhead).sum::<f64>() + nested.sum::<f64>()
}

/// Chooses the steps that run on blocks of channels, and the pairs that one kernel computes, so that the total cost of the
/// block is lowest.
///
/// # Errors
/// A constant cannot be reordered.
pub(super) fn choose(mut graph: Graph, constants: &mut Vec<Value>) -> Result<Graph> {
    let found = Candidates::of(&graph, constants);
    let in_blocks = match found.gains() {
        true => found.chosen(&graph).1,
        false => vec![false; found.kernels.len()],
    };
    let nodes = graph.take_nodes();
    let mut rewrite = Rewrite { graph, constants, moved: HashMap::new() };
    let mut places = Vec::with_capacity(in_blocks.len());
    for (((node, own), kernel), &in_blocks) in nodes.zip(found.kernels).zip(&in_blocks) {
        match kernel {
            Some(OnBlocks { kernel, layouts }) if in_blocks => {
                rewrite.node(node, kernel.in_blocks().map_or(own, StepKernel::Host), Some(&layouts))?;
            }
            Some(OnBlocks { kernel, .. }) => {
                rewrite.node(node, kernel.in_rows().map_or(own, StepKernel::Host), None)?;
            }
            None => rewrite.node(node, own, None)?,
        }
        places.push(NodeId(rewrite.graph.nodes.len() as u32 - 1));
    }
    let are_in_blocks = |pair: &StepPair| pair.nodes.iter().all(|node| in_blocks[node.at()]);
    let pairs = found.pairs.into_iter().filter(are_in_blocks);
    let pairs = pairs.map(|pair| StepPair { nodes: pair.nodes.map(|node| places[node.at()]), ..pair }).collect();
    Ok(pairs::fuse(rewrite.finish()?, pairs))
}

/// Returns how a node runs on blocks, if it can.
fn on_blocks(graph: &Graph, node: &Node, constants: &[Value]) -> Option<OnBlocks> {
    let outputs: Vec<Option<&Type>> = node.outputs.iter().map(|id| id.map(|id| graph.kind(id))).collect();
    let op = node.ops.single()?;
    graph.operands(node, constants, |operands| cpu::on_blocks(op, operands, &outputs))
}

/// The kernels on blocks of channels among which prepare chooses.
struct Candidates {
    /// For each node, its kernel on blocks.
    kernels: Vec<Option<OnBlocks>>,
    /// The nodes that one kernel on blocks may compute.
    pairs: Vec<StepPair>,
}

impl Candidates {
    fn of(graph: &Graph, constants: &[Value]) -> Candidates {
        let kernels: Vec<_> = graph.nodes.iter().map(|node| on_blocks(graph, node, constants)).collect();
        let pairs = pairs::all(graph, |at| Some(&kernels[at.at()].as_ref()?.kernel));
        Candidates { kernels, pairs }
    }

    /// Whether a step or a pair takes less time on blocks.
    fn gains(&self) -> bool {
        !self.pairs.is_empty() || self.kernels.iter().flatten().any(|kernel| kernel.layouts.gain() > 0)
    }

    /// Returns the time of all reorders and lost gains, and which steps run on blocks of channels.
    fn chosen(&self, graph: &Graph) -> (u64, Vec<bool>) {
        let kernels = &self.kernels;
        let mut choices = Choices::new();
        let no = choices.no();
        let items: Vec<Item> = kernels
            .iter()
            .map(|kernel| kernel.as_ref().map_or(no, |kernel| choices.item(kernel.layouts.gain())))
            .collect();
        let item =
            |at: NodeId, layout: Option<&Layout>| if layout == Some(&Layout::Blocks) { items[at.at()] } else { no };
        let mut writer = vec![no; graph.kinds.len()];
        let mut readers: Vec<Vec<Item>> = vec![Vec::new(); graph.kinds.len()];
        for ((at, node), kernel) in graph.numbered().zip(kernels) {
            for (i, &id) in node.outputs.iter().enumerate().filter_map(|(i, id)| Some((i, id.as_ref()?))) {
                writer[id.at()] = item(at, kernel.as_ref().and_then(|kernel| kernel.layouts.outputs.get(i)));
            }
            for (i, &id) in node.inputs.iter().enumerate().filter_map(|(i, id)| Some((i, id.as_ref()?))) {
                readers[id.at()].push(item(at, kernel.as_ref().and_then(|kernel| kernel.layouts.inputs.get(i))));
            }
        }
        for StepPair { nodes, paired } in &self.pairs {
            choices.together(&nodes.map(|node| items[node.at()]), paired.saving as u64);
        }
        graph.outputs.iter().for_each(|&id| readers[id.at()].push(no));
        for (value, (writer, readers)) in writer.into_iter().zip(readers).enumerate() {
            let image = Image::of(&graph.kinds[value]).filter(|_| graph.constant_of[value].is_none());
            let is_always_rows = writer == no && readers.iter().all(|&reader| reader == no);
            if let Some(image) = image.filter(|_| !is_always_rows) {
                let cost = (STEP + reorder(graph.blocking.isa(), image.vectors(graph.blocking) as f64)) as u64;
                choices.unless_all(writer, &readers, cost);
                choices.unless_none(writer, &readers, cost);
            }
        }
        let (cost, best) = choices.best();
        (cost, items.into_iter().map(|item| item != no && best(item)).collect())
    }
}

/// The step of the plan, and its origin.
type Place = (StepId, OriginId);

struct Rewrite<'a> {
    graph: Graph,
    constants: &'a mut Vec<Value>,
    /// For each value and rank in rows, the same value in the other layout.
    moved: HashMap<(SlotId, usize), SlotId>,
}

impl Rewrite<'_> {
    /// Reorders the inputs of a step where needed, then appends the step; it runs on blocks if `layouts` are given.
    fn node(&mut self, mut node: Node, kernel: StepKernel<dyn PlannedKernel>, layouts: Option<&Blocked>) -> Result<()> {
        let place = (node.index, node.origin);
        for (i, input) in node.inputs.iter_mut().enumerate() {
            let Some(id) = *input else { continue };
            *input = Some(match layouts {
                Some(layouts) if layouts.inputs.get(i) == Some(&Layout::Blocks) => {
                    node.channels.resize(i + 1, None);
                    node.channels[i] = Some(self.channels(id, layouts.rank)?);
                    self.blocks(id, layouts.rank, place)?
                }
                _ => self.rows(id, place)?,
            });
        }
        for (id, layout) in node.outputs.iter().zip(layouts.iter().flat_map(|layouts| &layouts.outputs)) {
            if let Some(id) = id {
                self.graph.held[id.at()].layout = *layout;
            }
        }
        self.graph.push(node, kernel);
        Ok(())
    }

    /// Returns the value in rows. Adds a reorder before the step at `place` if needed.
    fn rows(&mut self, id: SlotId, place: Place) -> Result<SlotId> {
        match (self.graph.held[id.at()].layout, Image::of(self.graph.kind(id))) {
            (Layout::Blocks, Some(Image { channels, rank, .. })) => {
                self.moved(id, Reorder { to: Layout::Rows, channels, rank, blocking: self.graph.blocking }, place)
            }
            _ => Ok(id),
        }
    }

    /// Returns the value in blocks, as an image of rank `rank`. The value itself may lack the first dimension.
    fn blocks(&mut self, id: SlotId, rank: usize, place: Place) -> Result<SlotId> {
        if self.graph.held[id.at()].layout == Layout::Blocks {
            return Ok(id);
        }
        let channels = self.channels(id, rank)?;
        self.moved(id, Reorder { to: Layout::Blocks, channels, rank, blocking: self.graph.blocking }, place)
    }

    /// Returns the channels of an image of rank `rank`. The value itself may lack the first dimension.
    fn channels(&self, id: SlotId, rank: usize) -> Result<usize> {
        let kind = self.graph.kind(id).tensor()?;
        let channels = kind.rank().and_then(|own| kind.size((own + 1).checked_sub(rank)?));
        channels.ok_or_else(|| Error::op("an image whose channels are not known"))
    }

    fn moved(&mut self, id: SlotId, reorder: Reorder, place: Place) -> Result<SlotId> {
        if let Some(moved) = self.moved.get(&(id, reorder.rank)) {
            return Ok(*moved);
        }
        let constant = self.graph.constant_of[id.at()].and_then(|constant| self.constants.get(constant.at()));
        let constant = constant.map(|value| reorder.apply(value.tensor()?, &Threads::serial())).transpose()?;
        let constant = constant.map(|array| {
            self.constants.push(array.into());
            ConstantId(self.constants.len() as u32 - 1)
        });
        let moved = self.graph.add(id, reorder.to, constant);
        self.moved.insert((id, reorder.rank), moved);
        if constant.is_none() {
            self.graph.push_added(place, "Reorder", Box::new(reorder), [id, moved]);
        }
        Ok(moved)
    }

    /// Returns the block with its outputs in rows.
    fn finish(mut self) -> Result<Graph> {
        for i in 0..self.graph.outputs.len() {
            let id = self.graph.outputs[i];
            if let Some(place) = self.graph.writer(id).map(|node| (node.index, node.origin)) {
                self.graph.outputs[i] = self.rows(id, place)?;
            }
        }
        Ok(self.graph)
    }
}
