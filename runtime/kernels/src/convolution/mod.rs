//! Convolutions of `f32` images in the form that a planner chooses when the weights are packed.
//!
//! The forms are in [`rows`], for images in rows, and in [`blocked`], for images in blocks of channels. Each implements
//! `ConvForm` of `form.rs`. `planner.rs` lists them in a table, beside the tables of convolutions of codes ([`quantized`])
//! and of integers.

pub mod blocked;
mod candidate;
pub(crate) mod form;
mod integers;
mod planner;
pub mod quantized;
pub mod rows;
mod transposed;
mod within_step;

#[cfg(test)]
mod tests;

pub use form::{ConvCase, ConvOperands, Epilogue, ImageLayout, Residual};
pub use integers::{IntegerConvCase, AS_FLOATS};
pub use planner::{integer_alternatives, reorder, sums_in_float};

use blocked::{separable_costs, SeparableWeights};
use candidate::{fastest, listed, Candidate};
use form::PackedConv;

use crate::alternative::Alternative;
use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::threads::Threads;

/// Returns every way to compute a convolution with its result in this layout.
fn candidates(case: &ConvCase, result: ImageLayout) -> Vec<Box<dyn Candidate>> {
    if case.is_transposed {
        transposed::candidates(case, result)
    } else {
        planner::candidates(case, result)
    }
}

/// A convolution with its fastest form for each layout of the result.
#[derive(Debug)]
pub struct PlannedConv {
    case: ConvCase,
    rows: Box<dyn Candidate>,
    blocks: Box<dyn Candidate>,
}

impl PlannedConv {
    /// Chooses the forms; `None` if no form has its result in blocks of channels.
    pub fn new(case: &ConvCase) -> Option<PlannedConv> {
        let blocks = fastest(candidates(case, ImageLayout::Blocks))?;
        let rows = fastest(candidates(case, ImageLayout::Rows))?;
        Some(PlannedConv { case: case.clone(), rows, blocks })
    }

    /// The layout of the image for a result in blocks.
    pub fn image_for_blocks(&self) -> ImageLayout {
        self.blocks.layouts()[0]
    }

    /// Returns two times of the convolution, in multiply-adds of a vector: with its image and result in rows, and with its
    /// result in blocks and its image in the layout [for blocks](PlannedConv::image_for_blocks). The saving that a form in
    /// blocks states may lower the time in rows. It may not raise it above the time of the fastest form in rows, which is the
    /// one that runs.
    pub fn times(&self) -> [f64; 2] {
        let (rows, blocks) = (self.rows.time(), self.blocks.time());
        let rows = self.blocks.saving().map_or(rows, |saving| rows.min(blocks + saving));
        [rows, blocks].map(|time| self.case.shape.batch as f64 * time)
    }

    /// Packs weights; see [`ConvWeights::new`].
    ///
    /// # Panics
    /// `w` does not have the shape of the weights.
    pub fn pack(&self, result: ImageLayout, w: &[f32]) -> ConvWeights {
        let chosen = match result {
            ImageLayout::Rows => &self.rows,
            ImageLayout::Blocks => &self.blocks,
        };
        ConvWeights::packed(&self.case, chosen.as_ref(), w)
    }
}

/// A depthwise convolution and the following 1 × 1 convolution, on images in blocks of channels.
#[derive(Debug, Clone)]
pub struct PlannedPair {
    cases: [ConvCase; 2],
    times: [f64; 2],
    overhead: f64,
    forms: [String; 2],
}

impl PlannedPair {
    /// Compares one step with two. `None` if one step cannot compute both convolutions, or is not faster.
    pub fn new(first: &PlannedConv, next: &PlannedConv) -> Option<PlannedPair> {
        let are_in_blocks = [first, next].iter().all(|conv| conv.image_for_blocks() == ImageLayout::Blocks);
        let is_plain = !first.case.is_transposed && !next.case.is_transposed;
        let [together, overhead] = separable_costs(&first.case, &next.case).filter(|_| are_in_blocks && is_plain)?;
        let alone = first.blocks.time() + next.blocks.time();
        let times = [together, alone + overhead];
        let cases = [first.case.clone(), next.case.clone()];
        let forms = [first.blocks.name(), next.blocks.name()];
        (times[0] < times[1]).then_some(PlannedPair { cases, times, overhead, forms })
    }

    /// The names of the forms of both convolutions.
    pub fn forms(&self) -> &[String; 2] {
        &self.forms
    }

