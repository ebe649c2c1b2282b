//! Convolutions of `f32` images in the form that a planner chooses when the weights are packed.

mod planner;
mod within_step;

#[cfg(test)]
mod tests;

pub use crate::conv_form::{ConvCase, ConvOperands, Epilogue, ImageLayout, Residual};
pub use planner::{image_for_blocks, reorder, times, Alternative};

use crate::blocking::Blocking;
use crate::conv_form::PackedConv;
use crate::conv_shape::Shape;
use crate::threads::Threads;
use within_step::WithinStep;

/// The weights of a convolution, packed for the fastest form.
#[derive(Debug)]
pub struct ConvWeights {
    case: ConvCase,
    form: String,
    packed: Box<dyn PackedConv>,
}

impl ConvWeights {
    /// Packs `w` `[O, C / groups, kernel…]` for a result in this layout. The image of a result in rows is also in rows;
    /// that of a result in blocks, see [`image_for_blocks`].
    ///
    /// # Panics
    /// `w` does not have this shape, or no form has its result in this layout.
    pub fn new(case: &ConvCase, result: ImageLayout, w: &[f32]) -> ConvWeights {
        let Some(fastest) = planner::fastest(case, result) else { panic!("no form for {case:?}") };
        let packed = fastest.form.pack(case, w);
        let within = |packed| WithinStep::boxed(case.blocking, fastest.form.layouts(), packed);
        let packed = if fastest.converts() { within(packed) } else { packed };
        ConvWeights { case: case.clone(), form: fastest.name(), packed }
    }

    /// The blocks of channels that the form reads and writes.
    pub fn blocking(&self) -> Blocking {
        self.case.blocking
    }

    /// The name of the chosen form.
    pub fn form(&self) -> &str {
        &self.form
    }

    /// Every form that the planner compared.
    pub fn alternatives(&self) -> Vec<Alternative> {
        planner::alternatives(&self.case)
    }

    /// Whether the form adds the residual of an epilogue.
    pub fn adds_residual(&self) -> bool {
        self.packed.adds_residual()
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// The elements of scratch memory that [`run`](ConvWeights::run) needs beyond buffers that fit a cache.
    pub fn scratch(&self, shape: &Shape) -> usize {
        self.packed.scratch(shape)
    }

    /// `out[n, o, y, x] = bias[o] + Σ w[o, c, i, j] · x[n, c, y·s + i·d − before, x·s + j·d − before]`, then the
    /// epilogue.
    ///
    /// # Panics
    /// The slices or the weights do not fit the shape, or the shape does not [fit](Shape::fits). Or the epilogue has a
    /// residual that the form does not [add](ConvWeights::adds_residual).
    pub fn run(&self, threads: &Threads, operands: ConvOperands) {
        assert!(operands.epilogue.residual.is_none() || self.adds_residual(), "{} adds no residual", self.form);
        let shape = &operands.shape.row_oriented();
        self.packed.run(threads, ConvOperands { shape, ..operands });
    }
}
