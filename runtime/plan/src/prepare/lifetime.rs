//! Finds the last use of each value, and the storage that a step may overwrite.
//!
//! Values that may share storage (the inputs that an op [shares](crate::operator::Operator::shares), and its outputs)
//! form a group. A step may overwrite the storage of an input if the whole group dies with the step, the group holds no
//! constant, and no other input of the step is in the group. During a run, the caller must not hold a value of the
//! group either.

use super::graph::{Graph, Node};
use super::prepared::NodeId;
use super::SlotId;

/// The last use of the outputs of a block.
const FOREVER: NodeId = NodeId(u32::MAX);

pub(super) struct Lifetimes {
    /// For each value, the representative of its group.
    group: Vec<SlotId>,
    /// For each representative, the last node that reads a value of the group.
    group_dies: Vec<NodeId>,
    /// For each representative, whether the group holds a constant.
    constant: Vec<bool>,
    /// For each node, the slots that no later node reads.
    dead_after: Vec<Vec<SlotId>>,
}

impl Lifetimes {
    pub fn of(graph: &Graph) -> Lifetimes {
        let count = graph.kinds.len();
        let dies = last_reads(graph);
        let group = groups(graph);
        let mut lifetimes = Lifetimes {
            group_dies: vec![NodeId(0); count],
            constant: vec![false; count],
            dead_after: vec![Vec::new(); graph.nodes.len()],
            group,
        };
        for (value, &node) in (0..).map(SlotId).zip(&dies) {
            let group = lifetimes.group[value.at()].at();
            lifetimes.group_dies[group] = lifetimes.group_dies[group].max(node);
            if node != FOREVER && graph.constant_of[value.at()].is_none() {
                if let Some(dead) = lifetimes.dead_after.get_mut(node.at()) {
                    dead.push(value);
                }
            }
        }
        let constants = (0..count).filter(|&value| graph.constant_of[value].is_some());
        for value in constants {
            lifetimes.constant[lifetimes.group[value].at()] = true;
        }
        lifetimes
    }

    /// Returns the slots that no node after `node` reads.
    pub fn dead_after(&self, node: NodeId) -> &[SlotId] {
        &self.dead_after[node.at()]
    }

    /// Whether a node may take over the storage of its input `id`.
    pub fn is_free(&self, (at, node): (NodeId, &Node), id: SlotId) -> bool {
        let group = self.group[id.at()];
        let same = node.inputs.iter().flatten().filter(|other| self.group[other.at()] == group);
        self.group_dies[group.at()] <= at && !self.constant[group.at()] && same.count() == 1
    }
}

/// Returns the last node that reads each value, or the node that defines it if none reads it; [`FOREVER`] for the
/// outputs of the block.
fn last_reads(graph: &Graph) -> Vec<NodeId> {
    let mut last = vec![NodeId(0); graph.kinds.len()];
    for (at, node) in graph.numbered() {
        for &id in node.inputs.iter().chain(&node.outputs).flatten() {
            last[id.at()] = at;
        }
    }
    for &id in &graph.outputs {
        last[id.at()] = FOREVER;
    }
    last
}

/// Returns the representative of each value's group (union–find).
fn groups(graph: &Graph) -> Vec<SlotId> {
    fn find(parent: &mut [SlotId], mut value: SlotId) -> SlotId {
        while parent[value.at()] != value {
            parent[value.at()] = parent[parent[value.at()].at()];
            value = parent[value.at()];
        }
        value
    }
    let mut parent: Vec<SlotId> = (0..graph.kinds.len() as u32).map(SlotId).collect();
    for node in &graph.nodes {
        let shares = |(i, id): (usize, &Option<SlotId>)| id.filter(|_| node.ops.shares(i));
        let mut shared = node.inputs.iter().enumerate().filter_map(shares);
        let Some(first) = shared.next() else { continue };
        for other in shared.chain(node.outputs.iter().flatten().copied()) {
            let (a, b) = (find(&mut parent, first), find(&mut parent, other));
            parent[b.at()] = a;
        }
    }
    (0..parent.len() as u32).map(|value| find(&mut parent, SlotId(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    /// A block of `count` values. Value 0 is its input, and value 1 a constant.
    fn graph(count: usize, steps: &Value, outputs: &[u32]) -> Graph {
        let any = json!({"name": "", "type": {"Tensor": {"dtype": "float32", "shape": null}}});
        let block = serde_json::from_value(json!({
            "values": vec![any; count],
            "inputs": [0],
            "constants": [{"value": 1, "constant": 0}],
            "steps": steps.as_array().expect("a list").iter().map(|step| {
                json!({"op": step[0], "inputs": step[1], "outputs": step[2], "origin": 0})
            }).collect::<Vec<_>>(),
            "outputs": outputs,
        }))
        .expect("a block");
        Graph::of(&block)
    }

    #[test]
    fn storage_is_free_at_its_last_reader() {
        let relu = json!({"Unary": {"function": "Relu"}});
        let reshape = json!({"Reshape": {"allow_zero": false}});
        let add = json!({"Binary": {"function": "Add"}});
        let split = json!({"Split": {"axis": 0}});
        // Steps as [op, inputs, outputs], the block's outputs, and the free pairs (step, input).
        let cases = [
            // A constant is never free; an input of the block and a computed value are.
            (json!([[relu, [0], [2]], [relu, [2], [3]], [relu, [1], [4]]]), vec![3, 4], vec![(0, 0), (1, 2)]),
            // Through a view, whose shape is a constant.
            (json!([[relu, [0], [2]], [reshape, [2, 1], [3]], [relu, [3], [4]]]), vec![4], vec![(0, 0), (2, 3)]),
            // A view of a constant is not free.
            (json!([[reshape, [1, 1], [2]], [relu, [2], [3]]]), vec![3], vec![]),
            // Not before the other view of the storage is dead.
            (
                json!([[relu, [0], [2]], [reshape, [2, 1], [3]], [relu, [3], [4]], [add, [4, 2], [5]]]),
                vec![5],
                vec![(0, 0), (3, 4), (3, 2)],
            ),
            (
                json!([[relu, [0], [2]], [split, [2], [3, 4]], [relu, [3], [5]], [add, [4, 5], [6]]]),
                vec![6],
                vec![(0, 0), (3, 4), (3, 5)],
            ),
            // Read twice by one step.
            (json!([[relu, [0], [2]], [add, [2, 2], [3]]]), vec![3], vec![(0, 0)]),
            // An output is never free.
            (json!([[relu, [0], [2]], [relu, [2], [3]]]), vec![2, 3], vec![(0, 0)]),
        ];
        for (steps, outputs, expected) in cases {
            let graph = graph(8, &steps, &outputs);
            let lifetimes = Lifetimes::of(&graph);
            let mut free = Vec::new();
            for (at, node) in graph.numbered() {
                let ids = node.inputs.iter().flatten().filter(|id| lifetimes.is_free((at, node), **id));
                free.extend(ids.map(|id| (at.at(), id.0)));
            }
            assert_eq!(free, expected, "{steps}");
        }
    }
}
