//! The sizes of tiles.

/// The rows of a tile of the left operand and of the sums, and the columns of a tile of the right operand and of the sums.
pub(in crate::rounded) const SIDE: usize = 16;
/// The pairs of a tile.
pub(in crate::rounded) const PAIRS: usize = 16;
/// The columns of a panel: two tiles.
pub(in crate::rounded) const WIDTH: usize = 2 * SIDE;

/// The tiles along a depth of `k` numbers.
pub(in crate::rounded) fn steps(k: usize) -> usize {
    k.div_ceil(2 * PAIRS)
}
