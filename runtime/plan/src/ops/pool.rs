//! Pooling over windows of one or two spatial axes.

use candle_plan_kernels::blocked::Pool;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::pool::{self, Divisor, Window};
use candle_plan_kernels::reduce::Ordered;
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::{check_steps, output_size, output_size_ceil, Padding};
use super::pool_blocks;
use crate::bail;
use crate::device::on_device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::float::{Float, FLOATS};
use crate::kernel::{Arity, Call, Constants, Kernel, Types};
use crate::layout::Blocked;
use crate::types::{Dim, TensorType, Type};
use crate::value::{room, Array, Value};

/// The window of a pooling, and where it stops; one number for each of the one or two spatial axes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolWindow {
    /// The elements of a window.
    pub kernel: Vec<usize>,
    /// The distances between windows.
    pub strides: Vec<usize>,
    /// The distances between a window's elements.
    pub dilations: Vec<usize>,
    /// What surrounds the input.
    pub padding: Padding,
    /// Whether a last window may reach past the padding, as long as it begins before it.
    pub ceil: bool,
}

/// The largest element of each window; padding is never the largest. X `[N, C, W]` or `[N, C, H, W]`; Y the same with the
/// number of windows in place of the sizes; the optional second output has Y's shape and says where in X, as a whole, each
/// element stands: the first of equals.
///
/// A NaN is never the largest; a window of padding or NaN alone gives −∞ or the least integer. Source:
/// [ONNX MaxPool](https://onnx.ai/onnx/operators/onnx__MaxPool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxPool {
    /// The window.
    pub window: PoolWindow,
    /// Whether the indices number the elements of an image column by column.
    pub column_major: bool,
}

/// The mean of each window. X `[N, C, W]` or `[N, C, H, W]`; Y the same with the number of windows in place of the sizes.
///
/// Source: [ONNX AveragePool](https://onnx.ai/onnx/operators/onnx__AveragePool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AveragePool {
    /// The window.
    pub window: PoolWindow,
    /// Whether padding counts as zeros; what lies beyond it never counts.
    pub count_padding: bool,
}

/// `(Σ |x|ᵖ)^(1/p)` of each window. X `[N, C, W]` or `[N, C, H, W]`; Y the same with the number of windows in place of the
/// sizes.
///
/// Source: [ONNX LpPool](https://onnx.ai/onnx/operators/onnx__LpPool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LpPool {
    /// The window.
    pub window: PoolWindow,
    /// The exponent, at least 1.
    pub p: u32,
}

/// A line of partial results is not longer than this.
const LONGEST_AXIS: usize = 1 << 28;

impl PoolWindow {
    /// The outputs' shape, where X's is known.
    pub(super) fn infer(&self, x: &TensorType) -> Result<TensorType> {
        let lists = [self.strides.len(), self.dilations.len()];
        let (1..=2, true) = (self.kernel.len(), lists == [self.kernel.len(); 2]) else {
            bail!("a pooling window has one or two axes, found {self:?}");
        };
        check_steps(&self.strides, &self.dilations, 1)?;
        if self.kernel.contains(&0) {
            bail!("a window needs a kernel of at least 1, found {:?}", self.kernel);
        }
        let rank = 2 + self.kernel.len();
        let Some(shape) = &x.shape else { return Ok(TensorType::ranked(x.dtype, rank)) };
        if shape.len() != rank {
            bail!("a window of {} spatial axes cannot pool a tensor of rank {}", rank - 2, shape.len());
        }
        let mut out = vec![shape[0].clone(), shape[1].clone()];
        for a in 0..rank - 2 {
            let window = x.size(2 + a).map(|size| self.axis(a, size)).transpose()?;
            out.push(window.map(|window| Dim::Size(window.output)));
        }
        Ok(TensorType { dtype: x.dtype, shape: Some(out) })
    }

