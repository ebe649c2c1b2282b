//! Matrix products in `f32` with a constant matrix of codes of 2, 4 or 8 bits, which have a scale and a zero point for
//! each block of a row.
//!
//! The codes stay packed in memory. For a few rows, a tile converts them in registers, so that a product takes about as
//! long as reading the codes. For many rows, a block converts a part of a panel once. Both compute the same bits, as do
//! all instruction sets and all numbers of threads.

mod kernels;
mod numbers;
mod pack;
mod points;
mod product;
mod tile;
mod unpack;

#[cfg(test)]
mod tests;

pub use pack::{Codes, PackedCodes};
pub use product::product;
