//! The taps of a transposed convolution that contribute to one phase along one axis. The phase of an output is its
//! position modulo the stride.

use num_integer::gcd;

use crate::conv_shape::Shape;

/// The taps of one phase along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps {
    phase: usize,
    /// The first tap, the step to the next, and the number of taps (at least one).
    first: usize,
    step: usize,
    pub count: usize,
    /// The distance between the input rows that they read.
    pub dilation: usize,
}

impl Taps {
    /// Returns the taps of every phase that has any. Phases with more taps come first.
    pub fn all(shape: &Shape, axis: usize) -> impl ExactSizeIterator<Item = Taps> {
        let (kernel, stride, dilation) = (shape.kernel[axis], shape.strides[axis], shape.dilations[axis]);
        let common = gcd(stride, dilation);
        let step = stride / common;
        // Taps have the same phase if their distance is a multiple of `step`.
        (0..kernel.min(step)).map(move |first| Taps {
            phase: first * dilation % stride,
            first,
            step,
            count: (kernel - first).div_ceil(step),
            dilation: dilation / common,
        })
    }

    /// The first output of this phase, and the number of outputs.
    pub fn outputs(&self, shape: &Shape, axis: usize) -> (usize, usize) {
        let stride = shape.strides[axis];
        let before = shape.before[axis].rem_euclid(stride as isize) as usize;
        let first = (self.phase + stride - before) % stride;
        (first, shape.output[axis].saturating_sub(first).div_ceil(stride))
    }

    /// The input row that the first tap of the first output reads. The next output reads the next row. The other taps
    /// read earlier rows.
    pub fn start(&self, shape: &Shape, axis: usize) -> isize {
        let place = self.outputs(shape, axis).0 as isize + shape.before[axis];
        (place - (self.first * shape.dilations[axis]) as isize) / shape.strides[axis] as isize
    }

    /// The taps in the order of the rows that they read.
    pub fn in_order(&self) -> impl Iterator<Item = usize> {
        let Taps { first, step, .. } = *self;
        (0..self.count).rev().map(move |i| first + i * step)
    }
}
