//! The kernels among which prepare chooses for a step, before their constants are packed. The choice is a `match` instead of
//! a table from operator to kernels, because each arm gets the struct of its operator, and a table would have to find it in
//! [`Op`] again.

use std::sync::Arc;

use super::blocks::{elementwise, Blocked};
use super::conv_blocks;
use super::packed::kernel;
use super::planned::{Paired, Part, PlannedKernel, Ready};
use super::separable;
use crate::error::Result;
use crate::kernel::{Constants, Kernel};
use crate::ops::Op;
use crate::types::Type;

/// The operator's own kernel.
#[derive(Debug)]
pub(crate) struct Own(pub Arc<Op>);

impl PlannedKernel for Own {
    fn pack(self: Box<Self>, operands: &Constants) -> Result<Box<dyn Kernel>> {
        kernel(&self.0, operands)
    }
}

/// How a step runs on blocks of channels: its kernel and its layouts.
type OnBlocks = (Box<dyn PlannedKernel>, Blocked);

/// Returns how an operator runs on blocks, if it can. `outputs` are the types of its outputs.
pub(crate) fn blocked(op: &Arc<Op>, operands: &Constants, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
    let own = |blocked| -> OnBlocks { (Box::new(Own(Arc::clone(op))), blocked) };
    let output = outputs.first().copied().flatten();
    match &**op {
        Op::AveragePool(op) => op.blocked(operands, outputs).map(ready),
        Op::Concat(op) => op.blocked(operands, outputs).map(own),
        Op::Conv(op) => conv_blocks::blocked(op, operands, output).map(planned),
        Op::ConvTranspose(op) => conv_blocks::blocked(op, operands, output).map(planned),
        Op::Interpolate(op) => op.blocked(operands, outputs).map(own),
        Op::MaxPool(op) => op.blocked(operands, outputs).map(ready),
        Op::Reduce(op) => op.blocked(operands, outputs).map(own),
        Op::Binary(_) | Op::Clip(_) | Op::Elementwise(_) | Op::Unary(_) => elementwise(operands, outputs).map(own),
        _ => None,
    }
}

fn planned<K: PlannedKernel + 'static>((kernel, blocked): (K, Blocked)) -> OnBlocks {
    (Box::new(kernel), blocked)
}

fn ready<K: Kernel + 'static>((kernel, blocked): (K, Blocked)) -> OnBlocks {
    planned((Ready(Box::new(kernel)), blocked))
}

/// The kernels for two steps. Each function returns its kernel if it is faster than the two.
const PAIRS: &[fn(Part, Part) -> Option<Paired>] = &[separable::paired];

/// Returns the kernel for two steps that saves most, if one is faster than the two. The second step is the only reader of
/// the first step's output, which is its input 0.
pub(crate) fn paired(first: Part, next: Part) -> Option<Paired> {
    PAIRS.iter().filter_map(|of| of(first, next)).max_by(|a, b| a.saving.total_cmp(&b.saving))
}
