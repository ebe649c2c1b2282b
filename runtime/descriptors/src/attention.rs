//! The sizes of an attention.

/// The sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// The batch size.
    pub batch: usize,
    /// The number of query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// The number of heads of keys and values. `heads / kv_heads` consecutive query heads share each of them.
    pub kv_heads: usize,
    /// The number of queries.
    pub queries: usize,
    /// The number of keys and values.
    pub keys: usize,
    /// The length of a query and of a key.
    pub depth: usize,
    /// The length of a value.
    pub width: usize,
}

impl Dims {
    /// The multiplications per query; at least 1.
    pub fn query_work(&self) -> usize {
        self.keys.saturating_mul(self.depth.saturating_add(self.width)).max(1)
    }
}
