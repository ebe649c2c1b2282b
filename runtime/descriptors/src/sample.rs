//! The indices of an image's pixels.

/// The index of a pixel that counts as zero.
pub const NOWHERE: u32 = u32::MAX;
