//! Ensembles of decision trees: where each row arrives, and what its leaves add up to.
//!
//! A node has 16 bytes for float32, and its children come later in memory. Several rows walk down a tree at a time, or one
//! row walks down several trees, so that the loads of one do not wait for those of another.
//!
//! The trees form chunks of a fixed number. The weights of a chunk are added in the order of its trees, and the chunks in
//! their order, so that the sums are the same for every number of rows and of threads.

mod forest;
mod scores;
mod walk;

pub use forest::{Forest, Joining, Threshold, TreeNode};
pub use scores::{ClassRule, Link, Scoring};

use crate::scratch::Scratch;
use crate::threads::{Threads, MOST_THREADS};
use forest::LeafSum;
use walk::Walk;

/// The trees of a chunk.
const CHUNK: usize = 64;
/// The rows of a task: a tree in the first-level cache serves all of them.
const ROWS: usize = 512;
/// The least number of visits of nodes for which it is worth to wake a thread, about 20 µs.
const LEAST: usize = 8192;

impl<T: Threshold> Forest<T> {
    /// The bytes of the forest in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.roots) + size_of_val(&*self.spans) + size_of_val(&*self.weights)
    }

    /// An upper bound on the bytes of scratch memory for this number of rows.
    pub fn scratch(&self, rows: usize) -> usize {
        let chunks = self.roots.len().div_ceil(CHUNK);
        let sums = rows.min(ROWS).saturating_mul(self.targets).saturating_mul(size_of::<LeafSum>());
        sums.saturating_mul(chunks.max(2 * MOST_THREADS.min(rows.div_ceil(ROWS))))
    }

    /// Writes the scores of the rows of `x [rows, columns]` to `scores [rows, targets]`, and the class of each row to
    /// `classes [rows]`, if it is not empty.
    ///
    /// # Panics
    /// The slices do not have these lengths, or there are fewer columns than features.
    pub fn run(
        &self,
        threads: &Threads,
        x: &[T],
        columns: usize,
        scoring: &Scoring,
        scores: &mut [T],
        classes: &mut [i64],
    ) {
        assert!(columns >= self.features && self.targets > 0);
        let rows = scores.len() / self.targets;
        assert!(x.len() == rows * columns && (classes.is_empty() || classes.len() == rows));
        let walk = Walk { forest: self, columns };
        if rows <= ROWS {
            let mut sums = self.sums_by_trees(threads, &walk, x, rows);
            return scoring.all(self.targets, &mut sums, scores, classes);
        }
        let mut none = Scratch::filled(0, if classes.is_empty() { rows } else { 0 });
        let classes = if classes.is_empty() { &mut none[..] } else { classes };
        let outputs = scores.chunks_mut(ROWS * self.targets).zip(classes.chunks_mut(ROWS));
        let mut parts = Scratch::of(outputs.enumerate());
        threads.for_each_chunk(&mut parts, 1, |_, part| {
            for (i, (scores, classes)) in part {
                let x = &x[*i * ROWS * columns..][..classes.len() * columns];
                let mut sums = self.sums(&walk, x, classes.len());
                scoring.all(self.targets, &mut sums, scores, classes);
            }
        });
    }

    /// The sums `[rows, targets]` of all trees, chunk by chunk.
    fn sums(&self, walk: &Walk<T>, x: &[T], rows: usize) -> Scratch<LeafSum> {
        let mut sums = Scratch::filled(LeafSum::default(), rows * self.targets);
        let mut part = Scratch::filled(LeafSum::default(), rows * self.targets);
        for (i, roots) in self.roots.chunks(CHUNK).enumerate() {
            if i == 0 {
                walk.add(roots, x, &mut sums);
                continue;
            }
            part.fill(LeafSum::default());
            walk.add(roots, x, &mut part);
            merge(&mut sums, &part, self.join);
        }
        sums
    }

    /// The same sums, where the threads share the chunks.
    fn sums_by_trees(&self, threads: &Threads, walk: &Walk<T>, x: &[T], rows: usize) -> Scratch<LeafSum> {
        let (chunks, size) = (self.roots.len().div_ceil(CHUNK), rows * self.targets);
        // A path of a tree has about as many nodes as the logarithm of the number of its nodes.
        let depth = (self.nodes.len() / self.roots.len().max(1)).max(2).ilog2() as usize;
        let tasks = (rows * self.roots.len() * depth / LEAST).min(threads.count()).min(chunks);
        if tasks < 2 || size == 0 {
            return self.sums(walk, x, rows);
        }
        let mut parts = Scratch::filled(LeafSum::default(), chunks * size);
        let each = chunks.div_ceil(tasks);
        threads.for_each_chunk(&mut parts, each * size, |i, parts| {
            let chunks = self.roots.chunks(CHUNK).skip(i * each);
            for (part, roots) in parts.chunks_exact_mut(size).zip(chunks) {
                walk.add(roots, x, part);
            }
        });
        let (sums, rest) = parts.split_at_mut(size);
        for part in rest.chunks_exact(size) {
            merge(sums, part, self.join);
        }
        parts.truncate(size);
        parts
    }
}

fn merge(sums: &mut [LeafSum], part: &[LeafSum], join: Joining) {
    for (sum, part) in sums.iter_mut().zip(part) {
        sum.merge(*part, join);
    }
}

#[cfg(test)]
mod tests;
