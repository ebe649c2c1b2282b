//! GPU kernels: selection and clipping.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_in_place, count, kind, launch, width, Params};
use super::shapes::{Dims, Strides};
use super::OnGpu;
use crate::bail;
use crate::broadcast::join;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::{gpu_kernel, has_few_dimensions};
use crate::kernel::Call;
use crate::ops::conditional::{Clip, Where};
use crate::value::Value;

/// All operands broadcast to Z, which has `count` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(WhereOf in "conditional.cu")]
struct WhereParams {
    condition: u64,
    x: u64,
    y: u64,
    z: u64,
    count: u32,
    dims: Dims,
    of_condition: Strides,
    of_x: Strides,
    of_y: Strides,
}

/// X and Y have `count` elements, and a bound has one.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(ClipOf in "conditional.cu")]
struct ClipParams {
    x: u64,
    low: u64,
    high: u64,
    y: u64,
    count: u32,
    padding: u32,
}

gpu_kernel!(Where: "conditional" if |self, operands| {
    has_few_dimensions(operands) && operands.dtype(1).is_some_and(|dtype| dtype != DType::String)
});

impl OnGpu for Where {
    fn in_place(&self) -> &'static [usize] {
        &[1, 2]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (condition, x, y) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        let dtype = x.dtype();
        if (condition.dtype(), y.dtype()) != (DType::Bool, dtype) {
            bail!("a choice by {} between {dtype} and {}", condition.dtype(), y.dtype());
        }
        let (dims, broadcast) = join(&[condition.dims(), x.dims(), y.dims()])?;
        let mut params = WhereParams {
            condition: condition.address()?,
            x: x.address()?,
            y: y.address()?,
            z: 0,
            count: count(dims.iter().product())?,
            dims: Dims::new(&broadcast.dims)?,
            of_condition: Strides::of_operand(&broadcast, 0)?,
            of_x: Strides::of_operand(&broadcast, 1)?,
            of_y: Strides::of_operand(&broadcast, 2)?,
        };
        let z = alloc_in_place(gpu, call, self.in_place(), &dims, dtype)?;
        params.z = z.address()?;
        let symbol = Symbol { module: "conditional", name: "where", kind: width(dtype)? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![z.into()])
    }
}

gpu_kernel!(Clip: "conditional");

impl OnGpu for Clip {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dtype, dims) = (x.dtype(), x.dims().to_vec());
        let bound = |i: usize| match call.optional_tensor(i)? {
            None => Ok(0),
            Some(bound) if bound.dtype() != dtype => bail!("a bound must be {dtype}, like X, not {}", bound.dtype()),
            Some(bound) if bound.len() != 1 => bail!("a bound must have one element, found shape {:?}", bound.dims()),
            Some(bound) => bound.address(),
        };
        let (low, high) = (bound(1)?, bound(2)?);
        let mut params = ClipParams { x: x.address()?, low, high, y: 0, count: count(x.len())?, padding: 0 };
        let y = alloc_in_place(gpu, call, self.in_place(), &dims, dtype)?;
        params.y = y.address()?;
        let symbol = Symbol { module: "conditional", name: "clip", kind: kind(dtype)? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Bool;
    use crate::dtype::NUMBERS;
    use crate::testing::{numbers_of, run, tensor};
    use crate::value::Array;

    /// Numbers from -20 on, together with infinities and NaN.
    fn numbers(dtype: DType, dims: &[usize]) -> Array {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
        let number = |i: usize| if i % 11 == 5 { odd[i / 11 % 4] } else { (i * 7 % 41) as f64 - 20.0 };
        let numbers: Vec<f64> = (0..dims.iter().product()).map(number).collect();
        numbers_of(dtype, &numbers, dims)
    }

    #[test]
    fn choices_of_every_type_broadcast() {
        let shapes: [[&[usize]; 3]; 6] = [
            [&[700], &[700], &[700]],
            [&[2, 1, 5], &[3, 1], &[]],
            [&[], &[9, 33], &[33]],
            [&[4, 1, 3, 1, 2], &[1, 5, 1, 7, 1], &[4, 5, 3, 7, 2]],
            [&[0, 3], &[3], &[1, 1]],
            [&[1], &[1], &[]],
        ];
        for ([condition, x, y], dtype) in shapes.into_iter().flat_map(|shape| NUMBERS.map(|dtype| (shape, dtype))) {
            let yes = (0..condition.iter().product()).map(|i: usize| Bool::from(i % 3 == 1)).collect::<Vec<_>>();
            let inputs = [tensor(&yes, condition), numbers(dtype, x).into(), numbers(dtype, y).into()];
            run(&Where {}, &inputs.map(Some)).expect("it fits");
        }
    }

    #[test]
    fn bounds_of_every_type() {
        let bounds = [Some(-3.0), Some(5.0), Some(f64::NAN), Some(f64::NEG_INFINITY), None];
        for dtype in NUMBERS {
            for (low, high) in bounds.iter().flat_map(|low| bounds.iter().map(move |high| (low, high))) {
                let of = |bound: &Option<f64>| Some(numbers_of(dtype, &[(*bound)?], &[1]).into());
                for dims in [&[3, 101][..], &[], &[0]] {
                    run(&Clip {}, &[Some(numbers(dtype, dims).into()), of(low), of(high)]).expect("it fits");
                }
            }
        }
    }
}
