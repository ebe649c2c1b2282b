//! How many queries of an attention go through together.

use super::Dims;

/// Scores in a tile.
const TILE: usize = 1 << 16;
/// The most queries of a tile: one bit each.
pub(super) const MOST: usize = u64::BITS as usize;

impl Dims {
    /// How many queries go through together; the sizes alone decide, and so the number of threads changes no bit.
    pub(super) fn tile(&self) -> usize {
        (TILE / self.keys.max(1)).clamp(1, MOST).min(self.queries)
    }

    /// The multiplications of a query.
    pub(super) fn query_work(&self) -> usize {
        self.keys.saturating_mul(self.depth + self.width).max(1)
    }
}
