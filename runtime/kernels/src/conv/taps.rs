//! The taps of a transposed convolution that one remainder of the output's position by the stride has, on one axis.

use num_integer::gcd;

use crate::conv_shape::Shape;

/// The taps of one remainder on one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps {
    remainder: usize,
    /// The first tap, the step to the next, and how many there are: at least one.
    pub first: usize,
    pub step: usize,
    pub count: usize,
    /// The step between the input rows that they read.
    pub dilation: usize,
}

impl Taps {
    /// Those of every remainder that has any, that with the most first.
    pub fn all(shape: &Shape, axis: usize) -> impl Iterator<Item = Taps> + Clone {
        let (kernel, stride, dilation) = (shape.kernel[axis], shape.strides[axis], shape.dilations[axis]);
        let common = gcd(stride, dilation);
        let step = stride / common;
        // Taps leave the same remainder where they are a multiple of `step` apart.
        (0..kernel.min(step)).map(move |first| Taps {
            remainder: first * dilation % stride,
            first,
            step,
            count: (kernel - first).div_ceil(step),
            dilation: dilation / common,
        })
    }

    /// The first output of this remainder, and how many there are.
    pub fn outputs(&self, shape: &Shape, axis: usize) -> (usize, usize) {
        let stride = shape.strides[axis];
        let before = shape.before[axis].rem_euclid(stride as isize) as usize;
        let first = (self.remainder + stride - before) % stride;
        (first, shape.output[axis].saturating_sub(first).div_ceil(stride))
    }

    /// The zeros before the input of this remainder's convolution.
    pub fn before(&self, shape: &Shape, axis: usize) -> isize {
        let stride = shape.strides[axis] as isize;
        let (first, remainder) = (self.outputs(shape, axis).0 as isize, self.remainder as isize);
        let row = (first + shape.before[axis] - remainder) / stride;
        let nearest = ((self.first * shape.dilations[axis]) as isize - remainder) / stride;
        nearest + (self.count as isize - 1) * self.dilation as isize - row
    }
}
