//! Fuses pairs of steps where one kernel is faster than two.

use super::graph::Graph;
use super::prepared::NodeId;
use crate::cpu::{self, Choice};
use crate::value::Value;

/// Fuses each step with the only step that reads its result, where [`cpu::fused`] has a kernel for both.
pub(super) fn fuse(mut graph: Graph, constants: &[Value]) -> Graph {
    let readers = readers(&graph);
    let mut kept = vec![true; graph.nodes.len()];
    for (at, kept) in (0..).map(NodeId).zip(&mut kept) {
        let Some((reader, choice)) = fusion(&graph, &readers, at, constants) else { continue };
        let (before, rest) = graph.nodes.split_at_mut(reader.at());
        if let (Some(first), Some(next)) = (before.get(at.at()), rest.first_mut()) {
            next.follow(first, choice);
        }
        *kept = false;
    }
    let mut kept = kept.into_iter();
    graph.nodes.retain(|_| kept.next() == Some(true));
    graph
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

/// Returns the node that node `at` can be fused with, and the fused kernel.
fn fusion(graph: &Graph, readers: &[Vec<Option<NodeId>>], at: NodeId, constants: &[Value]) -> Option<(NodeId, Choice)> {
    let node = &graph.nodes[at.at()];
    let [Some(result)] = node.outputs[..] else { return None };
    let [Some(reader)] = readers[result.at()][..] else { return None };
    let next = graph.nodes.get(reader.at()).filter(|next| next.inputs.first() == Some(&Some(result)))?;
    let choice = graph.operands(node, constants, |operands| {
        graph.operands(next, constants, |next_operands| {
            cpu::fused((&node.choice, operands), (&next.choice, next_operands))
        })
    })?;
    Some((reader, choice))
}
