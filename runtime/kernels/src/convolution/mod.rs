//! Convolutions of `f32` images in the form that a planner chooses when the weights are packed.
//!
//! The forms are in [`conv`](crate::conv), for images in rows, and in [`blocked`](crate::blocked), for images in blocks of
//! channels. `planner::FORMS` lists them. Each implements `ConvForm` of `conv_form.rs`.

mod candidate;
mod planner;
mod transposed;
mod within_step;

#[cfg(test)]
mod tests;

pub use crate::conv::form::integer_alternatives;
pub use crate::conv_form::{ConvCase, ConvOperands, Epilogue, ImageLayout, Residual};
pub use planner::reorder;

use candidate::{fastest, listed, Candidate};

use crate::alternative::Alternative;
use crate::blocking::Blocking;
use crate::conv_form::PackedConv;
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
    /// result in blocks and its image in the layout [for blocks](PlannedConv::image_for_blocks).
    pub fn times(&self) -> [f64; 2] {
        let times = [self.blocks.time_in_rows(self.rows.time()), self.blocks.time()];
        times.map(|time| self.case.shape.batch as f64 * time)
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
