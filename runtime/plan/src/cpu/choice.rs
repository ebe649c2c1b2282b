//! The kernel that a step is to have, before its constants are packed.

use super::conv_blocks::ConvBlocks;
use super::separable::Separable;
use crate::error::{Error, Result};
use crate::kernel::{Constants, Kernel};
use crate::ops::Op;

/// The kernel that a step is to have.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The operator's own.
    Own,
    /// A convolution of images in blocks.
    Conv(ConvBlocks),
    /// A depthwise convolution and the 1 × 1 convolution after it, of images in blocks.
    Separable(Box<Separable>),
    /// This one, which packs nothing.
    Ready(Box<dyn Kernel>),
}

impl Choice {
    /// The kernel of an operator (`None` for a step without one), with packed constants.
    ///
    /// # Errors
    /// The constants do not fit the operator.
    pub fn pack(self, op: Option<&Op>, operands: &Constants) -> Result<Box<dyn Kernel>> {
        match (self, op) {
            (Choice::Own, Some(op)) => super::kernel(op, operands),
            (Choice::Own, None) => Err(Error::op("a step without an operator has no kernel")),
            (Choice::Conv(conv), _) => conv.pack(operands),
            (Choice::Separable(pair), _) => pair.pack(operands),
            (Choice::Ready(kernel), _) => Ok(kernel),
        }
    }
}

/// The kernel of two steps, the second of which alone reads the one output of the first, as its input 0: where it takes less
/// time than the two. It takes the inputs of the first step, then those of the second but input 0.
pub(crate) fn joined(first: (&Choice, &Constants), next: (&Choice, &Constants)) -> Option<Choice> {
    match (first, next) {
        ((Choice::Conv(first), operands), (Choice::Conv(next), of_next)) => {
            Separable::of(first, operands, next, of_next).map(|pair| Choice::Separable(Box::new(pair)))
        }
        _ => None,
    }
}
