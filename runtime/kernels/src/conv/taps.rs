//! The taps of a transposed convolution that contribute to one phase along one axis. The phase of an output is its
//! position modulo the stride.

use num_integer::gcd;

use crate::conv_shape::Shape;

/// The taps of one phase along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps {
    phase: usize,
    /// The first tap, the step to the next, and the number of taps (at least one).
    pub first: usize,
    pub step: usize,
    pub count: usize,
    /// The distance between the input rows that they read.
    pub dilation: usize,
}

impl Taps {
    /// Returns the taps of every phase that has any. The phase with the most taps comes first.
    pub fn all(shape: &Shape, axis: usize) -> impl Iterator<Item = Taps> + Clone {
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

    /// The padding before the input of this phase's convolution.
    pub fn before(&self, shape: &Shape, axis: usize) -> isize {
        let stride = shape.strides[axis] as isize;
        let (first, phase) = (self.outputs(shape, axis).0 as isize, self.phase as isize);
        let row = (first + shape.before[axis] - phase) / stride;
        let nearest = ((self.first * shape.dilations[axis]) as isize - phase) / stride;
        nearest + (self.count as isize - 1) * self.dilation as isize - row
    }
}
