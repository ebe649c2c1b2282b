//! GPU kernels: functions of one element.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_in_place, count, kind, launch, Params};
use super::program::Function;
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::unary::Unary;
use crate::value::Value;

/// X and Y have `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(UnaryOf in "unary.cu")]
struct UnaryParams {
    x: u64,
    y: u64,
    count: u32,
    function: Function,
}

gpu_kernel!(Unary: "unary" if |self, operands| operands.dtype(0).is_some_and(|dtype| !dtype.is_small_float()));

impl OnGpu for Unary {
    fn in_place(&self) -> &'static [usize] {
        if self.is_predicate() {
            &[]
        } else {
            &[0]
        }
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dtype, dims, address) = (x.dtype(), x.dims().to_vec(), x.address()?);
        let (name, result) = if self.is_predicate() { ("truth", DType::Bool) } else { ("unary", dtype) };
        let y = alloc_in_place(gpu, call, OnGpu::in_place(self), &dims, result)?;
        let params =
            UnaryParams { x: address, y: y.address()?, count: count(y.len())?, function: Function::of(self.function) };
        launch(gpu, Symbol { module: "unary", name, kind: kind(dtype)? }, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}
