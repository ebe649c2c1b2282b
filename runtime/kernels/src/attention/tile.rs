//! The number of queries of an attention that are processed together.

use super::problem::Dims;

/// Scores per tile.
const TILE: usize = 1 << 16;
/// The maximum queries per tile: one bit each.
pub(super) const MOST: usize = u64::BITS as usize;

impl Dims {
    /// The number of queries per tile. It depends on the sizes alone, so the number of threads changes no bit.
    pub(super) fn tile(&self) -> usize {
        (TILE / self.keys.max(1)).clamp(1, MOST).min(self.queries)
    }

    /// The multiplications per query.
    pub(super) fn query_work(&self) -> usize {
        self.keys.saturating_mul(self.depth + self.width).max(1)
    }
}
