//! The windows of pixels as rows of a matrix.

use std::ops::Range;

use super::codes::{Codes, SIGN};
use super::positions::{inside, position};
use crate::conv_shape::Shape;
use crate::scratch::Scratch;

/// The input of the windows of a group: for each pixel, `[kernel, C / groups]` unsigned bytes. The rows of the kernel
/// are `row` bytes apart.
pub(super) struct Patches<'a> {
    pub shape: &'a Shape,
    pub x: &'a Codes<'a>,
    pub group: usize,
    /// The channels of the group.
    pub channels: usize,
    pub row: usize,
    /// The bytes per pixel, including padding.
    pub patch: usize,
}

impl Patches<'_> {
    /// Writes the patches of some pixels. Each is padded to `patch` bytes with arbitrary values.
    pub fn write(&self, pixels: Range<usize>, to: &mut [u8]) {
        let (shape, patch) = (self.shape, self.patch);
        let together = if shape.groups == 1 && shape.dilations[1] == 1 { inside(shape) } else { 0..0 };
        let (mut pixel, mut rows) = (pixels.start, Scratch::filled(None, shape.kernel[0]));
        while pixel < pixels.end {
            let (line, first) = (pixel / shape.output[1], pixel % shape.output[1]);
            let (image, y) = (line / shape.output[0], line % shape.output[0]);
            for (i, row) in rows.iter_mut().enumerate() {
                *row = position(shape, 0, y, i).map(|y| image * shape.input[0] + y);
            }
            let end = shape.output[1].min(first + pixels.end - pixel);
            for x in first..end {
                let start = (pixel + x - first - pixels.start) * patch;
                self.write_patch(&rows, x, together.contains(&x), to, start);
            }
            pixel += end - first;
        }
        if self.x.signed {
            to.iter_mut().for_each(|to| *to ^= SIGN);
        }
    }

    /// Writes the patch of output column `x`, with these rows of the images. If `together`, each row is one contiguous
    /// piece.
    #[inline(always)]
    fn write_patch(&self, rows: &[Option<usize>], x: usize, together: bool, to: &mut [u8], start: usize) {
        let (shape, row) = (self.shape, self.shape.kernel[1] * self.channels);
        for (i, y) in rows.iter().enumerate() {
            let start = start + i * self.row;
            match y {
                Some(y) if together => {
                    let first = (x * shape.strides[1]).wrapping_add_signed(-shape.before[1]);
                    copy(&self.x.bits[(y * shape.input[1] + first) * self.channels..], to, start, row);
                }
                Some(y) => self.write_row(*y, x, &mut to[start..start + row]),
                None => to[start..start + row].fill(self.x.zero as u8),
            }
        }
    }

    /// Writes one row of a window for output column `x`, from the image's row `y`, counted over all images.
    fn write_row(&self, y: usize, x: usize, to: &mut [u8]) {
        let shape = self.shape;
        for (j, to) in to.chunks_exact_mut(self.channels.max(1)).enumerate() {
            match position(shape, 1, x, j) {
                Some(x) => {
                    let at = (y * shape.input[1] + x) * shape.channels + self.group * self.channels;
                    to.copy_from_slice(&self.x.bits[at..at + self.channels]);
                }
                None => to.fill(self.x.zero as u8),
            }
        }
    }
}

/// Copies the first `len` bytes of `from` to `to[start ..]`. If both are long enough, it copies a fixed size instead,
/// which avoids a call; the bytes overwritten beyond `len` are written later.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8], start: usize, len: usize) {
    let to = &mut to[start..];
    match len {
        0..=16 if copy_chunk::<16>(from, to) => {}
        17..=32 if copy_chunk::<32>(from, to) => {}
        _ => to[..len].copy_from_slice(&from[..len]),
    }
}

/// Copies `N` bytes if both slices are long enough.
#[inline(always)]
fn copy_chunk<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    match (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        (Some(from), Some(to)) => *to = *from,
        _ => return false,
    }
    true
}
