//! The 8-bit codes of quantized tensors.

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
pub(super) const SIGN: u8 = 0x80;

/// Multiplications that are worth several threads.
pub(super) const SPLIT: usize = 1 << 20;
