//! A minimum cut: chooses yes or no for each item, where each choice and each pair of different neighbors has a cost.
//!
//! Source: D. M. Greig, B. T. Porteous, A. H. Seheult, "Exact maximum a posteriori estimation for binary images", 1989.

use petgraph::algo::dinics;
use petgraph::graph::{EdgeIndex, Graph, NodeIndex};
use petgraph::visit::EdgeRef;
use petgraph::Direction;

/// A cost larger than all other costs together.
const FORBIDDEN: u64 = 1 << 60;
/// The largest cost of one choice or pair of neighbors, so that sums do not overflow.
const MAX_COST: u64 = 1 << 40;

/// A minimum-cost choice of yes or no for each item.
pub(super) struct Choices {
    graph: Graph<(), u64>,
    yes: NodeIndex,
    no: NodeIndex,
}

/// An item.
pub(super) type Item = NodeIndex;

impl Choices {
    pub fn new() -> Choices {
        let mut graph = Graph::new();
        let (yes, no) = (graph.add_node(()), graph.add_node(()));
        Choices { graph, yes, no }
    }

    /// Returns the item that is always no.
    pub fn no(&self) -> Item {
        self.no
    }

    /// Adds an item that saves `gain` if it is yes.
    pub fn item(&mut self, gain: i64) -> Item {
        let item = self.graph.add_node(());
        let cost = gain.unsigned_abs().min(MAX_COST);
        match gain {
            0.. => self.graph.add_edge(self.yes, item, cost),
            _ => self.graph.add_edge(item, self.no, cost),
        };
        item
    }

    /// Adds a gain that the choice saves if all of `items` are yes.
    pub fn together(&mut self, items: &[Item], gain: u64) {
        let all = self.graph.add_node(());
        self.graph.add_edge(self.yes, all, gain.min(MAX_COST));
        for &item in items {
            self.graph.add_edge(all, item, FORBIDDEN);
        }
    }

    /// Adds `cost` if `one` is yes and any of `others` is no.
    pub fn unless_all(&mut self, one: Item, others: &[Item], cost: u64) {
        let middle = self.middle(others, |graph, middle, other| graph.add_edge(middle, other, FORBIDDEN));
        self.graph.add_edge(one, middle, cost.min(MAX_COST));
    }

    /// Adds `cost` if `one` is no and any of `others` is yes.
    pub fn unless_none(&mut self, one: Item, others: &[Item], cost: u64) {
        let middle = self.middle(others, |graph, middle, other| graph.add_edge(other, middle, FORBIDDEN));
        self.graph.add_edge(middle, one, cost.min(MAX_COST));
    }

    fn middle(&mut self, others: &[Item], tie: impl Fn(&mut Graph<(), u64>, Item, Item) -> EdgeIndex) -> Item {
        if let [other] = others {
            return *other;
        }
        let middle = self.graph.add_node(());
        for &other in others {
            tie(&mut self.graph, middle, other);
        }
        middle
    }

    /// Returns the cost of the cheapest choice, and whether each item is yes in this choice. If an item with a gain is
    /// no, its gain counts as a cost.
    pub fn best(&self) -> (u64, impl Fn(Item) -> bool) {
        let (cost, flow) = dinics(&self.graph, self.yes, self.no);
        let mut reached = vec![false; self.graph.node_count()];
        let mut open = vec![self.yes];
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut reached[node.index()], true) {
                continue;
            }
            let forward = self.graph.edges(node).filter(|edge| flow[edge.id().index()] < *edge.weight());
            open.extend(forward.map(|edge| edge.target()));
            let back = self.graph.edges_directed(node, Direction::Incoming).filter(|edge| flow[edge.id().index()] > 0);
            open.extend(back.map(|edge| edge.source()));
        }
        (cost, move |item: Item| reached[item.index()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_choice_costs_least() {
        // Gains of a row of items, the cost of different neighbors (both ends of the row have a no beside them), and
        // the items that are yes, with their total cost.
        let cases: [(&[i64], u64, &[bool], u64); 5] = [
            (&[5], 1, &[true], 2),
            (&[5], 3, &[false], 5),
            (&[5, 0, 5], 3, &[true, true, true], 6),
            (&[5, -9, 5], 2, &[true, false, true], 8),
            (&[5, -1, -1, 5, -7], 4, &[false, false, false, false, false], 10),
        ];
        for (gains, cost, expected, total) in cases {
            let mut choices = Choices::new();
            let mut items: Vec<Item> = gains.iter().map(|&gain| choices.item(gain)).collect();
            items.insert(0, choices.no());
            items.push(choices.no());
            for pair in items.windows(2) {
                choices.unless_all(pair[0], &pair[1..], cost);
                choices.unless_none(pair[0], &pair[1..], cost);
            }
            let (least, best) = choices.best();
            let found: Vec<bool> = items[1..=gains.len()].iter().map(|&item| best(item)).collect();
            assert_eq!((&found[..], least), (expected, total), "{gains:?} {cost}");
        }
    }

    #[test]
    fn a_gain_of_several_needs_all_of_them() {
        for (gains, gain, expected, total) in [
            ([-2, -3], 4, [false, false], 4),
            ([-2, -3], 6, [true, true], 5),
            ([2, -3], 2, [true, false], 2),
            ([2, -3], 4, [true, true], 3),
        ] {
            let mut choices = Choices::new();
            let items = gains.map(|gain| choices.item(gain));
            choices.together(&items, gain);
            let (least, best) = choices.best();
            assert_eq!((items.map(best), least), (expected, total), "{gains:?} {gain}");
        }
    }

    #[test]
    fn a_cost_for_several_counts_once() {
        for (gain, expected) in [(1, false), (3, true)] {
            let mut choices = Choices::new();
            let readers = [choices.item(gain), choices.item(gain)];
            choices.unless_none(choices.no(), &readers, 4);
            let (_, best) = choices.best();
            assert_eq!(readers.map(best), [expected; 2], "{gain}");
        }
    }
}