    /// The times for one image, in multiply-adds of a vector: of one step, and of two steps in blocks of channels. The latter
    /// is the sum of the times of both convolutions, and the time to write and read the intermediate result.
    pub fn times(&self) -> [f64; 2] {
        self.times
    }

    /// What one step saves compared with two.
    pub fn saving(&self) -> f64 {
        self.images() * (self.times[1] - self.times[0])
    }

    /// What two steps take in addition to the [times](PlannedConv::times) of both convolutions.
    pub fn overhead(&self) -> f64 {
        self.images() * self.overhead
    }

    fn images(&self) -> f64 {
        self.cases[0].shape.batch as f64
    }

    /// The blocks of channels.
    pub fn blocking(&self) -> Blocking {
        self.cases[0].blocking
    }

    /// Every form that the planner compared for each of both convolutions.
    pub fn parts(&self) -> [Vec<Alternative>; 2] {
        self.cases.each_ref().map(alternatives)
    }

    /// Packs the weights of both convolutions.
    ///
    /// # Panics
    /// They do not have the shapes of the weights.
    pub fn pack(&self, w: [&[f32]; 2]) -> SeparableWeights {
        SeparableWeights::new(self.cases.each_ref(), w)
    }
}

/// Returns every form that the planner compares for an image and a result in rows.
pub fn alternatives_in_rows(case: &ConvCase) -> Vec<Alternative> {
    listed(candidates(case, ImageLayout::Rows))
}

fn alternatives(case: &ConvCase) -> Vec<Alternative> {
    listed([ImageLayout::Rows, ImageLayout::Blocks].into_iter().flat_map(|result| candidates(case, result)))
}

/// The weights of a convolution, packed for the fastest form.
#[derive(Debug)]
pub struct ConvWeights {
    case: ConvCase,
    form: String,
    packed: Box<dyn PackedConv>,
}

impl ConvWeights {
    /// Packs `w` for a result in this layout: `[O, C / groups, kernel…]`, for a transposed convolution
    /// `[C, O / groups, kernel…]`. For a result in rows, the image is in rows too. For a result in blocks,
    /// [`PlannedConv::image_for_blocks`] returns its layout.
    ///
    /// # Panics
    /// `w` does not have this shape, or no form has its result in this layout.
    pub fn new(case: &ConvCase, result: ImageLayout, w: &[f32]) -> ConvWeights {
        let Some(chosen) = fastest(candidates(case, result)) else { panic!("no form for {case:?}") };
        ConvWeights::packed(case, chosen.as_ref(), w)
    }

    fn packed(case: &ConvCase, chosen: &dyn Candidate, w: &[f32]) -> ConvWeights {
        ConvWeights { case: case.clone(), form: chosen.name(), packed: chosen.pack(w) }
    }

    /// The blocks of channels that the form reads and writes.
    pub fn blocking(&self) -> Blocking {
        self.case.blocking
    }

    /// The name of the chosen form.
    pub fn form(&self) -> &str {
        &self.form
    }

    /// Every form that the planner compared, for results in rows and in blocks.
    pub fn alternatives(&self) -> Vec<Alternative> {
        alternatives(&self.case)
    }

    /// Whether the form adds the residual of an epilogue.
    pub fn adds_residual(&self) -> bool {
        self.packed.adds_residual()
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// The elements of scratch memory that [`run`](ConvWeights::run) needs beyond buffers that fit a cache. `None` if
    /// they depend on the number of threads.
    pub fn scratch(&self, shape: &Shape) -> Option<usize> {
        self.packed.scratch(&shape.row_oriented())
    }

    /// `out[n, o, y, x] = bias[o] + Σ w[o, c, i, j] · x[n, c, y·s + i·d − before, x·s + j·d − before]`, or transposed
    /// `out[n, o, y·s + i·d − before, x·s + j·d − before] += w[c, o, i, j] · x[n, c, y, x]` over the bias. Then the
    /// epilogue.
    ///
    /// # Panics
    /// The slices or the weights do not fit the shape, or the shape does not [fit](Shape::fits), as a
    /// [transposed](Shape::fits_transposed) convolution if it is one. Or the epilogue has a residual that the form does
    /// not [add](ConvWeights::adds_residual).
    pub fn run(&self, threads: &Threads, operands: ConvOperands) {
        assert!(operands.epilogue.residual.is_none() || self.adds_residual(), "{} adds no residual", self.form);
        let shape = &operands.shape.row_oriented();
        self.packed.run(threads, ConvOperands { shape, ..operands });
    }
}
