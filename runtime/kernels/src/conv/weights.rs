//! The weights of a convolution, packed once for the form that takes the least time.

use super::{images, Rows};
use crate::blocked;
use crate::conv_shape::Shape;
use crate::isa::Isa;

/// The weights of a convolution.
#[derive(Debug, Clone)]
pub enum Weights {
    /// For images as they are.
    Rows(Rows),
    /// For images in blocks of channels.
    Blocks(blocked::Weights),
}

impl Weights {
    /// Packs `w`, of shape `[O, C / groups, kernel…]`, for inputs about as large as that of `shape`.
    ///
    /// # Panics
    /// `w` is not of that shape.
    pub fn new(isa: Isa, shape: &Shape, w: &[f32]) -> Weights {
        Weights::packed(isa, shape, w, blocked::Weights::new)
    }

    /// [`Weights::new`] of as many numbers as `w` has: not transformed for Winograd's algorithm.
    ///
    /// # Panics
    /// As for [`Weights::new`].
    pub fn direct(isa: Isa, shape: &Shape, w: &[f32]) -> Weights {
        Weights::packed(isa, shape, w, blocked::Weights::direct)
    }

    fn packed(isa: Isa, shape: &Shape, w: &[f32], blocks: fn(Isa, &Shape, &[f32]) -> blocked::Weights) -> Weights {
        let shape = &shape.lying();
        match blocked::is_worth_reordering(isa, shape) {
            true => Weights::Blocks(blocks(isa, shape, w)),
            false => Weights::Rows(Rows::new(isa, shape.groups, shape.outputs / shape.groups, shape.taps(), w)),
        }
    }

    /// The form that was chosen, in words.
    pub fn form(&self) -> String {
        match self {
            Weights::Rows(_) => "direct, in rows".to_string(),
            Weights::Blocks(weights) => format!("{} within the step", weights.form()),
        }
    }

    /// The elements that [`conv`](super::conv) holds beside its input and output: images in blocks of channels.
    pub fn scratch(&self, shape: &Shape) -> usize {
        let [from, to] = images(shape);
        match self {
            Weights::Rows(_) => 0,
            Weights::Blocks(blocked::Weights::Rows(_)) => to.blocked_len(),
            Weights::Blocks(_) => from.blocked_len() + to.blocked_len(),
        }
    }

    /// The bytes that the packed weights take.
    pub fn bytes(&self) -> usize {
        match self {
            Weights::Rows(rows) => rows.bytes(),
            Weights::Blocks(weights) => weights.bytes(),
        }
    }
}
