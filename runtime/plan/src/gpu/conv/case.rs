//! The sizes of a convolution, and what the costs of forms need to know about them.

use candle_plan_descriptors::conv::Shape;
use num_integer::gcd;

use crate::dtype::DType;

/// A convolution or transposed convolution.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub shape: &'a Shape,
    pub transposed: bool,
    pub dtype: DType,
}

impl Case<'_> {
    /// Returns the channels of a group.
    pub fn channels(&self) -> usize {
        self.shape.channels / self.shape.groups
    }

    /// Returns the outputs of a group.
    pub fn outputs(&self) -> usize {
        self.shape.outputs / self.shape.groups
    }

    /// Returns the number of terms of a sum.
    pub fn depth(&self) -> usize {
        let Shape { kernel, strides, dilations, .. } = *self.shape;
        let taps = |a: usize| {
            let apart = if self.transposed { strides[a] / gcd(strides[a], dilations[a]) } else { 1 };
            kernel[a].div_ceil(apart)
        };
        self.channels().saturating_mul(taps(0)).saturating_mul(taps(1))
    }

    /// Returns the number of sums.
    pub fn sums(&self) -> usize {
        let Shape { batch, outputs, output, .. } = *self.shape;
        [outputs, output[0], output[1]].into_iter().fold(batch, usize::saturating_mul)
    }

    /// Returns the number of multiply-adds.
    pub fn products(&self) -> f64 {
        self.sums() as f64 * self.depth() as f64
    }

    /// Returns the remainders of output positions by the strides of a transposed convolution. Each has its own windows.
    pub fn remainders(&self) -> [usize; 2] {
        [0, 1].map(|a| if self.transposed { self.shape.strides[a].min(self.shape.output[a]) } else { 1 })
    }

    /// Returns the number of windows over one image, for the remainder that has the most.
    pub fn most_windows(&self) -> usize {
        let Shape { output, strides, .. } = *self.shape;
        let windows = |a: usize| if self.transposed { output[a].div_ceil(strides[a]) } else { output[a] };
        windows(0).saturating_mul(windows(1))
    }
}
