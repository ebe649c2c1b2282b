//! GPU kernels: tensors generated from a few numbers.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::cast::Source;
use candle_plan_descriptors::strided::View;
use candle_plan_device::{Fault, Gpu, Grid, Report, Symbol};
use half::{bf16, f16};

use super::copy::copied;
use super::launch::{alloc_uninit, count, kind, launch, width, Params};
use super::numbers::number;
use super::select::bounded_diagonal;
use super::OnGpu;
use crate::array::numbers::beyond_i64;
use crate::axes;
use crate::bail;
use crate::dispatch;
use crate::dtype::{DType, NUMBERS};
use crate::error::Result;
use crate::extent::one_element;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::generate::{extent, one_of, EyeLike, Fill, OneHot, Range};
use crate::value::Value;

/// Y has `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(RangeOf in "generate.cu")]
struct RangeParams {
    y: u64,
    start: i64,
    delta: i64,
    real_start: f64,
    real_delta: f64,
    count: u32,
    padding: u32,
}

/// Y has `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(EyeOf in "generate.cu")]
struct EyeParams {
    y: u64,
    one: u64,
    k: i64,
    count: u32,
    columns: u32,
}

/// There are two values. Y has `count` elements, in lines of `depth` elements, and there is one index per line.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(OneHotOf in "generate.cu")]
struct OneHotParams {
    indices: u64,
    values: u64,
    y: u64,
    fault: Fault,
    count: u32,
    depth: u32,
    inner: u32,
    index: u32,
}

gpu_kernel!(Fill: "generate" if |self, operands| operands.dtype(1).is_some_and(|dtype| dtype != DType::String));

impl OnGpu for Fill {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let dims = axes::dims(&axes::numbers(call.tensor(0)?)?)?;
        let value = call.tensor(1)?;
        one_element("the value to fill with", value.dims())?;
        let strides = vec![0; dims.len()];
        Ok(vec![copied(gpu, value, &View { offset: 0, dims, strides })?.into()])
    }
}

gpu_kernel!(Range: "generate");

