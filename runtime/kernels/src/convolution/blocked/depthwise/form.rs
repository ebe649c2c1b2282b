//! The form of depthwise convolutions over blocks of channels.

use super::super::axis::Axis;
use super::{depthwise, DepthwiseFilter};
use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::convolution::form::{of_threads, ConvCase, ConvForm, ConvOperands, ImageLayout, PackedConv};
use crate::form::Form;
use crate::threads::Threads;

/// The time of a tap in rows, relative to a tap in blocks of 16 channels, which need no shuffles.
const ROWS: f64 = 3.0;

/// Depthwise convolutions of several channels.
#[derive(Debug)]
pub(crate) struct DepthwiseForm;

impl DepthwiseForm {
    /// Whether the form can compute a convolution of this shape.
    pub fn fits_shape(shape: &Shape) -> bool {
        shape.groups > 1 && DepthwiseFilter::fits(shape)
    }
}

impl Form<ConvCase> for DepthwiseForm {
    fn name(&self, _: &ConvCase) -> String {
        "depthwise, in blocks".to_string()
    }

    fn fits(&self, case: &ConvCase) -> bool {
        DepthwiseForm::fits_shape(&case.shape)
    }

    fn cost(&self, case: &ConvCase) -> f64 {
        let shape = &case.shape;
        (shape.kernel[0] * shape.kernel[1] * shape.pixels()) as f64 * case.vectors(shape.channels)
    }
}

impl ConvForm for DepthwiseForm {
    fn layouts(&self) -> [ImageLayout; 2] {
        [ImageLayout::Blocks; 2]
    }

    fn saving(&self, case: &ConvCase) -> Option<f64> {
        let largest = ConvCase { blocking: Blocking::largest(case.isa()), ..case.clone() };
        Some(ROWS * self.cost(&largest) - self.cost(case))
    }

    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        Box::new(DepthwiseFilter::new(case.blocking, &case.shape, w))
    }
}

impl PackedConv for DepthwiseFilter {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        depthwise(threads, self, operands);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.data[..])
    }

    fn scratch(&self, shape: &Shape) -> Option<usize> {
        of_threads(shape, |shape| shape.output.map(Axis::length))
    }
}
