//! The input positions that the windows of a depthwise convolution read.

use std::ops::Range;

use super::positions::{inside, position};
use crate::conv_shape::Shape;
use crate::scratch::Scratch;

/// The address that a window reads for a tap, and the distance to that of the next column's window; 0 outside the
/// image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap<T> {
    pub at: *const T,
    step: usize,
}

/// The taps of consecutive windows along the rows of the output.
pub(super) struct Windows<'a, T> {
    shape: &'a Shape,
    x: &'a [T],
    outside: *const T,
    /// The columns of the output whose windows are inside the image's columns.
    inside: Range<usize>,
    taps: Scratch<Tap<T>>,
}

impl<'a, T> Windows<'a, T> {
    /// Creates the windows on images `x`. Rows above and below an image read `outside`. Each has `taps` taps;
    /// those beyond the kernel's read `outside`.
    ///
    /// # Panics
    /// `outside` is shorter than a row of the output, or the kernel has more taps.
    pub fn new(shape: &'a Shape, x: &'a [T], outside: &'a [T], taps: usize) -> Windows<'a, T> {
        assert!(outside.len() >= shape.channels * shape.output[1] && shape.kernel[0] * shape.kernel[1] <= taps);
        let outside = outside.as_ptr();
        let taps = Scratch::of((0..taps).map(|_| Tap { at: outside, step: 0 }));
        Windows { shape, x, outside, inside: inside(shape), taps }
    }

    /// Returns the taps of the window of column `x` in row `line`, counted over all images. Each tap has an element per
    /// channel. Columns must be requested in order.
    #[inline(always)]
    pub fn at(&mut self, line: usize, x: usize) -> &[Tap<T>] {
        if x > self.inside.start && x < self.inside.end {
            self.taps.iter_mut().for_each(|tap| tap.at = tap.at.wrapping_add(tap.step));
        } else {
            self.locate(line, x);
        }
        &self.taps
    }

    fn locate(&mut self, line: usize, x: usize) {
        let shape = self.shape;
        let (image, y) = (line / shape.output[0], line % shape.output[0]);
        for (i, taps) in self.taps.chunks_mut(shape.kernel[1]).take(shape.kernel[0]).enumerate() {
            let row = position(shape, 0, y, i).map(|row| (image * shape.input[0] + row) * shape.input[1]);
            for (j, tap) in taps.iter_mut().enumerate() {
                *tap = match (row, position(shape, 1, x, j)) {
                    (Some(row), Some(column)) => {
                        let at = self.x[(row + column) * shape.channels..][..shape.channels].as_ptr();
                        Tap { at, step: shape.strides[1] * shape.channels }
                    }
                    _ => Tap { at: self.outside, step: 0 },
                };
            }
        }
    }
}
