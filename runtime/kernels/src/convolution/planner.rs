//! The planner of convolutions. Its tables list the forms, and each form states its cost.

use super::candidate::{fastest, Candidate};
use super::integers::{AsFloats, AsIntegers, IntegerConvCase, IntegerConvForm};
use super::within_step::WithinStep;
use crate::convolution::blocked::{DepthwiseForm, DirectForm, FromRowsForm, WinogradForm};
use crate::convolution::form::{ConvCase, ConvForm, ImageLayout, PackedConv};
use crate::convolution::rows::form::RowsForm;
use crate::convolution::rows::product::WindowProductForm;
use crate::form::{cheapest, listed};
use crate::int8::{self, QuantizedConvForm};
use crate::isa::{Isa, Level};

// The tables of forms. Of two forms with equal costs, the planner chooses the first.

/// The forms of convolutions in `f32`, the simplest first. [`RowsForm`] can compute every convolution.
pub(super) const FLOAT: &[&dyn ConvForm] = &[
    &RowsForm,
    &WindowProductForm,
    &DepthwiseForm,
    &FromRowsForm,
    &DirectForm,
    &WinogradForm::TWO,
    &WinogradForm::FOUR,
    &WinogradForm::LINE,
];
/// The forms of convolutions of 8-bit codes. [`DenseForm`](int8::DenseForm) can compute every convolution.
pub(crate) const QUANTIZED: &[&dyn QuantizedConvForm] = &[
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    &int8::InterleavedForm,
    #[cfg(target_arch = "x86_64")]
    &int8::PairedForm,
    &int8::QuantizedDepthwiseForm,
    &int8::DenseForm,
];
/// The forms of ConvInteger.
pub(super) const INTEGER: &[&dyn IntegerConvForm] = &[&AsFloats, &AsIntegers];

/// The cost of moving some vectors between `[N, C, H, W]` and blocks, in multiply-adds of a vector.
pub fn reorder(isa: Isa, vectors: f64) -> f64 {
    match isa.level() {
        Level::Avx512 => 15.0 * vectors,
        // A multiply-add takes two instructions, and a reorder waits for memory.
        Level::Avx2 | Level::Neon | Level::Scalar => 200.0 + 8.0 * vectors,
    }
}

/// A form that can compute a convolution with its result in a layout.
#[derive(Debug)]
struct FormCandidate {
    form: &'static dyn ConvForm,
    case: ConvCase,
    /// The layout of the result outside the step.
    result: ImageLayout,
    /// The time of the form for one image, in multiply-adds of a vector.
    cost: f64,
    /// The time of the conversions to the form's layouts and back.
    moving: f64,
}

impl FormCandidate {
    /// Returns the form as a candidate, unless it does not fit, its result is in rows and the wanted one in blocks, or
    /// there are too few outputs to convert a result.
    fn new(form: &'static dyn ConvForm, case: &ConvCase, result: ImageLayout) -> Option<FormCandidate> {
        if !form.fits(case) {
            return None;
        }
        let moving = match (form.layouts()[1], result) {
            (ImageLayout::Rows, ImageLayout::Blocks) => return None,
            (ImageLayout::Blocks, ImageLayout::Rows) if case.shape.outputs < case.blocking.block() => return None,
            (_, ImageLayout::Rows) => moving(form.layouts(), case),
            (ImageLayout::Blocks, ImageLayout::Blocks) => 0.0,
        };
        Some(FormCandidate { form, case: case.clone(), result, cost: form.cost(case), moving })
    }

    /// Whether the step has to convert the image or the result.
    fn converts(&self) -> bool {
        self.result == ImageLayout::Rows && self.form.layouts().contains(&ImageLayout::Blocks)
    }
}

impl Candidate for FormCandidate {
    fn name(&self) -> String {
        format!("{}{}", self.form.name(&self.case), if self.converts() { " within the step" } else { "" })
    }

