//! The interface of the forms of a convolution of codes: the ways to compute it.

use std::fmt::Debug;

use super::codes::{is_narrow, Codes};
use super::finish::Out;
use super::instructions::Dots;
use crate::conv_shape::Shape;
use crate::form::Form;
use crate::isa::Isa;
use crate::threads::Threads;

/// The codes of a convolution's weights.
#[derive(Debug, Clone, Copy)]
pub struct Taps<'a> {
    /// The number of groups of channels and outputs.
    pub groups: usize,
    /// The outputs, over all groups.
    pub outputs: usize,
    /// The rows and columns of the window.
    pub kernel: [usize; 2],
    /// The bits of the codes, `[O, C / groups, kernel]`.
    pub bits: &'a [u8],
    /// Whether they are `i8`.
    pub signed: bool,
    /// The zero points: one for all outputs, or one per output.
    pub zeros: &'a [i32],
}

/// The lanes of a vector whose instructions cost 1.
pub(super) const UNIT: f64 = 16.0;

/// The facts about a convolution that decide its form. The sizes of the image are unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuantizedConvCase {
    pub isa: Isa,
    /// The instructions that sum products.
    pub dots: Dots,
    pub groups: usize,
    /// The outputs per group.
    pub outputs: usize,
    pub kernel: [usize; 2],
    /// The weights of an output.
    pub depth: usize,
    /// Whether the difference of every weight from its zero point fits in `i8`.
    pub is_narrow: bool,
}

/// A form of a convolution of codes. All forms compute the same sums. The cost is the time of one pixel of the output.
pub(crate) trait QuantizedConvForm: Form<QuantizedConvCase> {
    /// Packs the weights of a case that fits.
    fn pack(&self, case: &QuantizedConvCase, weights: &Taps) -> Box<dyn PackedQuantizedConv>;
}

/// Packed weights of a convolution of codes.
pub(crate) trait PackedQuantizedConv: Debug + Send + Sync {
    /// Computes a convolution as [`conv`](crate::convolution::quantized::conv) defines it. The output is not empty, and the operands fit the
    /// shape.
    ///
    /// # Panics
    /// The weights do not fit the shape.
    fn run(&self, threads: &Threads, shape: &Shape, x: Codes, bias: Option<&[i32]>, out: Out);

    /// The size of the packed weights in bytes.
    fn bytes(&self) -> usize;

    /// Whether every buffer of [`run`](PackedQuantizedConv::run) fits a cache. The shape has outputs and
    /// [short lists](crate::convolution::form::has_short_lists).
    fn is_cached(&self, shape: &Shape) -> bool;
}

impl QuantizedConvCase {
    /// The case of these weights.
    ///
    /// # Panics
    /// The sizes do not fit.
    pub fn of(isa: Isa, dots: Dots, weights: &Taps) -> QuantizedConvCase {
        let &Taps { groups, outputs, kernel, bits, zeros, .. } = weights;
        assert!(groups > 0 && outputs.is_multiple_of(groups) && (zeros.len() == 1 || zeros.len() == outputs));
        let (depth, taps) = (bits.len().checked_div(outputs).unwrap_or(0), kernel[0] * kernel[1]);
        assert!(bits.len() == outputs * depth && (taps == 0 || depth.is_multiple_of(taps)), "the weights do not fit");
        let is_narrow = weights.is_narrow(depth);
        QuantizedConvCase { isa, dots, groups, outputs: outputs / groups, kernel, depth, is_narrow }
    }

    /// The number of weights of a window, for one channel.
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Whether each group has one channel and one output, and there are several groups.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.outputs == 1 && self.depth == self.taps() && self.depth > 0
    }
}

impl Taps<'_> {
    /// The code with these bits.
    pub(super) fn code(&self, bits: u8) -> i32 {
        if self.signed {
            i32::from(bits as i8)
        } else {
            i32::from(bits)
        }
    }

    /// The zero point of an output.
    pub(super) fn zero(&self, output: usize) -> i32 {
        self.zeros[if self.zeros.len() == 1 { 0 } else { output }]
    }

    /// Whether the difference of every weight from its zero point fits in `i8`. An output has `depth` weights.
    fn is_narrow(&self, depth: usize) -> bool {
        let mut outputs = self.bits.chunks_exact(depth.max(1)).enumerate();
        outputs.all(|(output, bits)| is_narrow(bits, self.signed, self.zero(output)))
    }
}
