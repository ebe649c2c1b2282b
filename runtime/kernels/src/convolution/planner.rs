//! The planner of convolutions: lists every form with its cost, and chooses the fastest.

use super::within_step::WithinStep;
use crate::alternative::Alternative;
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
            (_, ImageLayout::Rows) => moving(form.layouts(), case),
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

    /// The time of the form and the conversions.
    pub fn time(&self) -> f64 {
        self.cost + self.moving
    }

    /// The layout of the image outside the step.
    pub fn image(&self) -> ImageLayout {
        match self.result {
            ImageLayout::Rows => ImageLayout::Rows,
            ImageLayout::Blocks => self.form.layouts()[0],
        }
    }

    /// See [`ConvForm::saving`].
    pub fn saving(&self, case: &ConvCase) -> Option<f64> {
        self.form.saving(case)
    }

    /// Packs the weights of the case of this candidate.
    pub fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        let packed = self.form.pack(case, w);
        if self.converts() {
            WithinStep::boxed(case.blocking, self.form.layouts(), packed)
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

/// See [`image_for_blocks`](super::image_for_blocks).
pub(super) fn image_for_blocks(case: &ConvCase) -> Option<ImageLayout> {
    fastest(case, ImageLayout::Blocks).map(|fastest| fastest.image())
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

/// See [`times`](super::times); for one image.
pub(super) fn times(case: &ConvCase) -> Option<[f64; 2]> {
    let blocks = fastest(case, ImageLayout::Blocks)?;
    let rows = match blocks.saving(case) {
        Some(saving) => blocks.cost + saving,
        None => fastest(case, ImageLayout::Rows)?.time(),
    };
    Some([rows, blocks.cost])
}
