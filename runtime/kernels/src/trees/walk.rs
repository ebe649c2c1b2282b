//! The walk of rows down the trees.

use super::forest::{Forest, Joining, LeafSum, Threshold, TreeNode};
use crate::prefetch::prefetch;

/// The rows, or the trees, that are under way at a time.
const LANES: usize = 8;
/// The most nodes to prefetch: more would not fit the first-level cache.
const MOST: usize = 1024;

/// The walk of rows of `columns` elements down the trees of a forest.
pub(super) struct Walk<'f, T> {
    pub forest: &'f Forest<T>,
    pub columns: usize,
}

impl<T: Threshold> Walk<'_, T> {
    /// Adds the weights of the leaves that the rows of `x` reach in some trees to `sums [rows, targets]`.
    pub fn add(&self, roots: &[u32], x: &[T], sums: &mut [LeafSum]) {
        if self.forest.has_missing {
            self.add_all::<true>(roots, x, sums);
        } else {
            self.add_all::<false>(roots, x, sums);
        }
    }

    fn add_all<const MISSING: bool>(&self, roots: &[u32], x: &[T], sums: &mut [LeafSum]) {
        let (targets, all) = (self.forest.targets, roots);
        if sums.len() == targets {
            for (next, roots) in (LANES..).step_by(LANES).zip(roots.chunks(LANES)) {
                for &root in all.iter().skip(next).take(LANES) {
                    prefetch(&raw const self.forest.nodes[root as usize]);
                }
                let leaves = self.leaves::<MISSING>(|lane| (*roots.get(lane).unwrap_or(&roots[0]), x));
                for &leaf in &leaves[..roots.len()] {
                    self.add_leaf(leaf, sums);
                }
            }
            return;
        }
        for (next, &root) in (1..).zip(roots) {
            self.prefetch_tree(root, roots.get(next), sums.len() / targets);
            for (first, sums) in (0..).step_by(LANES).zip(sums.chunks_mut(LANES * targets)) {
                let rows = sums.len() / targets;
                let leaves = self.leaves::<MISSING>(|lane| (root, &x[(first + lane.min(rows - 1)) * self.columns..]));
                for (&leaf, sums) in leaves.iter().zip(sums.chunks_exact_mut(targets)) {
                    self.add_leaf(leaf, sums);
                }
            }
        }
    }

    /// Prefetches the next tree, if the rows will read most of it.
    #[inline(always)]
    fn prefetch_tree(&self, root: u32, next: Option<&u32>, rows: usize) {
        let Some(&next) = next.filter(|next| **next > root) else { return };
        // The next tree has about as many nodes as this one.
        let nodes = self.forest.nodes.iter().skip(next as usize).take(((next - root) as usize).min(8 * rows).min(MOST));
        for node in nodes.step_by(64 / size_of::<TreeNode<T>>()) {
            prefetch(node);
        }
    }

    /// The leaves that the lanes reach, each from its node with its row.
    #[inline(always)]
    fn leaves<'x, const MISSING: bool>(&self, start: impl Fn(usize) -> (u32, &'x [T])) -> [u32; LANES]
    where
        T: 'x,
    {
        let lanes: [(u32, &[T]); LANES] = std::array::from_fn(start);
        let mut at = lanes.map(|(root, _)| root);
        if self.forest.features == 0 {
            return at; // all trees are leaves
        }
        let rows = lanes.map(|(_, row)| &row[..self.forest.features]);
        loop {
            let mut moved = 0;
            for (at, row) in at.iter_mut().zip(&rows) {
                let node = &self.forest.nodes[*at as usize];
                let x = row[(node.feature >> 1) as usize];
                // Without branches, because the processor could not predict them.
                #[expect(clippy::eq_op, reason = "only a NaN differs from itself")]
                let is_missing = MISSING & (node.feature & 1 == 1) & (x != x);
                let next = node.next[usize::from((x <= node.threshold) | is_missing)];
                moved |= *at ^ next;
                *at = next;
            }
            if moved == 0 {
                return at;
            }
        }
    }

    /// Adds the weights of a leaf to the sums of a row.
    #[inline(always)]
    fn add_leaf(&self, leaf: u32, sums: &mut [LeafSum]) {
        let join = self.forest.join;
        if let [sum] = sums {
            let weight = self.forest.nodes[leaf as usize].threshold.into();
            return match join {
                Joining::Add => *sum = LeafSum { value: sum.value + weight, is_any: true },
                _ => sum.add(weight, join),
            };
        }
        let [first, end] = self.forest.spans[leaf as usize];
        for &(target, weight) in &self.forest.weights[first as usize..end as usize] {
            sums[target as usize].add(weight.into(), join);
        }
    }
}
