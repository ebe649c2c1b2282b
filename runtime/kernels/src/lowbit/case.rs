//! The facts that decide the form of a product with codes of few bits.

use super::kernels::Kernels;
use crate::gemm::tiles::Tiles;
use crate::gemm::{ProductSizes, UNIT};
use crate::isa::Isa;

/// The facts that decide the form of a product with codes of few bits.
#[derive(Debug, Clone, Copy)]
pub struct LowBitCase {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub sizes: ProductSizes,
    /// The bits of a code.
    pub bits: usize,
    /// The codes of a block.
    pub block: usize,
    /// Whether the left operand may be rounded to 8 bits.
    pub rounds: bool,
}

/// The part of the conversion of a vector of codes that takes time of its own. The processor executes the rest beside the
/// multiply-adds.
pub(super) const CONVERT: f64 = 1.0;

impl LowBitCase {
    /// The cost of the product if each vector of codes, with all rows, costs `each` instructions.
    pub(super) fn cost_of(&self, each: f64) -> f64 {
        let lanes = Tiles::of(self.isa).lanes;
        self.sizes.k as f64 * self.sizes.n.next_multiple_of(lanes) as f64 / UNIT * each
    }

    /// The number of tiles that cover all rows.
    pub(super) fn tiles(&self) -> usize {
        self.sizes.m.div_ceil(Kernels::of(self.isa).unpacked.len())
    }
}
