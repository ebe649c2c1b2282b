//! GPU kernels: caches whose rows are written one after another.

use candle_plan_device::Gpu;

use super::rows::RowsOnGpu;
use super::OnGpu;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::cache::AppendRows;
use crate::value::Value;

gpu_kernel!(AppendRows: "copy");

impl OnGpu for AppendRows {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![self.append(call, &RowsOnGpu(gpu))?.into()])
    }
}
