//! The taps of a transposed convolution that contribute to one residue along one axis. The residue of an output is its
//! position modulo the stride.

use num_integer::gcd;

use super::Shape;

/// The taps of one residue along one axis.
#[derive(Debug, Clone, Copy)]
pub struct Taps {
    residue: usize,
    /// The first tap, and the step to the next.
    first: usize,
    step: usize,
    /// The number of taps; at least one.
    pub count: usize,
    /// The distance between the input rows that they read.
    pub dilation: usize,
}

impl Taps {
    /// Returns the taps of every residue that has any. Residues with more taps come first.
    pub fn all(shape: &Shape, axis: usize) -> impl ExactSizeIterator<Item = Taps> {
        let (kernel, stride, dilation) = (shape.kernel[axis], shape.strides[axis], shape.dilations[axis]);
        let common = gcd(stride, dilation);
        let step = stride / common;
        // Taps have the same residue if their distance is a multiple of `step`.
        (0..kernel.min(step)).map(move |first| Taps {
            residue: first * dilation % stride,
            first,
            step,
            count: (kernel - first).div_ceil(step),
            dilation: dilation / common,
        })
    }

    /// The first output of this residue, and the number of outputs.
    #[inline]
    pub fn outputs(&self, shape: &Shape, axis: usize) -> (usize, usize) {
        let stride = shape.strides[axis];
        let before = shape.before[axis].rem_euclid(stride as isize) as usize;
        let first = (self.residue + stride - before) % stride;
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

impl Shape {
    /// [`Shape::fits`] for the largest plain convolution of a transposed one.
    pub fn fits_transposed(&self) -> bool {
        let [Some(y), Some(x)] = [0, 1].map(|axis| Taps::all(self, axis).next()) else { return true };
        // The residues of a merged convolution begin at most `dilation` input rows apart.
        let largest =
            |axis: usize, taps: Taps| self.output[axis].div_ceil(self.strides[axis]).checked_add(taps.dilation);
        let (Some(height), Some(width)) = (largest(0, y), largest(1, x)) else { return false };
        let largest = Shape {
            output: [height, width],
            kernel: [y.count, x.count],
            strides: [1, 1],
            dilations: [y.dilation, x.dilation],
            ..self.clone()
        };
        largest.fits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_convolution_is_no_larger_than_its_largest_part() {
        let shape = |channels, input: [usize; 2], kernel, strides: [usize; 2]| Shape {
            batch: 1,
            channels,
            outputs: 1,
            groups: 1,
            input,
            output: [0, 1].map(|axis| (input[axis] - 1) * strides[axis] + kernel),
            kernel: [kernel; 2],
            strides,
            dilations: [1, 1],
            before: [0, 0],
        };
        let fits = |channels, input, kernel, stride| shape(channels, input, kernel, [stride; 2]).fits_transposed();
        assert!(fits(21, [16, 16], 64, 32));
        assert!(fits(256, [256, 256], 4, 4));
        assert!(fits(256, [1, 140_000], 16, 8));
        assert!(fits(1, [2, 2], 1, 1 << 30));
        assert!(!fits(256, [1 << 12, 1 << 12], 4, 4));
        let dilated = Shape { dilations: [1, 1 << 40], ..shape(1, [2, 2], 2, [2, 2]) };
        assert!(!dilated.fits_transposed());
    }
}
