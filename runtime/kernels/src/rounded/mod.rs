//! Matrix products with a matrix of `bf16`. The left operand is in `f32`, and the product rounds it to `bf16`. The sums are in
//! `f32`. [`products`](crate::products) chooses among the forms of this module.
//!
//! The result has the same bits for every number of rows and threads. The forms differ from each other in the rounding of
//! the sums.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod case;
mod form;
#[cfg(target_arch = "aarch64")]
mod in_quads;
#[cfg(target_arch = "x86_64")]
mod in_tiles;
mod pack;
mod pairs;
mod panels;
mod product;
#[cfg(target_arch = "aarch64")]
pub(crate) mod quads;
mod round;
mod sums;
#[cfg(target_arch = "x86_64")]
mod tile;
mod widened;

#[cfg(test)]
mod tests;

pub use case::{Halves, RoundedCase};
pub(crate) use form::RoundedForm;
#[cfg(target_arch = "aarch64")]
pub(crate) use in_quads::InQuads;
#[cfg(target_arch = "x86_64")]
pub(crate) use in_tiles::InTiles;
pub use pack::PackedRounded;
pub(crate) use pack::Stored;
pub(crate) use pairs::Pairs;
pub(crate) use product::Product;
pub(crate) use round::round;
#[cfg(all(test, not(target_arch = "aarch64")))]
pub(crate) use sums::PairSums;
pub(crate) use widened::Widened;
