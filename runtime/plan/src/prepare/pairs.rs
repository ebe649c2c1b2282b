//! Joins steps that take less time together.

use super::graph::Graph;
use crate::cpu::{self, Choice};
use crate::value::Value;

/// The block with each step joined to the one that alone reads its result, where [`cpu::joined`] has a kernel for both.
pub(super) fn join(mut graph: Graph, constants: &[Value]) -> Graph {
    let readers = readers(&graph);
    let mut kept = vec![true; graph.nodes.len()];
    for (at, kept) in kept.iter_mut().enumerate() {
        let Some((reader, choice)) = with_next(&graph, &readers, at, constants) else { continue };
        let (before, rest) = graph.nodes.split_at_mut(reader);
        if let (Some(first), Some(next)) = (before.get(at), rest.first_mut()) {
            next.follow(first, choice);
        }
        *kept = false;
    }
    let mut kept = kept.into_iter();
    graph.nodes.retain(|_| kept.next() == Some(true));
    graph
}

/// By value, the steps that read it, each as often as it does; one beyond the last for the block's outputs.
fn readers(graph: &Graph) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); graph.kinds.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        node.inputs.iter().flatten().for_each(|&id| readers[id.at()].push(at));
    }
    graph.outputs.iter().for_each(|&id| readers[id.at()].push(graph.nodes.len()));
    readers
}

/// The step that a step can be joined to, and what then does the work of both.
fn with_next(graph: &Graph, readers: &[Vec<usize>], at: usize, constants: &[Value]) -> Option<(usize, Choice)> {
    let node = &graph.nodes[at];
    let [Some(between)] = node.outputs[..] else { return None };
    let [reader] = readers[between.at()][..] else { return None };
    let next = graph.nodes.get(reader).filter(|next| next.inputs.first() == Some(&Some(between)))?;
    let choice = graph.operands(node, constants, |operands| {
        graph.operands(next, constants, |of_next| cpu::joined((&node.choice, operands), (&next.choice, of_next)))
    })?;
    Some((reader, choice))
}
