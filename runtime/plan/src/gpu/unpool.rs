//! GPU kernels: max unpooling.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Fault, Gpu, Grid, Report, Symbol};

use super::launch::{alloc_uninit, count, launch, width, Params};
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::unpool::{index_out_of_range, MaxUnpool};
use crate::value::{element_count, Value};

/// The counted tensor fits in Y, and there is an index per element of X.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Unpooling in "unpool.cu")]
struct UnpoolingParams {
    x: u64,
    indices: u64,
    y: u64,
    last: u64,
    counted: u64,
    fault: Fault,
    count: u32,
    total: u32,
    dims: Dims,
    strides: Strides,
    padding: u32,
}

gpu_kernel!(MaxUnpool: "unpool" if |self, operands| operands.dtype(0).is_some());

impl OnGpu for MaxUnpool {
    fn fault(&self, report: &Report) -> String {
        index_out_of_range(report.value, report.place, &report.bounds)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
        if indices.dtype() != DType::Int64 {
            bail!("MaxUnpool's indices must be int64, not {}", indices.dtype());
        }
        let (counted, dims) = self.sizes(call)?;
        let y = alloc_uninit(gpu, &dims, x.dtype())?;
        if y.is_empty() && x.is_empty() {
            return Ok(vec![y.into()]);
        }
        let last = alloc_uninit(gpu, &dims, DType::Uint32)?;
        let mut strides = vec![1isize; dims.len()];
        for a in (1..dims.len()).rev() {
            strides[a - 1] = strides[a].saturating_mul(isize::try_from(dims[a]).unwrap_or(isize::MAX));
        }
        let params = UnpoolingParams {
            x: x.address()?,
            indices: indices.address()?,
            y: y.address()?,
            last: last.address()?,
            counted: u64::from(count(element_count(&counted)?)?),
            fault: gpu.fault(&counted)?,
            count: count(x.len())?,
            total: count(y.len())?,
            dims: Dims::new(&counted)?,
            strides: Strides::new(strides)?,
            padding: 0,
        };
        let step = |name, kind, count| {
            let symbol = Symbol { module: "unpool", name, kind };
            launch(gpu, symbol, Grid::over(count), &params)
        };
        step("unpool_clear", "", params.total)?;
        step("unpool_mark", "", params.count)?;
        step("unpool_give", width(x.dtype())?, params.total)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::testing::{run, run_on_device, tensor};

    #[test]
    fn many_elements_and_the_last_of_equal_indices() {
        let op = MaxUnpool { kernel: vec![2, 3], strides: vec![2, 3], pads: vec![[0, 0], [1, 0]] };
        let (dims, count) = ([2, 3, 9, 11], 594);
        let total = 2 * 3 * 18 * 32;
        let indices: Vec<i64> = (0..count as i64).map(|i| (i * i * 7) % total).collect();
        let indices = Some(tensor(&indices, &dims));
        let numbers: Vec<f64> = (0..count).map(|i| i as f64 + 1.0).collect();
        let x = [
            tensor(&numbers, &dims),
            tensor(&numbers.iter().map(|&x| x as f32).collect::<Vec<_>>(), &dims),
            tensor(&numbers.iter().map(|&x| f16::from_f64(x)).collect::<Vec<_>>(), &dims),
        ];
        for x in x {
            run(&op, &[Some(x.clone()), indices.clone()]).unwrap();
            run(&op, &[Some(x), indices.clone(), Some(tensor(&[2i64, 4, 18, 33], &[4]))]).unwrap();
        }
        let (x, indices) = (tensor::<f32>(&[], &[0, 1, 2, 2]), tensor::<i64>(&[], &[0, 1, 2, 2]));
        run(&op, &[Some(x), Some(indices)]).unwrap();
    }

    #[test]
    fn an_index_outside_is_a_fault() {
        let op = MaxUnpool { kernel: vec![2], strides: vec![2], pads: vec![[0, 0]] };
        for (index, is_outside) in [(3, false), (4, true), (-1, true)] {
            let inputs = [tensor(&[5f32, 6.0], &[1, 1, 2]), tensor(&[0i64, index], &[1, 1, 2])];
            let (y, found) = run_on_device(&op, &inputs).expect("it runs");
            let last = if is_outside { 0.0 } else { 6.0 };
            assert_eq!(y[0].tensor().unwrap().read::<f32>().unwrap(), [5.0, 0.0, 0.0, last]);
            assert_eq!(found, is_outside);
        }
    }
}
