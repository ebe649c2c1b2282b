//! The forms of ConvInteger. They subtract the zero points from the 8-bit codes, and convolve the differences in `float32` or
//! in `int32`.

use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::convolution::form::ConvCase;
use crate::convolution::rows::form::RowsForm;
use crate::form::Form;
use crate::gemm::UNIT;
use crate::isa::Isa;

/// The facts that decide the form of a convolution of integers.
#[derive(Debug, Clone)]
pub struct IntegerConvCase {
    conv: ConvCase,
    is_exact: bool,
}

impl IntegerConvCase {
    /// A case of these sizes. `is_exact` if `f32` represents all sums of products exactly.
    pub fn new(isa: Isa, shape: &Shape, is_exact: bool) -> IntegerConvCase {
        IntegerConvCase { conv: ConvCase::new(Blocking::largest(isa), shape, true), is_exact }
    }
}

/// A form of a convolution of integers. All forms compute the same sums. The cost is that of one image.
pub(super) trait IntegerConvForm: Form<IntegerConvCase> {
    /// Whether the form multiplies the differences as `f32`, not as `i32`.
    fn is_float(&self) -> bool;
}

/// The name of the form that convolves the differences as `f32`, over rows of pixels.
pub const AS_FLOATS: &str = "direct, in rows, as float32";

/// The form that convolves the differences as `f32`.
pub(super) struct AsFloats;

/// The form that convolves the differences as `i32`, by definition.
pub(super) struct AsIntegers;

/// The instructions that convert a vector of differences to `i32`, or of sums.
const CONVERT: f64 = 2.0;
/// The instructions for a product by definition, and those before a row of products. With these values, convolutions of usual
/// sizes whose sums are exact take less time as `f32`.
const TERM: f64 = 2.0;
const ROW: f64 = 80.0;

impl Form<IntegerConvCase> for AsFloats {
    fn name(&self, _: &IntegerConvCase) -> String {
        AS_FLOATS.to_string()
    }

    fn fits(&self, case: &IntegerConvCase) -> bool {
        case.is_exact
    }

    fn cost(&self, case: &IntegerConvCase) -> f64 {
        let shape = &case.conv.shape;
        RowsForm.cost(&case.conv) + CONVERT * (shape.outputs * shape.pixels()) as f64 / UNIT
    }
}

impl IntegerConvForm for AsFloats {
    fn is_float(&self) -> bool {
        true
    }
}

impl Form<IntegerConvCase> for AsIntegers {
    fn name(&self, _: &IntegerConvCase) -> String {
        "as int32".to_string()
    }

    fn fits(&self, _: &IntegerConvCase) -> bool {
        true
    }

    fn cost(&self, case: &IntegerConvCase) -> f64 {
        let shape = &case.conv.shape;
        let rows = shape.outputs as f64 * shape.taps() as f64 * shape.output[0] as f64;
        let converted = shape.channels as f64 * shape.input[0] as f64 * shape.input[1] as f64
            + shape.outputs as f64 * shape.taps() as f64;
        rows * (ROW + TERM * shape.output[1] as f64) + CONVERT * converted / UNIT
    }
}

impl IntegerConvForm for AsIntegers {
    fn is_float(&self) -> bool {
        false
    }
}
