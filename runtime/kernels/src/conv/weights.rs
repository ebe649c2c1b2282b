//! The weights of a convolution, packed once for the fastest form.

use super::{images, Rows};
use crate::blocked;
use crate::conv_shape::Shape;
use crate::isa::Isa;

/// The weights of a convolution.
#[derive(Debug, Clone)]
pub enum Weights {
    /// For images `[N, C, H, W]`.
    Rows(Rows),
    /// For images in blocks of channels; `conv` converts them.
    Blocks(blocked::Weights),
}

impl Weights {
    /// Packs `w` `[O, C / groups, kernel…]` for inputs of about the size in `shape`.
    ///
    /// # Panics
    /// `w` does not have this shape.
    pub fn new(isa: Isa, shape: &Shape, w: &[f32]) -> Weights {
        Weights::packed(isa, shape, w, blocked::Weights::new)
    }

    /// Like [`Weights::new`], but never transforms the weights for Winograd's algorithm: the packed weights are as many
    /// as `w` has.
    ///
    /// # Panics
    /// As for [`Weights::new`].
    pub fn direct(isa: Isa, shape: &Shape, w: &[f32]) -> Weights {
        Weights::packed(isa, shape, w, blocked::Weights::direct)
    }

    fn packed(isa: Isa, shape: &Shape, w: &[f32], blocks: fn(Isa, &Shape, &[f32]) -> blocked::Weights) -> Weights {
        let shape = &shape.row_oriented();
        match blocked::is_worth_reordering(isa, shape) {
            true => Weights::Blocks(blocks(isa, shape, w)),
            false => Weights::Rows(Rows::new(isa, shape.groups, shape.outputs / shape.groups, shape.taps(), w)),
        }
    }

    /// The name of the chosen form.
    pub fn form(&self) -> String {
        match self {
            Weights::Rows(_) => "direct, in rows".to_string(),
            Weights::Blocks(weights) => format!("{} within the step", weights.form()),
        }
    }

    /// The elements of scratch memory that [`conv`](super::conv) needs for images in blocks of channels.
    pub fn scratch(&self, shape: &Shape) -> usize {
        let [from, to] = images(shape);
        match self {
            Weights::Rows(_) => 0,
            Weights::Blocks(blocked::Weights::Rows(_)) => to.blocked_len(),
            Weights::Blocks(_) => from.blocked_len() + to.blocked_len(),
        }
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Weights::Rows(rows) => rows.bytes(),
            Weights::Blocks(weights) => weights.bytes(),
        }
    }
}
