//! The kinds of reductions.

/// The kind of extremum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extremum {
    /// The largest element; the smallest value of the type (−∞) if there are no elements.
    Max,
    /// The smallest element; the largest value of the type (∞) if there are no elements.
    Min,
}
