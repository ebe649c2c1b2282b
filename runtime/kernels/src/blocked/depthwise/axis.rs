//! Which taps of a window lie inside the image, along one axis.

use std::ops::Range;

use crate::conv_shape::Shape;
use crate::scratch::Scratch;

/// One axis of a depthwise convolution.
pub(super) struct Axis {
    pub input: usize,
    pub stride: usize,
    /// From one tap to the next; 1 where there is one.
    pub dilation: usize,
    /// Places before the input's first that were added to it.
    pub added: isize,
    /// Those of each output.
    pub taps: Scratch<Taps>,
    /// The outputs whose taps all lie inside.
    pub whole: Range<usize>,
}

/// The taps of an output that lie inside the image.
#[derive(Clone, Copy)]
pub(super) struct Taps {
    pub first: usize,
    pub count: usize,
    /// The place that the first of them reads.
    pub from: usize,
}

/// From one tap to the next; 1 where there is one.
pub(super) fn dilation(shape: &Shape, a: usize) -> usize {
    if shape.kernel[a] > 1 {
        shape.dilations[a]
    } else {
        1
    }
}

impl Axis {
    pub fn new(shape: &Shape, a: usize) -> Axis {
        Axis::of(shape, a, shape.input[a], shape.before[a], 0)
    }

    /// The axis of an image that padding was added to: all taps of all outputs lie inside.
    pub fn padded(shape: &Shape, a: usize) -> Axis {
        let reach = (shape.kernel[a].max(1) - 1) * shape.dilations[a];
        Axis::of(shape, a, (shape.output[a] - 1) * shape.strides[a] + reach + 1, 0, shape.before[a])
    }

    fn of(shape: &Shape, a: usize, input: usize, before: isize, added: isize) -> Axis {
        let (kernel, stride) = (shape.kernel[a], shape.strides[a]);
        let dilation = dilation(shape, a);
        let taps = |at: usize| {
            let start = (at * stride) as isize - before;
            let until = |limit: isize| (limit - start).max(0).unsigned_abs().div_ceil(dilation).min(kernel);
            let (first, end) = (until(0), until(input as isize));
            let count = end.saturating_sub(first);
            let from = if count > 0 { start + (first * dilation) as isize } else { 0 };
            Taps { first, count, from: from.unsigned_abs() }
        };
        let taps = Scratch::of((0..shape.output[a]).map(taps));
        let first = taps.iter().position(|taps| taps.count == kernel).unwrap_or(taps.len());
        let end = taps.iter().rposition(|taps| taps.count == kernel).map_or(first, |last| last + 1);
        Axis { input, stride, dilation, added, taps, whole: first..end }
    }
}
