//! Pairs of steps that one kernel computes faster than two.

use super::graph::{Graph, Node};
use super::prepared::NodeId;
use crate::cpu::{self, Paired, PlannedKernel};
use crate::value::Value;

/// Two nodes, and the kernel for both if both run on blocks of channels.
pub(super) struct Pair {
    pub nodes: [NodeId; 2],
    pub paired: Paired,
}

/// Returns the pairs of each node and the only node that reads its result. `on_blocks` returns the kernel on blocks of
/// channels of a node. No node is in two pairs.
pub(super) fn all<'a>(
    graph: &Graph,
    constants: &[Value],
    on_blocks: impl Fn(NodeId) -> Option<&'a dyn PlannedKernel>,
) -> Vec<Pair> {
    let readers = readers(graph);
    let mut is_taken = vec![false; graph.nodes.len()];
    let mut pairs = Vec::new();
    for (at, node) in graph.numbered() {
        let Some((reader, next)) = only_reader(graph, &readers, node).filter(|_| !is_taken[at.at()]) else { continue };
        let (Some(first), Some(second)) = (on_blocks(at), on_blocks(reader)) else { continue };
        let paired = graph.operands(node, constants, |operands| {
            graph.operands(next, constants, |next_operands| cpu::paired((first, operands), (second, next_operands)))
        });
        if let Some(paired) = paired {
            is_taken[reader.at()] = true;
            pairs.push(Pair { nodes: [at, reader], paired });
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
fn only_reader<'a>(graph: &'a Graph, readers: &[Vec<Option<NodeId>>], node: &Node) -> Option<(NodeId, &'a Node)> {
    let [Some(result)] = node.outputs[..] else { return None };
    let [Some(reader)] = readers[result.at()][..] else { return None };
    let next = graph.nodes.get(reader.at()).filter(|next| next.inputs.first() == Some(&Some(result)))?;
    Some((reader, next))
}

/// Joins each pair of nodes into the second one.
pub(super) fn fuse(mut graph: Graph, pairs: Vec<Pair>) -> Graph {
    let mut kept = vec![true; graph.nodes.len()];
    for Pair { nodes: [first, next], paired } in pairs {
        let (before, rest) = graph.nodes.split_at_mut(next.at());
        if let (Some(first), Some(next)) = (before.get(first.at()), rest.first_mut()) {
            next.follow(first);
        }
        graph.kernels[next.at()] = paired.kernel;
        kept[first.at()] = false;
    }
    let nodes = graph.take_nodes().zip(kept).filter(|(_, kept)| *kept).map(|(node, _)| node);
    (graph.nodes, graph.kernels) = nodes.unzip();
    graph
}
