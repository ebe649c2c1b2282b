//! The weights of a convolution over blocks of channels, packed for its form.

use super::depthwise::{depthwise, DepthwiseFilter};
use super::dispatch::conv;
use super::filter::Filter;
use super::planner::{self, BlockForm};
use super::Epilogue;
use crate::conv_shape::Shape;
use crate::isa::Isa;
use crate::threads::Threads;

/// The weights of a convolution.
#[derive(Debug, Clone)]
pub enum Weights {
    /// The weights of groups with several channels.
    Groups(Filter),
    /// Weights for an image `[N, C, H, W]` with too few channels to fill a block.
    Rows(Filter),
    /// The weights of a depthwise convolution.
    Depthwise(DepthwiseFilter),
}

impl Weights {
    /// Whether a convolution can run in blocks.
    pub fn fits(shape: &Shape) -> bool {
        planner::fits(shape)
    }

    /// Whether the input is `[N, C, H, W]`.
    pub fn take_rows(shape: &Shape) -> bool {
        planner::takes_rows(shape)
    }

    /// Packs the weights `w` `[O, C / groups, kernel…]` for inputs of about the size in `shape`.
    ///
    /// # Panics
    /// `w` does not have this shape, or the convolution does not [fit](Weights::fits).
    pub fn new(isa: Isa, shape: &Shape, w: &[f32]) -> Weights {
        Weights::packed(isa, shape, w, true)
    }

    /// Like [`Weights::new`], but never transforms the weights for Winograd's algorithm: apart from padding to blocks,
    /// the packed weights are as many as `w` has.
    ///
    /// # Panics
    /// As for [`Weights::new`].
    pub fn direct(isa: Isa, shape: &Shape, w: &[f32]) -> Weights {
        Weights::packed(isa, shape, w, false)
    }

    fn packed(isa: Isa, shape: &Shape, w: &[f32], may_transform: bool) -> Weights {
        let shape = &shape.row_oriented();
        match planner::fastest(shape) {
            Some((BlockForm::Depthwise, _)) => Weights::Depthwise(DepthwiseFilter::new(isa, shape, w)),
            Some((BlockForm::FromRows, _)) => Weights::Rows(Filter::for_rows(isa, shape, w)),
            Some((BlockForm::Winograd(form), _)) if may_transform => {
                Weights::Groups(Filter::new(isa, shape, w, Some(form)))
            }
            _ => Weights::Groups(Filter::new(isa, shape, w, None)),
        }
    }

    /// The instruction set that the weights were packed for.
    pub fn isa(&self) -> Isa {
        match self {
            Weights::Groups(filter) | Weights::Rows(filter) => filter.isa(),
            Weights::Depthwise(filter) => filter.isa(),
        }
    }

    /// The name of the chosen form.
    pub fn form(&self) -> String {
        match self {
            Weights::Groups(filter) => format!("{}, in blocks", filter.form()),
            Weights::Rows(filter) => format!("{}, from rows to blocks", filter.form()),
            Weights::Depthwise(_) => "depthwise, in blocks".to_string(),
        }
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Weights::Groups(filter) | Weights::Rows(filter) => filter.bytes(),
            Weights::Depthwise(filter) => filter.bytes(),
        }
    }

    /// `out = bias + weights * x`, then the epilogue. `x` is `[N, C / 16, H, W, 16]`, or `[N, C, H, W]` if the weights
    /// [take rows](Weights::take_rows). `out` is `[N, O / 16, H', W', 16]`.
    ///
    /// # Panics
    /// The slices or the weights do not fit the shape.
    pub fn conv(
        &self,
        threads: &Threads,
        shape: &Shape,
        bias: Option<&[f32]>,
        x: &[f32],
        out: &mut [f32],
        epilogue: Epilogue,
    ) {
        let shape = &shape.row_oriented();
        match self {
            Weights::Groups(filter) | Weights::Rows(filter) => conv(threads, shape, filter, bias, x, out, epilogue),
            Weights::Depthwise(filter) => depthwise(threads, shape, filter, bias, x, out, epilogue),
        }
    }
}
