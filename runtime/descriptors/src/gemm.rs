//! The sizes of a matrix product.

/// The sizes `[m, n, k]` of a product of an `m × k` and a `k × n` matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductSizes {
    /// Rows of the output.
    pub m: usize,
    /// Columns of the output.
    pub n: usize,
    /// The depth: the number of terms in a sum.
    pub k: usize,
}
