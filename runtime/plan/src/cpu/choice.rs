//! The kernels among which prepare chooses for a step, before their constants are packed. An operator that runs on blocks of
//! channels implements [`HasBlocksKernel`] in its own file, where the build script finds it.

use std::sync::Arc;

use super::blocks::Blocked;
use super::conv_blocks::PlannedBlocks;
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

/// An operator with a kernel for images in blocks of channels.
pub(super) trait HasBlocksKernel {
    /// Returns how the operator runs on blocks, if it can. `outputs` are the types of its outputs.
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks>;
}

/// How a step runs on blocks of channels.
pub(crate) struct OnBlocks {
    pub kernel: BlocksKernel,
    pub layouts: Blocked,
}

impl OnBlocks {
    /// The operator's own kernel runs on blocks.
    pub fn with_own(layouts: Blocked) -> OnBlocks {
        OnBlocks { kernel: BlocksKernel::Own, layouts }
    }

    /// A second kernel of the operator, which packs nothing, runs on blocks.
    pub fn with<K: Kernel + 'static>((kernel, layouts): (K, Blocked)) -> OnBlocks {
        OnBlocks { kernel: BlocksKernel::Other(Box::new(Ready(Box::new(kernel)))), layouts }
    }
}

/// A kernel on blocks of channels. Its constants are not packed yet.
pub(crate) enum BlocksKernel {
    Conv(PlannedBlocks<Conv>),
    ConvTranspose(PlannedBlocks<ConvTranspose>),
    /// The operator's [own](Own) kernel.
    Own,
    /// A second kernel. The operator's own kernel runs on images in rows.
    Other(Box<dyn PlannedKernel>),
}

impl BlocksKernel {
    /// Returns the kernel for images in blocks. `None` if the operator's own kernel runs on them.
    pub fn in_blocks(self) -> Option<Box<dyn PlannedKernel>> {
        match self {
            BlocksKernel::Conv(conv) => Some(Box::new(conv)),
            BlocksKernel::ConvTranspose(conv) => Some(Box::new(conv)),
            BlocksKernel::Own => None,
            BlocksKernel::Other(kernel) => Some(kernel),
        }
    }

    /// Returns the kernel of the same step for images in rows: a convolution keeps the forms that were compared. `None` if
    /// the operator's own kernel runs on them.
    pub fn in_rows(self) -> Option<Box<dyn PlannedKernel>> {
        match self {
            BlocksKernel::Conv(conv) => Some(Box::new(conv.in_rows())),
            BlocksKernel::ConvTranspose(conv) => Some(Box::new(conv.in_rows())),
            BlocksKernel::Own | BlocksKernel::Other(_) => None,
        }
    }
}

// The macro `with_blocks_kernels`, which `build.rs` writes: it knows the operators with an `impl HasBlocksKernel`.
include!(concat!(env!("OUT_DIR"), "/blocks_kernels.rs"));

/// Finds the kernels on blocks. A line of the table holds a family and its operators with such kernels.
macro_rules! kernels {
    ($d:tt $($family:ident: $($op:ident)*;)*) => {
        /// Returns how an operator runs on blocks, if it can. `outputs` are the types of its outputs.
        pub(crate) fn on_blocks(op: &Op, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
            match op {
                $($(Op::$op(op) => HasBlocksKernel::on_blocks(op, operands, outputs),)*)*
                _ => None,
            }
        }
    };
}

with_blocks_kernels!(kernels $);

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
