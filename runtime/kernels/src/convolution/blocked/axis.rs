//! The taps of a window that are inside the image, along one axis.

use std::ops::Range;

use crate::buffer::push;
use crate::conv_shape::Shape;
use crate::scratch::Scratch;

/// One axis of a convolution.
pub(super) struct Axis {
    pub input: usize,
    pub stride: usize,
    /// The dilation; 1 if there is only one tap.
    pub dilation: usize,
    /// The padding added before the input.
    pub added: isize,
    /// The taps of each output that are inside the image.
    pub taps: Scratch<Taps>,
    /// The outputs whose taps are all inside the image.
    pub whole: Range<usize>,
}

/// The taps of an output that are inside the image.
#[derive(Clone, Copy)]
pub(super) struct Taps {
    pub first: usize,
    pub count: usize,
    /// The index that the first of these taps reads.
    pub from: usize,
}

/// Adjacent outputs whose windows have the same taps inside the image.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub outputs: Range<usize>,
    pub taps: Range<usize>,
    /// The index that the first of these taps reads for the first output.
    pub from: usize,
}

/// The dilation; 1 if there is only one tap.
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

    /// The length of the list of taps for so many outputs, in elements of an image.
    pub fn length(outputs: usize) -> usize {
        outputs * size_of::<Taps>() / size_of::<f32>()
    }

    /// Divides the outputs into runs.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (i, taps) in self.taps.iter().enumerate() {
            let inside = taps.first..taps.first + taps.count;
            match runs.last_mut() {
                Some(run) if run.taps == inside || (run.taps.is_empty() && inside.is_empty()) => {
                    run.outputs.end = i + 1
                }
                _ => push(&mut runs, Run { outputs: i..i + 1, taps: inside, from: taps.from }),
            }
        }
        runs
    }

    /// The axis of a padded image: all taps of all outputs are inside.
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
