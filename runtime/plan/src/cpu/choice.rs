//! The kernel chosen for a step, before its constants are packed. The choice is a `match` instead of a table from operator
//! to kernels, because each arm gets the struct of its operator, and a table would have to find it in [`Op`] again.

use super::blocks::{elementwise, Blocked};
use candle_plan_kernels::convolution::PlannedConv;

use super::conv_blocks::{self, PlannedBlocks};
use super::conv_case::Convolution;
use super::conv_rows;
use super::packed::kernel;
use super::separable::Separable;
use crate::error::{Error, Result};
use crate::kernel::{Constants, Kernel};
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::Op;
use crate::types::Type;

/// The kernel chosen for a step.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The operator's own kernel.
    Own,
    /// A convolution of images in blocks.
    Conv(PlannedBlocks<Conv>),
    /// A transposed convolution of images in blocks.
    ConvTranspose(PlannedBlocks<ConvTranspose>),
    /// A plain or transposed convolution of images in rows, whose form is chosen.
    ConvInRows(PlannedConv),
    /// A depthwise convolution and the following 1 × 1 convolution, of images in blocks.
    Separable(Box<Separable>),
    /// A ready kernel that packs nothing.
    Ready(Box<dyn Kernel>),
}

impl Choice {
    /// Packs the constants into the kernel of an operator (`None` for a step without one).
    ///
    /// # Errors
    /// The constants do not fit the operator.
    pub fn pack(self, op: Option<&Op>, operands: &Constants) -> Result<Box<dyn Kernel>> {
        match (self, op) {
            (Choice::Own, Some(op)) => kernel(op, operands),
            (Choice::Own, None) => Err(Error::op("a step without an operator has no kernel")),
            (Choice::ConvInRows(planned), Some(Op::Conv(op))) => conv_rows::kernel(op, &planned, operands),
            (Choice::ConvInRows(planned), Some(Op::ConvTranspose(op))) => conv_rows::kernel(op, &planned, operands),
            (Choice::ConvInRows(_), _) => Err(Error::op("the step is no convolution")),
            (Choice::Conv(conv), _) => conv.pack(operands),
            (Choice::ConvTranspose(conv), _) => conv.pack(operands),
            (Choice::Separable(pair), _) => pair.pack(operands),
            (Choice::Ready(kernel), _) => Ok(kernel),
        }
    }

    /// Returns the kernel of the same step for images in rows. A convolution keeps the forms that were compared.
    pub fn in_rows(self) -> Choice {
        match self {
            Choice::Conv(conv) => Choice::ConvInRows(conv.planned),
            Choice::ConvTranspose(conv) => Choice::ConvInRows(conv.planned),
            _ => Choice::Own,
        }
    }
}

/// Returns how an operator runs on blocks, if it can: the kernel and its layouts. `outputs` are the types of its
/// outputs.
pub(crate) fn blocked(op: &Op, operands: &Constants, outputs: &[Option<&Type>]) -> Option<(Choice, Blocked)> {
    let own = |blocked| (Choice::Own, blocked);
    match op {
        Op::AveragePool(op) => op.blocked(operands, outputs).map(ready),
        Op::Concat(op) => op.blocked(operands, outputs).map(own),
        Op::Conv(op) => convolution(op, operands, outputs, Choice::Conv),
        Op::ConvTranspose(op) => convolution(op, operands, outputs, Choice::ConvTranspose),
        Op::Interpolate(op) => op.blocked(operands, outputs).map(own),
        Op::MaxPool(op) => op.blocked(operands, outputs).map(ready),
        Op::Reduce(op) => op.blocked(operands, outputs).map(own),
        Op::Binary(_) | Op::Clip(_) | Op::Elementwise(_) | Op::Unary(_) => elementwise(operands, outputs).map(own),
        _ => None,
    }
}

fn convolution<C: Convolution>(
    op: &C,
    operands: &Constants,
    outputs: &[Option<&Type>],
    choice: impl FnOnce(PlannedBlocks<C>) -> Choice,
) -> Option<(Choice, Blocked)> {
    let (conv, blocked) = conv_blocks::blocked(op, operands, outputs.first().copied().flatten())?;
    Some((choice(conv), blocked))
}

fn ready<K: Kernel + 'static>((kernel, blocked): (K, Blocked)) -> (Choice, Blocked) {
    (Choice::Ready(Box::new(kernel)), blocked)
}

/// Returns a fused kernel for two steps, if it is faster than the two. The second step is the only consumer of the
/// first step's output, which it reads as input 0. The fused kernel takes the inputs of the first step, then those of
/// the second without input 0.
pub(crate) fn fused(first: (&Choice, &Constants), next: (&Choice, &Constants)) -> Option<Choice> {
    match (first, next) {
        ((Choice::Conv(first), operands), (Choice::Conv(next), next_operands)) => {
            Separable::of(&first.op, operands, &next.op, next_operands).map(|pair| Choice::Separable(Box::new(pair)))
        }
        _ => None,
    }
}
