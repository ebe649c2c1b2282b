//! The kernels among which prepare chooses for a step, before their constants are packed. The choice is a `match` instead of
//! a table from operator to kernels, because each arm gets the struct of its operator, and a table would have to find it in
//! [`Op`] again.

use std::sync::Arc;

use super::blocks::{elementwise, Blocked};
use super::conv_blocks::{self, PlannedBlocks};
use super::packed::kernel;
use super::planned::{CpuOperands, Paired, PlannedKernel, Ready};
use super::separable;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::Op;
use crate::types::Type;

/// The operator's own kernel.
#[derive(Debug)]
pub(crate) struct Own(pub Arc<Op>);

impl PlannedKernel for Own {
    fn pack(self: Box<Self>, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        kernel(&self.0, operands)
    }
}

/// How a step runs on blocks of channels.
pub(crate) struct OnBlocks {
    pub kernel: BlocksKernel,
    pub layouts: Blocked,
}

/// A kernel on blocks of channels. Its constants are not packed yet.
pub(crate) enum BlocksKernel {
    Conv(PlannedBlocks<Conv>),
    ConvTranspose(PlannedBlocks<ConvTranspose>),
    /// The kernel of an operator without weights.
    Other(Box<dyn PlannedKernel>),
}

impl BlocksKernel {
    /// Returns the kernel for images in blocks.
    pub fn in_blocks(self) -> Box<dyn PlannedKernel> {
        match self {
            BlocksKernel::Conv(conv) => Box::new(conv),
            BlocksKernel::ConvTranspose(conv) => Box::new(conv),
            BlocksKernel::Other(kernel) => kernel,
        }
    }

    /// Returns the kernel of the same step for images in rows: a convolution keeps the forms that were compared. `None` if
    /// the operator's [own](Own) kernel runs on them.
    pub fn in_rows(self) -> Option<Box<dyn PlannedKernel>> {
        match self {
            BlocksKernel::Conv(conv) => Some(Box::new(conv.in_rows())),
            BlocksKernel::ConvTranspose(conv) => Some(Box::new(conv.in_rows())),
            BlocksKernel::Other(_) => None,
        }
    }
}

/// Returns how an operator runs on blocks, if it can. `outputs` are the types of its outputs.
pub(crate) fn blocked(op: &Arc<Op>, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
    let own = |layouts| (BlocksKernel::Other(Box::new(Own(Arc::clone(op)))), layouts);
    let output = outputs.first().copied().flatten();
    let (kernel, layouts) = match &**op {
        Op::AveragePool(op) => op.blocked(operands, outputs).map(ready),
        Op::Concat(op) => op.blocked(operands, outputs).map(own),
        Op::Conv(op) => conv_blocks::blocked(op, operands, output).map(with(BlocksKernel::Conv)),
        Op::ConvTranspose(op) => conv_blocks::blocked(op, operands, output).map(with(BlocksKernel::ConvTranspose)),
        Op::Interpolate(op) => op.blocked(operands, outputs).map(own),
        Op::MaxPool(op) => op.blocked(operands, outputs).map(ready),
        Op::Reduce(op) => op.blocked(operands, outputs).map(own),
        Op::Binary(_) | Op::Clip(_) | Op::Elementwise(_) | Op::Unary(_) => elementwise(operands, outputs).map(own),
        _ => None,
    }?;
    Some(OnBlocks { kernel, layouts })
}

fn with<K>(variant: fn(K) -> BlocksKernel) -> impl Fn((K, Blocked)) -> (BlocksKernel, Blocked) {
    move |(kernel, layouts)| (variant(kernel), layouts)
}

fn ready<K: Kernel + 'static>((kernel, layouts): (K, Blocked)) -> (BlocksKernel, Blocked) {
    (BlocksKernel::Other(Box::new(Ready(Box::new(kernel)))), layouts)
}

/// Returns a kernel for two convolutions if it is faster than the two.
type PairOf = fn(&PlannedBlocks<Conv>, &PlannedBlocks<Conv>) -> Option<Paired>;

/// The kernels for two convolutions.
const PAIRS: &[PairOf] = &[separable::paired];

/// Returns the kernel for two steps that saves most, if one is faster than the two. The second step is the only reader of
/// the first step's output, which is its input 0.
pub(crate) fn paired(first: &BlocksKernel, next: &BlocksKernel) -> Option<Paired> {
    let (BlocksKernel::Conv(first), BlocksKernel::Conv(next)) = (first, next) else { return None };
    PAIRS.iter().filter_map(|of| of(first, next)).max_by(|a, b| a.saving.total_cmp(&b.saving))
}
