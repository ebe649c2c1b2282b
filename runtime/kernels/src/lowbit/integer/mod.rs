//! Products of codes of few bits and rows that are rounded to 8 bits: sums of integers, with the dot-product instructions
//! of the processor.
//!
//! A *part* is a block of codes, or 256 codes of a longer block. Each part of a row gets a scale and integers
//! ([`left`]). The sum of the products of integers and codes in a part is exact. All forms, all instruction sets and all
//! numbers of threads therefore compute the same bits.

#[cfg(target_arch = "x86_64")]
mod amx;
mod dot;
mod forms;
mod kernels;
mod left;
#[cfg(target_arch = "aarch64")]
mod neon;
mod tile;

#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
pub(crate) use amx::DotsInTiles;
pub(crate) use forms::{DotsInAdvance, DotsInRegisters};
pub use left::rounded_bytes;
#[cfg(test)]
use left::{Left, PART};
