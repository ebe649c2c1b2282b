//! A step of a plan that was placed on a GPU.

use candle_plan_device::Gpu;

use super::{Needs, OnGpu};
use crate::device::on_device;
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::Type;
use crate::value::Value;
use crate::work::Work;

/// An op, and how it runs on a GPU.
#[derive(Debug)]
pub(crate) struct Placed {
    pub op: Box<dyn Kernel>,
    pub kernel: Box<dyn OnGpu>,
    pub gpu: Gpu,
}

impl Kernel for Placed {
    fn arity(&self) -> Arity {
        self.op.arity()
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        self.op.infer(inputs)
    }

    fn in_place(&self) -> &'static [usize] {
        self.kernel.in_place()
    }

    fn shares(&self, input: usize) -> bool {
        self.op.shares(input)
    }

    fn fault(&self) -> &'static str {
        self.op.fault()
    }

    fn needs(&self, input: usize) -> Needs {
        self.op.needs(input)
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        self.op.work(inputs, outputs)
    }

    on_device!(NoKernel);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        self.kernel.run(&self.gpu, call)
    }
}
