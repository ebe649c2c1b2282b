//! Transposed convolutions. Each phase of the output (its position modulo the stride) is a plain convolution.
//!
//! Output `y` uses tap `i` with input row `(y + before − i·d) / s` if that is an integer. With
//! `r = (y + before) mod s`, these are the taps with `(i·d) mod s = r`: every `s / gcd(s, d)`-th tap, with input rows
//! `d / gcd(s, d)` apart. The outputs of one phase are therefore a convolution with stride 1 over the input, with the
//! taps in reverse. One convolution can compute several phases, as more outputs. Each convolution has the form that the
//! planner of plain convolutions chooses. Their results are moved to their places in the output. Outputs of phases
//! without taps equal the bias.

mod division;
mod packed;
mod part;
mod places;
mod taps;

#[cfg(test)]
mod tests;

pub(super) use division::candidates;

use taps::Taps;

use crate::conv_shape::Shape;

impl Shape {
    /// [`Shape::fits`] for the largest plain convolution of a transposed one.
    pub fn fits_transposed(&self) -> bool {
        let [Some(y), Some(x)] = [0, 1].map(|axis| Taps::all(self, axis).next()) else { return true };
        // The phases of a merged convolution begin at most `dilation` input rows apart.
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
