//! Products with the instruction `BFMMLA` of ARM's extension `bf16`. It multiplies two rows of four numbers by two columns of
//! four numbers, and adds the products to four sums.
//!
//! For each sum, the instruction adds two products to each other, then to the sum, and does the same with the other two
//! products. It rounds each result to odd, and counts numbers below `2⁻¹²⁶` in magnitude as zero. Source: Arm Architecture
//! Reference Manual for A-profile, `BFMatMulAdd`.

mod left;
mod pack;
mod product;
pub(super) mod sizes;
mod tile;

pub(crate) use pack::{PackedQuads, QuadSums};
pub(crate) use product::Product;