    fn layouts(&self) -> [ImageLayout; 2] {
        match self.result {
            ImageLayout::Rows => [ImageLayout::Rows; 2],
            ImageLayout::Blocks => self.form.layouts(),
        }
    }

    fn time(&self) -> f64 {
        self.cost + self.moving
    }

    fn saving(&self) -> Option<f64> {
        self.form.saving(&self.case).filter(|_| self.result == ImageLayout::Blocks)
    }

    fn pack(&self, w: &[f32]) -> Box<dyn PackedConv> {
        let packed = self.form.pack(&self.case, w);
        if self.converts() {
            WithinStep::boxed(self.case.blocking, self.form.layouts(), packed)
        } else {
            packed
        }
    }
}

/// The time to convert one image in rows to the first layout, and a result in the second layout to rows.
pub(super) fn moving(layouts: [ImageLayout; 2], case: &ConvCase) -> f64 {
    let shape = &case.shape;
    let images = [(shape.channels, shape.input), (shape.outputs, shape.output)];
    let moved = images.into_iter().zip(layouts).filter(|(_, layout)| *layout == ImageLayout::Blocks);
    let vectors = moved.map(|((channels, [h, w]), _)| case.vectors(channels) * (h * w) as f64);
    vectors.map(|vectors| reorder(case.isa(), vectors)).sum()
}

/// Returns every form that can compute a plain convolution with its result in this layout.
pub(super) fn candidates(case: &ConvCase, result: ImageLayout) -> Vec<Box<dyn Candidate>> {
    let candidate = |form: &&'static dyn ConvForm| -> Option<Box<dyn Candidate>> {
        Some(Box::new(FormCandidate::new(*form, case, result)?))
    };
    FLOAT.iter().filter_map(candidate).collect()
}

/// Returns the fastest form for a result in this layout; `None` if no form can compute it.
pub(super) fn fastest_form(case: &ConvCase, result: ImageLayout) -> Option<Box<dyn Candidate>> {
    fastest(candidates(case, result))
}

/// Whether the cheapest form of a convolution of integers multiplies differences as `f32`, not as `i32`.
pub fn sums_in_float(case: &IntegerConvCase) -> bool {
    cheapest(INTEGER, case).is_some_and(|form| form.is_float())
}

/// Returns every form that can compute a convolution of integers, by name, with its cost for one image, as
/// [`products::alternatives`](crate::products::alternatives).
pub fn integer_alternatives(case: &IntegerConvCase) -> Vec<(String, f64)> {
    listed(INTEGER, case)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv_shape::Shape;
    use crate::convolution::rows::tests::same;

    /// Usual convolutions: with few and many channels, groups, windows and sizes.
    fn shapes() -> impl Iterator<Item = Shape> {
        let channels = [[1, 1, 1], [3, 16, 1], [16, 1, 1], [16, 16, 16], [64, 64, 1], [64, 32, 4]];
        let windows = [1, 2, 5, 16, 28, 100].into_iter().flat_map(|size| [1, 2, 3, 5].map(|kernel| (size, kernel)));
        windows.flat_map(move |(size, kernel)| {
            channels.map(|[channels, outputs, groups]| same(1, channels, outputs, groups, size, kernel))
        })
    }

    #[test]
    fn exact_sums_are_in_float() {
        for (isa, shape) in Isa::available().flat_map(|isa| shapes().map(move |shape| (isa, shape))) {
            for stride in [1, 2].into_iter().filter(|&stride| stride <= shape.kernel[0].max(1)) {
                let output = shape.output.map(|size| size.div_ceil(stride));
                let shape = Shape { strides: [stride; 2], output, ..shape.clone() };
                for is_exact in [false, true] {
                    let case = IntegerConvCase::new(isa, &shape, is_exact);
                    assert_eq!(sums_in_float(&case), is_exact, "{case:?} {:?}", integer_alternatives(&case));
                }
            }
        }
    }
}
