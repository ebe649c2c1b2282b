//! The planner of convolutions: lists every form with its cost, and chooses the fastest.

use crate::blocked::{DepthwiseForm, DirectForm, FromRowsForm, WinogradForm};
use crate::conv::{ProductForm, RowsForm};
use crate::conv_form::{ConvCase, ConvForm, ImageLayout};
use crate::isa::{Isa, Level};

/// Every form, the simplest first: of equally fast forms, the first one is chosen. [`RowsForm`] can compute every
/// convolution.
pub(super) const FORMS: &[&dyn ConvForm] = &[
    &RowsForm,
    &ProductForm,
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
        Level::Avx2 | Level::Scalar => 200.0 + 8.0 * vectors,
    }
}

/// A form that can compute a convolution with its result in a layout.
pub(super) struct Candidate {
    pub form: &'static dyn ConvForm,
    /// The layout of the result outside the step.
    result: ImageLayout,
    /// The time of the form for one image, in multiply-adds of a vector.
    cost: f64,
    /// The time of the conversions to the form's layouts and back.
    moving: f64,
}

impl Candidate {
    /// Returns the form as a candidate, unless its result is in rows and the wanted one in blocks, or there are too few
    /// outputs to convert a result.
    fn new(form: &'static dyn ConvForm, case: &ConvCase, result: ImageLayout) -> Option<Candidate> {
        let moving = match (form.layouts()[1], result) {
            (ImageLayout::Rows, ImageLayout::Blocks) => return None,
            (ImageLayout::Blocks, ImageLayout::Rows) if case.shape.outputs < case.blocking.block() => return None,
            (_, ImageLayout::Rows) => moving(form, case),
            (ImageLayout::Blocks, ImageLayout::Blocks) => 0.0,
        };
        Some(Candidate { form, result, cost: form.cost(case), moving })
    }

    /// Whether the step has to convert the image or the result.
    pub fn converts(&self) -> bool {
        self.result == ImageLayout::Rows && self.form.layouts().contains(&ImageLayout::Blocks)
    }

    pub fn name(&self) -> String {
        format!("{}{}", self.form.name(), if self.converts() { " within the step" } else { "" })
    }

    fn time(&self) -> f64 {
        self.cost + self.moving
    }
}

/// The time to convert one image in rows to the layout of a form, and its result to rows.
fn moving(form: &dyn ConvForm, case: &ConvCase) -> f64 {
    let shape = &case.shape;
    let images = [(shape.channels, shape.input), (shape.outputs, shape.output)];
    let moved = images.into_iter().zip(form.layouts()).filter(|(_, layout)| *layout == ImageLayout::Blocks);
    let vectors = moved.map(|((channels, [h, w]), _)| case.vectors(channels) * (h * w) as f64);
    vectors.map(|vectors| reorder(case.isa(), vectors)).sum()
}

/// Returns every form that can compute a convolution, for images in rows and for a result in blocks.
fn candidates(case: &ConvCase) -> impl Iterator<Item = Candidate> + '_ {
    let forms = FORMS.iter().filter(|form| form.fits(case) && (case.may_transform || !form.transforms()));
    forms.flat_map(|&form| {
        [ImageLayout::Rows, ImageLayout::Blocks].into_iter().filter_map(|result| Candidate::new(form, case, result))
    })
}

/// Returns the fastest form for a result in this layout; `None` if no form can compute it.
pub(super) fn fastest(case: &ConvCase, result: ImageLayout) -> Option<Candidate> {
    candidates(case).filter(|form| form.result == result).min_by(|a, b| a.time().total_cmp(&b.time()))
}

/// Returns the layout of the image for the fastest form with a result in blocks; `None` if no form has such a result.
pub fn image_for_blocks(case: &ConvCase) -> Option<ImageLayout> {
    fastest(case, ImageLayout::Blocks).map(|fastest| fastest.form.layouts()[0])
}

/// A form of a convolution and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The form's name.
    pub form: String,
    /// Whether the result is in blocks of channels.
    pub in_blocks: bool,
    /// The time of one image, in multiply-adds of a vector.
    pub time: f64,
    /// The time that blocks save, if the form states it ([`ConvForm::saving`]). Otherwise, it is the difference of the
    /// times.
    pub saving: Option<f64>,
}

/// Returns every form of a convolution, for images in rows and for results in blocks.
pub(super) fn alternatives(case: &ConvCase) -> Vec<Alternative> {
    let listed = candidates(case).map(|each| Alternative {
        form: each.name(),
        in_blocks: each.result == ImageLayout::Blocks,
        time: each.time(),
        saving: each.form.saving(case).filter(|_| each.result == ImageLayout::Blocks),
    });
    listed.collect()
}

/// The times of a convolution with its image and its result in rows, and with both in blocks of channels as far as the
/// fastest form has them there, in multiply-adds of a vector. `None` if no form has its result in blocks.
pub fn times(case: &ConvCase) -> Option<[f64; 2]> {
    let blocks = fastest(case, ImageLayout::Blocks)?;
    let rows = match blocks.form.saving(case) {
        Some(saving) => blocks.cost + saving,
        None => fastest(case, ImageLayout::Rows)?.time(),
    };
    Some([rows, blocks.cost].map(|time| case.shape.batch as f64 * time))
}
