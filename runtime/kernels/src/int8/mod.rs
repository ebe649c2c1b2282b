//! Products and convolutions of 8-bit codes. Sums are in `i32`, exact except for wrapping, and are then converted to
//! codes, floats or integers.
//!
//! A code represents `(code − zero) · scale`. Images have their channels last, `[N, H, W, C]`: a pixel's channels are a
//! row of a matrix, and a 1×1 convolution is a matrix product.

#[cfg(target_arch = "x86_64")]
mod amx;
mod conv;
mod dense;
mod depthwise;
mod direct;
mod dot;
mod elementwise;
mod finish;
mod form;
mod instructions;
#[cfg(target_arch = "x86_64")]
mod interleaved;
mod operands;
#[cfg(target_arch = "x86_64")]
mod paired;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod patches;
mod planner;
mod positions;
mod product;
mod remainder;
#[cfg(target_arch = "x86_64")]
mod rows;
#[cfg(target_arch = "x86_64")]
mod strips;
mod tile;
mod tiles;
#[cfg(target_arch = "x86_64")]
mod vector;
mod weights;
mod windows;

#[cfg(test)]
mod tests;

pub use conv::{conv, Filter};
pub use elementwise::{binary, look_up, mean, Function, Quantize};
pub use finish::{Out, Requantize};
pub use form::Taps;
pub use product::product;
pub use weights::{Matrix, Weights};

/// Codes of type `i8` or `u8`.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    /// The bits of the codes.
    pub bits: &'a [u8],
    /// Whether they are `i8`.
    pub signed: bool,
    /// The code that represents 0.
    pub zero: i32,
}

/// Converts the bits of an `i8` to those of a `u8` that is larger by 128, and back.
const SIGN: u8 = 0x80;

/// Multiplications that are worth several threads.
const SPLIT: usize = 1 << 20;
