//! The trees, and the sums of their weights.

/// A number of a forest.
pub trait Threshold: Copy + PartialOrd + Default + Send + Sync + Into<f64> {
    /// The number rounded to this type.
    fn rounded(x: f64) -> Self;
}

impl Threshold for f32 {
    fn rounded(x: f64) -> f32 {
        x as f32
    }
}

impl Threshold for f64 {
    fn rounded(x: f64) -> f64 {
        x
    }
}

/// A node. At a leaf, `yes` and `no` are the node itself, and the threshold is the first weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeNode<T> {
    /// The largest element of the feature with which a row goes to `yes`.
    pub threshold: T,
    /// Twice the index of the feature, plus 1 if a NaN goes to `yes`.
    pub feature: u32,
    /// The next node, for `no` and for `yes`.
    pub next: [u32; 2],
}

/// How the weights of a target are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// They are added.
    Add,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Joining {
    #[inline(always)]
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Joining::Add => a + b,
            Joining::Min if b < a => b,
            Joining::Max if b > a => b,
            _ => a,
        }
    }
}

/// The trees with the weights of their leaves.
pub struct Forest<T> {
    /// The nodes of all trees.
    pub nodes: Vec<TreeNode<T>>,
    /// The first node of each tree.
    pub roots: Vec<u32>,
    /// With several targets, the weights of each node: where they begin and end in `weights`. Otherwise, empty.
    pub spans: Vec<[u32; 2]>,
    /// The target and the weight of each leaf, one after another; empty with one target.
    pub weights: Vec<(u32, T)>,
    /// The number of targets.
    pub targets: usize,
    /// The number of features that the nodes read: each is smaller.
    pub features: usize,
    /// Whether a node sends a NaN to `yes`.
    pub has_missing: bool,
    /// How the weights of a target are joined.
    pub join: Joining,
}

/// The sum of a target, and whether it has any weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeafSum {
    pub value: f64,
    pub is_any: bool,
}

impl LeafSum {
    #[inline(always)]
    pub fn add(&mut self, other: f64, join: Joining) {
        self.value = if self.is_any { join.of(self.value, other) } else { other };
        self.is_any = true;
    }

    pub fn merge(&mut self, other: LeafSum, join: Joining) {
        if other.is_any {
            self.add(other.value, join);
        }
    }
}
