//! Pairs of steps that one kernel computes faster than two.

use super::graph::{Graph, Node};
use super::prepared::NodeId;
use super::StepKernel;
use crate::cpu::{self, BlocksKernel, Paired};

/// Two nodes, and the kernel for both if both run on blocks of channels.
pub(super) struct StepPair {
    pub nodes: [NodeId; 2],
    pub paired: Paired,
}

/// Returns the pairs of each node and the only node that reads its result. `on_blocks` returns the kernel on blocks of
/// channels of a node. No node is in two pairs.
pub(super) fn all<'a>(graph: &Graph, on_blocks: impl Fn(NodeId) -> Option<&'a BlocksKernel>) -> Vec<StepPair> {
    let readers = readers(graph);
    let mut is_taken = vec![false; graph.nodes.len()];
    let mut pairs = Vec::new();
    for (at, node) in graph.numbered() {
        let Some(reader) = only_reader(graph, &readers, node).filter(|_| !is_taken[at.at()]) else { continue };
        let (Some(first), Some(next)) = (on_blocks(at), on_blocks(reader)) else { continue };
        if let Some(paired) = cpu::paired(first, next) {
            is_taken[reader.at()] = true;
            pairs.push(StepPair { nodes: [at, reader], paired });
        }
    }
    pairs
}

/// For each value, the nodes that read it, with repetition; `None` stands for the output of the block.
fn readers(graph: &Graph) -> Vec<Vec<Option<NodeId>>> {
    let mut readers = vec![Vec::new(); graph.kinds.len()];
    for (at, node) in graph.numbered() {
        node.inputs.iter().flatten().for_each(|&id| readers[id.at()].push(Some(at)));
    }
    graph.outputs.iter().for_each(|&id| readers[id.at()].push(None));
    readers
}

/// Returns the node whose input 0 is the only place where the result of `node` is read.
fn only_reader(graph: &Graph, readers: &[Vec<Option<NodeId>>], node: &Node) -> Option<NodeId> {
    let [Some(result)] = node.outputs[..] else { return None };
    let [Some(reader)] = readers[result.at()][..] else { return None };
    let reads_it_first = graph.nodes.get(reader.at())?.inputs.first() == Some(&Some(result));
    reads_it_first.then_some(reader)
}

/// Joins each pair of nodes into the second one.
pub(super) fn fuse(mut graph: Graph, pairs: Vec<StepPair>) -> Graph {
    let mut kept = vec![true; graph.nodes.len()];
    for StepPair { nodes: [first, next], paired } in pairs {
        let (before, rest) = graph.nodes.split_at_mut(next.at());
        if let (Some(first), Some(next)) = (before.get(first.at()), rest.first_mut()) {
            next.follow(first);
        }
        graph.kernels[next.at()] = StepKernel::Host(paired.kernel);
        kept[first.at()] = false;
    }
    let nodes = graph.take_nodes().zip(kept).filter(|(_, kept)| *kept).map(|(node, _)| node);
    (graph.nodes, graph.kernels) = nodes.unzip();
    graph
}
