//! Which of two choices each of several items takes, where choices cost and neighbors that differ cost too: a minimum cut.
//!
//! Source: D. M. Greig, B. T. Porteous, A. H. Seheult, "Exact maximum a posteriori estimation for binary images", 1989.

use petgraph::algo::dinics;
use petgraph::graph::{EdgeIndex, Graph, NodeIndex};
use petgraph::visit::EdgeRef;
use petgraph::Direction;

/// More than everything else together.
const FORBIDDEN: u64 = 1 << 60;
/// The most that one choice or neighbor may cost, so that sums do not overflow.
const MOST: u64 = 1 << 40;

/// Items, each of which chooses yes or no.
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

    /// The item that always says no.
    pub fn no(&self) -> Item {
        self.no
    }

    /// A new item, that gains so much by saying yes.
    pub fn item(&mut self, gain: i64) -> Item {
        let item = self.graph.add_node(());
        let cost = gain.unsigned_abs().min(MOST);
        match gain {
            0.. => self.graph.add_edge(self.yes, item, cost),
            _ => self.graph.add_edge(item, self.no, cost),
        };
        item
    }

    /// It costs so much when `one` says yes and any of `others` says no.
    pub fn unless_all(&mut self, one: Item, others: &[Item], cost: u64) {
        let middle = self.middle(others, |graph, middle, other| graph.add_edge(middle, other, FORBIDDEN));
        self.graph.add_edge(one, middle, cost.min(MOST));
    }

    /// It costs so much when `one` says no and any of `others` says yes.
    pub fn unless_none(&mut self, one: Item, others: &[Item], cost: u64) {
        let middle = self.middle(others, |graph, middle, other| graph.add_edge(other, middle, FORBIDDEN));
        self.graph.add_edge(middle, one, cost.min(MOST));
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

    /// Whether each item says yes in the choice that costs least.
    pub fn best(&self) -> impl Fn(Item) -> bool {
        let (_, flow) = dinics(&self.graph, self.yes, self.no);
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
        move |item| reached[item.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_choice_costs_least() {
        // Gains of a row of items, what it costs that neighbors differ (before the first and behind the last is a no), and
        // who says yes.
        let cases: [(&[i64], u64, &[bool]); 5] = [
            (&[5], 1, &[true]),
            (&[5], 3, &[false]),
            (&[5, 0, 5], 3, &[true, true, true]),
            (&[5, -9, 5], 2, &[true, false, true]),
            (&[5, -1, -1, 5, -7], 4, &[false, false, false, false, false]),
        ];
        for (gains, cost, expected) in cases {
            let mut choices = Choices::new();
            let mut items: Vec<Item> = gains.iter().map(|&gain| choices.item(gain)).collect();
            items.insert(0, choices.no());
            items.push(choices.no());
            for pair in items.windows(2) {
                choices.unless_all(pair[0], &pair[1..], cost);
                choices.unless_none(pair[0], &pair[1..], cost);
            }
            let best = choices.best();
            let found: Vec<bool> = items[1..=gains.len()].iter().map(|&item| best(item)).collect();
            assert_eq!(found, expected, "{gains:?} {cost}");
        }
    }

    #[test]
    fn a_cost_for_several_counts_once() {
        for (gain, expected) in [(1, false), (3, true)] {
            let mut choices = Choices::new();
            let readers = [choices.item(gain), choices.item(gain)];
            choices.unless_none(choices.no(), &readers, 4);
            let best = choices.best();
            assert_eq!(readers.map(best), [expected; 2], "{gain}");
        }
    }
}
