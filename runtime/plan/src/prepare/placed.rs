//! A step of a plan that was placed on a GPU.

use candle_plan_device::Gpu;

use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::OnGpu;
use crate::kernel::{Call, Kernel};
use crate::types::Types;
use crate::value::Value;

/// A kernel and its GPU.
#[derive(Debug)]
pub(crate) struct Placed {
    pub kernel: Box<dyn OnGpu>,
    pub gpu: Gpu,
}

impl Kernel for Placed {
    fn takes(&self, input: usize, _dtype: DType) -> bool {
        self.kernel.in_place().contains(&input)
    }

    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        self.kernel.reads_grown(input, from_end)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        self.kernel.scratch(inputs)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        self.kernel.run(&self.gpu, call)
    }
}
