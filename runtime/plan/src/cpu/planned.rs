//! Kernels before their constants are packed: of one step, and of a pair of steps.

use std::fmt::Debug;

use candle_plan_kernels::convolution::PlannedConv;

use super::conv_case::ConvBlocks;
use crate::error::Result;
use crate::kernel::{Constants, Kernel};
use crate::ops::conv::Conv;

/// A kernel of a step that prepare considers or has chosen. Its constants are not packed yet.
pub(crate) trait PlannedKernel: Debug {
    /// Packs the constants into the kernel.
    ///
    /// # Errors
    /// The constants do not fit the operator.
    fn pack(self: Box<Self>, operands: &Constants) -> Result<Box<dyn Kernel>>;

    /// Returns the kernel of the same step for images in rows, if it keeps facts that were compared. `None` if the
    /// operator's own kernel runs on them.
    fn in_rows(self: Box<Self>) -> Option<Box<dyn PlannedKernel>> {
        None
    }

    /// The convolution on blocks of channels, and its forms, that a [pair](Paired) may begin or end with.
    fn convolution(&self) -> Option<(&ConvBlocks<Conv>, &PlannedConv)> {
        None
    }
}

/// A kernel that packs nothing.
#[derive(Debug)]
pub(crate) struct Ready(pub Box<dyn Kernel>);

impl PlannedKernel for Ready {
    fn pack(self: Box<Self>, _: &Constants) -> Result<Box<dyn Kernel>> {
        Ok(self.0)
    }
}

/// A step of a possible pair: its kernel on blocks of channels, and its operands.
pub(crate) type Part<'a> = (&'a dyn PlannedKernel, &'a Constants<'a>);

/// A kernel for two steps that run on blocks of channels. It takes the inputs of the first step, then those of the second
/// without input 0.
#[derive(Debug)]
pub(crate) struct Paired {
    pub kernel: Box<dyn PlannedKernel>,
    /// The time that it saves compared with two steps, in multiply-adds of a vector.
    pub saving: f64,
    /// What two steps take beside the times of their kernels.
    pub beside: f64,
}
