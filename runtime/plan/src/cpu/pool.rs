//! CPU kernels: pooling over windows of one or two spatial axes.

use candle_plan_kernels::convolution::blocked::Pool;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::pool::{self, Divisor, Window};
use candle_plan_kernels::reduce::Ordered;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::uninit::Uninit;
use half::{bf16, f16};

use super::bounds::has_short_lines;
use super::choice::{HasBlocksKernel, OnBlocks};
use super::convert::{read_widened, widened_bytes, Float};
use super::planned::CpuOperands;
use super::pool_blocks;
use crate::dispatch;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::pool::{AveragePool, LpPool, MaxPool};
use crate::types::{Type, Types};
use crate::value::{alloc_uninit, Array, Value};

impl Kernel for MaxPool {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        has_short_lines(&self.window, inputs).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(x.dims())?;
        let dtype = x.dtype();
        let indices = (call.outputs > 1).then(|| alloc_uninit::<i64>(&dims)).transpose()?;
        let max = Max { threads: call.threads, windows, column_major: self.column_major, indices };
        let (y, indices) = if dtype.is_float() {
            dispatch!("MaxPool", dtype, [f32, f64, f16, bf16], T => {
                let (y, indices) = max.of(&read_widened::<T>(x)?, alloc_uninit(&dims)?);
                Ok((Array::new(T::narrow(y), &dims)?, indices))
            })
        } else {
            dispatch!("MaxPool", dtype, [i8, u8], T => {
                let (y, indices) = max.of::<T>(x.read()?, alloc_uninit(&dims)?);
                Ok((Array::new(y, &dims)?, indices))
            })
        }?;
        let indices = indices.map(|indices| Array::new(indices, &dims)).transpose()?;
        Ok([Some(y), indices].into_iter().flatten().map(Value::from).collect())
    }
}

impl HasBlocksKernel for MaxPool {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        pool_blocks::blocked(&self.window, Pool::Max, operands, outputs).map(OnBlocks::with)
    }
}

/// Computes the outputs of [`MaxPool`].
struct Max<'a> {
    threads: &'a Threads,
    windows: [Window; 2],
    column_major: bool,
    /// The second output, if the step has it.
    indices: Option<Uninit<i64>>,
}

impl Max<'_> {
    fn of<T: Ordered>(self, x: &[T], y: Uninit<T>) -> (Vec<T>, Option<Vec<i64>>) {
        let Some(indices) = self.indices else {
            return (y.overwrite(|y| pool::max(Isa::get(), self.threads, x, self.windows, y)), None);
        };
        let run = |y: &mut [T], indices: &mut [i64]| {
            pool::max_with_indices(self.threads, x, self.windows, self.column_major, y, indices);
        };
        let (y, indices) = y.overwrite_both(indices, run);
        (y, Some(indices))
    }
}

impl Kernel for AveragePool {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        has_short_lines(&self.window, inputs).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(x.dims())?;
        let by = self.divisor();
        dispatch!("AveragePool", x.dtype(), [f32, f64, f16, bf16], T => {
            let (x, y) = (read_widened::<T>(x)?, alloc_uninit(&dims)?);
            let y = y.overwrite(|y| pool::average(Isa::get(), call.threads, &x, windows, by, y));
            Ok(vec![Array::new(T::narrow(y), &dims)?.into()])
        })
    }
}

impl HasBlocksKernel for AveragePool {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        pool_blocks::blocked(&self.window, Pool::Average(self.divisor()), operands, outputs).map(OnBlocks::with)
    }
}

impl AveragePool {
    fn divisor(&self) -> Divisor {
        if self.count_padding {
            Divisor::Padded
        } else {
            Divisor::Inside
        }
    }
}

