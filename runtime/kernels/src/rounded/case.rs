//! The right operand of a product with a matrix of `bf16`, and the facts that decide how it is packed.

use half::bf16;

use crate::gemm::{Format, ProductSizes};
use crate::isa::Isa;

/// A `[k, n]` matrix.
#[derive(Debug, Clone, Copy)]
pub struct Halves<'a> {
    /// The rows.
    pub k: usize,
    /// The columns.
    pub n: usize,
    /// Row by row; if it is `transposed`, column by column.
    pub data: &'a [bf16],
    /// Whether the columns are contiguous, instead of the rows.
    pub transposed: bool,
}

/// The facts that decide how a matrix of `bf16` is packed.
#[derive(Debug, Clone, Copy)]
pub struct RoundedCase {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes; the number of rows is the expected one.
    pub sizes: ProductSizes,
    /// Whether numbers that are multiplied as `f32` stay in 16 bits in memory.
    pub is_narrow: bool,
}

impl RoundedCase {
    /// The type of packed weights that a product multiplies as `f32`. A single column is in `f32`, because a product may read
    /// it as a row of `f32`.
    pub(super) fn format(&self) -> Format {
        if self.is_narrow && self.sizes.n != 1 {
            Format::Bfloat16
        } else {
            Format::Float32
        }
    }
}

/// The instructions that round a vector of the left operand and store it.
pub(super) const ROUND: f64 = 3.0;
