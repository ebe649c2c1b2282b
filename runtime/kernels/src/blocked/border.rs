//! Pixels at the border of an image.

use crate::blocking::Blocking;
use crate::vector::Vector;

/// A pixel outside the image.
static ZEROS: [f32; Blocking::MOST] = [0.0; Blocking::MOST];

/// Loads a vector of a pixel's channels; zeros if the pixel is outside the image.
///
/// # Safety
/// A pixel inside the image can be read.
#[inline(always)]
pub(super) unsafe fn load_inside<V: Vector>(is_inside: bool, pixel: *const f32) -> V {
    // A choice of addresses takes less time than a branch or a masked load.
    let from = if is_inside { pixel } else { ZEROS.as_ptr() };
    // SAFETY: no vector is longer than the zeros, and the caller guarantees the pixel.
    unsafe { V::load(from) }
}
