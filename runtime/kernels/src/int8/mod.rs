//! Products and convolutions of 8-bit codes. Sums are in `i32`, exact except for wrapping, and are then converted to
//! codes, floats or integers.
//!
//! A code represents `(code − zero) · scale`. Images have their channels last, `[N, H, W, C]`: a pixel's channels are a
//! row of a matrix, and a 1×1 convolution is a matrix product.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "aarch64")]
mod bytes;
mod codes;
mod dense;
mod depthwise;
mod direct;
mod dot;
mod dynamic;
mod each_row;
mod elementwise;
mod finish;
mod form;
mod instructions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod interleaved;
#[cfg(target_arch = "aarch64")]
mod neon;
mod operands;
#[cfg(target_arch = "x86_64")]
mod paired;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod patches;
mod positions;
mod product;
mod product_form;
mod remainder;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod rows;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod strips;
mod tile;
mod tiles;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
mod weights;
mod windows;

#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
pub(crate) use amx::Configured;
pub use codes::Codes;
pub(crate) use dense::DenseForm;
pub(crate) use depthwise::QuantizedDepthwiseForm;
pub use dynamic::{multiply_rows, Scaled};
pub use elementwise::{binary, look_up, mean, Function, Quantize};
pub use finish::{Out, Requantize};
pub use form::Taps;
pub(crate) use form::{PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm};
pub(crate) use instructions::{Dots, Instructions};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use interleaved::InterleavedForm;
#[cfg(target_arch = "x86_64")]
pub(crate) use paired::PairedForm;
pub use product::product;
pub(crate) use product_form::{DotForm, IntegerForm, Multiplied};
pub use product_form::{IntegerCase, Integers};
pub use weights::{Matrix, Weights};
