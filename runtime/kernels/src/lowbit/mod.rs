//! Matrix products in `f32` with a constant matrix of codes of 2, 4 or 8 bits, which have a scale and a zero point for
//! each block of a row. [`products`](crate::products) chooses among the forms of this module.
//!
//! The codes stay packed in memory. The forms of [`integer`] round the left operand to 8 bits, where the caller permits it.
//! All others compute the same bits, as do all instruction sets and all numbers of threads.

mod case;
mod form;
mod in_advance;
mod in_registers;
mod integer;
mod kernels;
mod numbers;
mod output;
mod pack;
mod points;
mod product;
mod tile;

#[cfg(test)]
mod tests;

pub use case::LowBitCase;
pub(crate) use form::LowBitForm;
pub(crate) use in_advance::InAdvance;
pub(crate) use in_registers::InRegisters;
pub use integer::rounded_bytes;
#[cfg(target_arch = "x86_64")]
pub(crate) use integer::DotsInTiles;
pub(crate) use integer::{DotsInAdvance, DotsInRegisters};
pub use pack::{LowBitCodes, PackedCodes};
pub(crate) use product::Product;