    /// How windows lie along spatial axis `a` of size `input`.
    fn axis(&self, a: usize, input: usize) -> Result<Window> {
        let [kernel, stride, dilation] = [self.kernel[a], self.strides[a], self.dilations[a]];
        let padding = match &self.padding {
            Padding::Explicit(pads) => Padding::Explicit(pads.get(a).copied().into_iter().collect()),
            same => same.clone(),
        };
        let pads = padding.resolve(&[input], &[kernel], &[stride], &[dilation])?[0];
        let size = if self.ceil { output_size_ceil } else { output_size };
        let output = size(input, kernel, stride, dilation, pads)?;
        // The distance of windows is only ever needed where there are two.
        let stride = if output < 2 { 1 } else { stride };
        let extent = super::padding::window_extent(kernel, dilation)?;
        if input.max(extent).max(pads[0]).max(pads[1]) > LONGEST_AXIS {
            bail!("a window of {extent} over {input} elements and {pads:?} of padding is too large");
        }
        Ok(Window { input, output, kernel, stride, dilation, pads })
    }

    /// How windows lie in a tensor of shape `dims`, along rows and columns, and the output's shape.
    pub(crate) fn windows(&self, dims: &[usize]) -> Result<([Window; 2], Vec<usize>)> {
        let [n, c, spatial @ ..] = dims else { bail!("a tensor of shape {dims:?} has no spatial axes") };
        if spatial.len() != self.kernel.len() {
            bail!("a window of {} spatial axes cannot pool a tensor of shape {dims:?}", self.kernel.len());
        }
        let found = spatial.iter().enumerate().map(|(a, &size)| self.axis(a, size)).collect::<Result<Vec<_>>>()?;
        let shape = [*n, *c].into_iter().chain(found.iter().map(|window| window.output)).collect();
        Ok((
            match found[..] {
                // Long lines are fast ones.
                [rows, Window::POINT] => [Window::POINT, rows],
                [rows, columns] => [rows, columns],
                [columns] => [Window::POINT, columns],
                _ => bail!("a window of {} spatial axes", found.len()),
            },
            shape,
        ))
    }
}

fn require(op: &str, x: &TensorType, allowed: &[DType]) -> Result<()> {
    if allowed.contains(&x.dtype) {
        return Ok(());
    }
    bail!("{op} is not defined for {}; allowed are {allowed:?}", x.dtype)
}

impl Kernel for MaxPool {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=1, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require("MaxPool", x, &[&FLOATS[..], &[DType::Int8, DType::Uint8]].concat())?;
        let y = self.window.infer(x)?;
        let indices = TensorType { dtype: DType::Int64, shape: y.shape.clone() };
        Ok([y, indices].into_iter().take(inputs.outputs).map(Type::Tensor).collect())
    }

    fn blocked(&self, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
        pool_blocks::blocked(&self.window, Pool::Max, operands, outputs)
    }

    on_device!("pool" if |self, operands| {
        operands.dtype(0).is_some_and(|dtype| dtype.is_float() || matches!(dtype, DType::Int8 | DType::Uint8))
    });

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(x.dims())?;
        let dtype = x.dtype();
        let mut indices = (call.outputs > 1).then(|| room::<i64>(&dims)).transpose()?;
        let mut max = Max { threads: call.threads, windows, column_major: self.column_major, indices: indices.as_deref_mut() };
        let y = if dtype.is_float() {
            dispatch!("MaxPool", dtype, [f32, f64, f16, bf16], T => {
                Array::new(T::narrow(max.of(&T::widen(x.read()?), room(&dims)?)), &dims)
            })
        } else {
            dispatch!("MaxPool", dtype, [i8, u8], T => Array::new(max.of::<T>(x.read()?, room(&dims)?), &dims))
        }?;
        let indices = indices.map(|indices| Array::new(indices, &dims)).transpose()?;
        Ok([Some(y), indices].into_iter().flatten().map(Value::from).collect())
    }
}

/// How [`MaxPool`] fills its outputs.
struct Max<'a> {
    threads: &'a Threads,
    windows: [Window; 2],
    column_major: bool,
    /// The second output, where it is asked for.
    indices: Option<&'a mut [i64]>,
}

impl Max<'_> {
    fn of<T: Ordered>(&mut self, x: &[T], mut y: Vec<T>) -> Vec<T> {
        match &mut self.indices {
            None => pool::max(Isa::get(), self.threads, x, self.windows, &mut y),
            Some(indices) => {
                pool::max_with_indices(self.threads, x, self.windows, self.column_major, &mut y, indices);
            }
        }
        y
    }
}

