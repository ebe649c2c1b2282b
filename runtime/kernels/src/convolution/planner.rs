//! The planner of plain convolutions: lists every form with its cost.

use super::candidate::{fastest, Candidate};
use super::within_step::WithinStep;
use crate::blocked::{DepthwiseForm, DirectForm, FromRowsForm, WinogradForm};
use crate::conv::form::RowsForm;
use crate::conv::product::WindowProductForm;
use crate::conv_form::{ConvCase, ConvForm, ImageLayout, PackedConv};
use crate::isa::{Isa, Level};

/// Every form, the simplest first: of equally fast forms, the first one is chosen. [`RowsForm`] can compute every
/// convolution.
pub(super) const FORMS: &[&dyn ConvForm] = &[
    &RowsForm,
    &WindowProductForm,
    &DepthwiseForm,
    &FromRowsForm,
    &DirectForm,
    &WinogradForm::TWO,
    &WinogradForm::FOUR,
    &WinogradForm::LINE,
];

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
        if !form.fits(case) || form.transforms() && !case.may_transform {
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
        format!("{}{}", self.form.name(), if self.converts() { " within the step" } else { "" })
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

    fn time_in_rows(&self, fastest: f64) -> f64 {
        self.saving().map_or(fastest, |saving| self.time() + saving)
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
    FORMS.iter().filter_map(candidate).collect()
}

/// Returns the fastest form for a result in this layout; `None` if no form can compute it.
pub(super) fn fastest_form(case: &ConvCase, result: ImageLayout) -> Option<Box<dyn Candidate>> {
    fastest(candidates(case, result))
}