impl Kernel for LpPool {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        has_short_lines(&self.window, inputs).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(x.dims())?;
        dispatch!("LpPool", x.dtype(), [f32, f64, f16, bf16], T => {
            let (x, y) = (read_widened::<T>(x)?, alloc_uninit(&dims)?);
            let y = y.overwrite(|y| pool::lp(Isa::get(), call.threads, &x, windows, f64::from(self.p), y));
            Ok(vec![Array::new(T::narrow(y), &dims)?.into()])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::padding::Padding;
    use crate::ops::pool::PoolWindow;
    use crate::testing::{run, tensor};

    fn window(kernel: &[usize], strides: &[usize], pads: &[[usize; 2]], ceil: bool) -> PoolWindow {
        PoolWindow {
            kernel: kernel.to_vec(),
            strides: strides.to_vec(),
            dilations: vec![1; kernel.len()],
            padding: Padding::Explicit(pads.to_vec()),
            ceil,
        }
    }

    fn numbers(dims: &[usize]) -> Value {
        let data: Vec<f32> = (1..=dims.iter().product()).map(|i: usize| i as f32).collect();
        tensor(&data, dims)
    }

    fn floats(value: &Value) -> (Vec<usize>, Vec<f32>) {
        let array = value.tensor().unwrap();
        (array.dims().to_vec(), array.read::<f32>().unwrap().to_vec())
    }

    #[test]
    fn windows_of_one_and_two_axes_are_pooled() {
        let cases: [(PoolWindow, &[usize], &[usize], &[f32], &[f32]); 4] = [
            (window(&[3], &[2], &[[1, 0]], false), &[1, 1, 6], &[1, 1, 3], &[2.0, 4.0, 6.0], &[1.0, 3.0, 5.0]),
            (window(&[3], &[2], &[[0, 0]], true), &[1, 1, 6], &[1, 1, 3], &[3.0, 5.0, 6.0], &[2.0, 4.0, 5.5]),
            (window(&[2, 2], &[2, 1], &[[0, 0]; 2], false), &[1, 1, 2, 3], &[1, 1, 1, 2], &[5.0, 6.0], &[3.0, 4.0]),
            (window(&[2, 1], &[2, 1], &[[0, 0]; 2], false), &[1, 2, 2, 1], &[1, 2, 1, 1], &[2.0, 4.0], &[1.5, 3.5]),
        ];
        for (window, input, output, maximum, mean) in cases {
            let max = MaxPool { window: window.clone(), column_major: false };
            let average = AveragePool { window, count_padding: true };
            let x = numbers(input);
            assert_eq!(floats(&run(&max, &[Some(x.clone())]).unwrap()), (output.to_vec(), maximum.to_vec()), "{max:?}");
            assert_eq!(floats(&run(&average, &[Some(x)]).unwrap()), (output.to_vec(), mean.to_vec()), "{average:?}");
        }
    }

    #[test]
    fn narrow_types_are_rounded_once() {
        let x = tensor(&[2048.0, 1.0, 1.0, 1.0].map(f16::from_f32), &[1, 1, 4]);
        let op = AveragePool { window: window(&[4], &[4], &[[0, 0]], false), count_padding: false };
        let y = run(&op, &[Some(x)]).unwrap();
        assert_eq!(*y.tensor().unwrap().read::<f16>().unwrap(), [f16::from_f32(513.0)]);
        // 2051 / 4, between 512.5 and 513
    }

    #[test]
    fn a_norm_has_its_exponent() {
        for (p, expected) in [(1, 7.0), (2, 5.0), (3, 91f32.cbrt())] {
            let op = LpPool { window: window(&[2], &[1], &[[0, 0]], false), p };
            let (_, y) = floats(&run(&op, &[Some(tensor(&[3f32, -4.0], &[1, 1, 2]))]).unwrap());
            assert!((y[0] - expected).abs() < 1e-6, "p = {p}");
        }
    }

    #[test]
    fn mismatched_inputs_are_refused() {
        let op = |kernel: &[usize]| MaxPool {
            window: window(kernel, kernel, &vec![[0, 0]; kernel.len()], false),
            column_major: false,
        };
        assert!(run(&op(&[2, 2, 2]), &[Some(numbers(&[1, 1, 2, 2, 2]))]).is_err());
        assert!(run(&op(&[2]), &[Some(numbers(&[1, 1, 2, 2]))]).is_err());
        assert!(run(&op(&[0]), &[Some(numbers(&[1, 1, 2]))]).is_err());
        assert!(run(&op(&[usize::MAX]), &[Some(numbers(&[1, 1, 2]))]).is_err());
        assert!(run(&op(&[2]), &[Some(tensor(&[1i64], &[1, 1, 1]))]).is_err());
    }
}