impl OnGpu for Range {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let dtype = call.tensor(0)?.dtype();
        let (dims, params) = dispatch!("Range", dtype, [f32, f64, f16, bf16, i16, i32, i64], T => {
            let (start, delta, elements) = extent::<T>([call.tensor(0)?, call.tensor(1)?, call.tensor(2)?])?;
            let params = RangeParams {
                start: start.to_i64(),
                delta: delta.to_i64(),
                real_start: start.to_f64(),
                real_delta: delta.to_f64(),
                ..RangeParams::zeroed()
            };
            Ok(([elements], params))
        })?;
        let y = alloc_uninit(gpu, &dims, dtype)?;
        let params = RangeParams { y: y.address()?, count: count(y.len())?, ..params };
        let symbol = Symbol { module: "generate", name: "range", kind: kind(dtype)? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(EyeLike: "generate");

impl OnGpu for EyeLike {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let &[rows, columns] = call.value(0)?.dims()? else { bail!("expected a matrix") };
        let y = alloc_uninit(gpu, &[rows, columns], self.dtype)?;
        if y.is_empty() {
            return Ok(vec![y.into()]);
        }
        let params = EyeParams {
            y: y.address()?,
            one: one_of(self.dtype)?,
            k: bounded_diagonal(self.k),
            count: count(y.len())?,
            columns: count(columns)?,
        };
        let symbol = Symbol { module: "generate", name: "eye", kind: width(self.dtype)? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(OneHot: "generate" if |self, operands| {
    let is_number = |dtype| dtype == DType::Bool || NUMBERS.contains(&dtype);
    operands.dtype(0).is_some_and(is_number) && operands.dtype(2).is_some_and(|dtype| dtype != DType::String)
});

impl OnGpu for OneHot {
    fn fault(&self, report: &Report) -> String {
        beyond_i64(report.value as u64, report.place)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (indices, values) = (call.tensor(0)?, call.tensor(2)?);
        let (dims, axis) = self.dims(indices, call.tensor(1)?)?;
        OneHot::check_values(values.dims())?;
        let y = alloc_uninit(gpu, &dims, values.dtype())?;
        if y.is_empty() {
            return Ok(vec![y.into()]);
        }
        let params = OneHotParams {
            indices: indices.address()?,
            values: values.address()?,
            y: y.address()?,
            fault: gpu.fault(&[])?,
            count: count(y.len())?,
            depth: count(dims[axis])?,
            inner: count(dims[axis + 1..].iter().product())?,
            index: number(indices.dtype())?,
        };
        let symbol = Symbol { module: "generate", name: "one_hot", kind: width(y.dtype())? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::dtype::NUMBERS;
    use crate::testing::{fault, numbers_of, run, tensor};

    fn numbers(list: &[f64], dims: &[usize], dtype: DType) -> Option<Value> {
        Some(numbers_of(dtype, list, dims).into())
    }

    #[test]
    fn many_elements_of_every_type() {
        for dtype in NUMBERS {
            for dims in [&[700i64][..], &[3, 1, 5, 2, 1, 3], &[1], &[2, 0]] {
                let shape = Some(tensor(dims, &[dims.len()]));
                run(&Fill {}, &[shape, numbers(&[7.0], &[1], dtype)]).expect("a shape");
            }
            for k in [0, 3, -30, i64::MAX, i64::MIN, 1 << 40] {
                for dims in [[33, 40], [40, 7], [0, 3], [3, 0], [1, 1]] {
                    let x = tensor(&vec![0u8; dims[0] * dims[1]], &dims);
                    run(&EyeLike { dtype, k }, &[Some(x)]).expect("a matrix");
                }
            }
        }
    }

    #[test]
    fn long_ranges() {
        let dtypes = [DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64];
        for dtype in dtypes.into_iter().chain([DType::Int16, DType::Int32, DType::Int64]) {
            for list in [[-3.0, 1000.0, 1.0], [500.0, -100.0, -2.0], [1.0, 8.0, 5.0], [2.0, 2.0, 1.0]] {
                let y = run(&Range {}, &list.map(|number| numbers(&[number], &[], dtype))).expect("a range");
                assert_eq!(y.tensor().expect("a tensor").len(), ((list[1] - list[0]) / list[2]).ceil() as usize);
            }
        }
        let y = run(&Range {}, &[0.1f32, 100.0, 0.1].map(|number| Some(tensor(&[number], &[]))));
        assert!(y.is_ok());
    }

    #[test]
    fn one_hot_by_indices_of_every_type() {
        let list: Vec<f64> = (0..70).map(|i| [0.0, 4.0, 3.0, 1.75, 5.0, -1.0, -5.0, -6.0][i % 8]).collect();
        let unsigned: Vec<f64> = list.iter().map(|number| number.abs()).collect();
        for (index, value) in NUMBERS.iter().flat_map(|&index| NUMBERS.map(|value| (index, value))) {
            let list = if index == DType::Uint64 { &unsigned } else { &list };
            for (axis, dims) in [(-1, &[70][..]), (0, &[7, 10]), (1, &[7, 5, 2]), (0, &[70])] {
                let inputs =
                    [numbers(list, dims, index), Some(tensor(&[5i64], &[])), numbers(&[3.0, 9.0], &[2], value)];
                run(&OneHot { axis }, &inputs).expect("indices");
            }
        }
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.5, 1e20];
        run(
            &OneHot { axis: 0 },
            &[Some(tensor(&odd, &[5])), Some(tensor(&[3.9f32], &[1])), Some(tensor(&[0u8, 1], &[2]))],
        )
        .expect("indices");
        let far = |index: u64| {
            fault(&OneHot { axis: 0 }, &[tensor(&[1, index], &[2]), tensor(&[3i64], &[]), tensor(&[0u8, 1], &[2])])
        };
        assert!(far(u64::MAX) && !far(1 << 62));
    }
}
