//! Kernels before their constants are packed: of one step, and of a pair of steps.

use std::fmt::Debug;

use candle_plan_kernels::blocking::Blocking;

use crate::error::Result;
use crate::kernel::{Constants, Kernel, Memory};

/// The constant inputs of a step on the CPU, and the facts about its plan that decide how they are packed.
#[derive(Clone, Copy)]
pub(crate) struct CpuOperands<'a> {
    pub constants: Constants<'a>,
    /// How much memory packed weights may take.
    pub memory: Memory,
    /// The blocks of channels of the plan.
    pub blocking: Blocking,
}

/// A kernel of a step that prepare considers or has chosen. Its constants are not packed yet.
pub(crate) trait PlannedKernel: Debug {
    /// Packs the constants into the kernel.
    ///
    /// # Errors
    /// The constants do not fit the operator.
    fn pack(self: Box<Self>, operands: &CpuOperands) -> Result<Box<dyn Kernel>>;
}

/// A kernel that packs nothing.
#[derive(Debug)]
pub(crate) struct Ready(pub Box<dyn Kernel>);

impl PlannedKernel for Ready {
    fn pack(self: Box<Self>, _: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(self.0)
    }
}

/// A kernel for two steps that run on blocks of channels. It takes the inputs of the first step, then those of the second
/// without input 0.
#[derive(Debug)]
pub(crate) struct Paired {
    pub kernel: Box<dyn PlannedKernel>,
    /// The time that it saves compared with two steps, in multiply-adds of a vector.
    pub saving: f64,
    /// What two steps take in addition to the times of their kernels.
    pub overhead: f64,
}