impl Kernel for AveragePool {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        require("AveragePool", inputs.tensor(0)?, &FLOATS)?;
        Ok(vec![Type::Tensor(self.window.infer(inputs.tensor(0)?)?)])
    }

    fn blocked(&self, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
        pool_blocks::blocked(&self.window, Pool::Average(self.divisor()), operands, outputs)
    }

    on_device!("pool" if |self, operands| operands.dtype(0).is_some_and(DType::is_float));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(x.dims())?;
        let by = self.divisor();
        dispatch!("AveragePool", x.dtype(), [f32, f64, f16, bf16], T => {
            let (x, mut y) = (T::widen(x.read::<T>()?), room(&dims)?);
            pool::average(Isa::get(), call.threads, &x, windows, by, &mut y);
            Ok(vec![Array::new(T::narrow(y), &dims)?.into()])
        })
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
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        require("LpPool", inputs.tensor(0)?, &FLOATS)?;
        if self.p == 0 {
            bail!("LpPool needs an exponent of at least 1");
        }
        Ok(vec![Type::Tensor(self.window.infer(inputs.tensor(0)?)?)])
    }

    on_device!("pool" if |self, operands| operands.dtype(0).is_some_and(DType::is_float));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (windows, dims) = self.window.windows(x.dims())?;
        dispatch!("LpPool", x.dtype(), [f32, f64, f16, bf16], T => {
            let (x, mut y) = (T::widen(x.read::<T>()?), room(&dims)?);
            pool::lp(Isa::get(), call.threads, &x, windows, f64::from(self.p), &mut y);
            Ok(vec![Array::new(T::narrow(y), &dims)?.into()])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        for (window, input, output, most, mean) in cases {
            let max = MaxPool { window: window.clone(), column_major: false };
            let average = AveragePool { window, count_padding: true };
            let x = numbers(input);
            assert_eq!(floats(&run(&max, &[Some(x.clone())]).unwrap()), (output.to_vec(), most.to_vec()), "{max:?}");
            assert_eq!(floats(&run(&average, &[Some(x)]).unwrap()), (output.to_vec(), mean.to_vec()), "{average:?}");
        }
    }

    #[test]
    fn narrow_types_are_rounded_once() {
        let x = tensor(&[2048.0, 1.0, 1.0, 1.0].map(f16::from_f32), &[1, 1, 4]);
        let op = AveragePool { window: window(&[4], &[4], &[[0, 0]], false), count_padding: false };
        let y = run(&op, &[Some(x)]).unwrap();
        assert_eq!(*y.tensor().unwrap().read::<f16>().unwrap(), [f16::from_f32(513.0)]); // 2051 / 4, between 512.5 and 513
    }

    #[test]
    fn a_norm_is_of_the_exponent() {
        for (p, expected) in [(1, 7.0), (2, 5.0), (3, 91f32.cbrt())] {
            let op = LpPool { window: window(&[2], &[1], &[[0, 0]], false), p };
            let (_, y) = floats(&run(&op, &[Some(tensor(&[3f32, -4.0], &[1, 1, 2]))]).unwrap());
            assert!((y[0] - expected).abs() < 1e-6, "p = {p}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let op = |kernel: &[usize]| MaxPool { window: window(kernel, kernel, &vec![[0, 0]; kernel.len()], false), column_major: false };
        assert!(run(&op(&[2, 2, 2]), &[Some(numbers(&[1, 1, 2, 2, 2]))]).is_err());
        assert!(run(&op(&[2]), &[Some(numbers(&[1, 1, 2, 2]))]).is_err());
        assert!(run(&op(&[0]), &[Some(numbers(&[1, 1, 2]))]).is_err());
        assert!(run(&op(&[usize::MAX]), &[Some(numbers(&[1, 1, 2]))]).is_err());
        assert!(run(&op(&[2]), &[Some(tensor(&[1i64], &[1, 1, 1]))]).is_err());
    }
}
