//! Linear quantisation.

use candle_plan_kernels::buffer::{collected, filled, for_overwrite};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::quantize::{dequantize, quantize, range, Code, Scale};
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::device::on_device;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::ops::cast::{converted, format_of, widened};
use crate::types::{TensorType, Type};
use crate::value::{room, Array, Value};

/// `Y = saturate(round(X ÷ scale) + zero)`, ties to even; for small floats `Y` is the nearest to `X ÷ scale + zero`.
///
/// Inputs: `X`, of any shape; `scale` and, optionally, `zero`, of one element, of one element for each index of `axis`, or
/// of the shape of `X` with `ceil(size ÷ block)` elements along `axis`.
///
/// Source: [ONNX QuantizeLinear](https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuantizeLinear {
    /// The type of the result.
    pub to: DType,
    /// The axis of the scales; a negative one counts from the end.
    pub axis: i64,
    /// How many neighbours along `axis` share a scale; 0: the scales are not blocked.
    pub block: usize,
    /// For 8-bit floats: whether what is too large becomes the largest number.
    pub saturate: bool,
    /// The type whose precision `X ÷ scale` is rounded to.
    pub precision: DType,
}

/// `Y = (X − zero)·scale`, with `scale` and `zero` as in [`QuantizeLinear`].
///
/// Source: [ONNX DequantizeLinear](https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DequantizeLinear {
    /// The type of the result: a float.
    pub to: DType,
    /// The axis of the scales; a negative one counts from the end.
    pub axis: i64,
    /// How many neighbours along `axis` share a scale; 0: the scales are not blocked.
    pub block: usize,
}

/// `X: float32` as `Y: uint8`, with `scale: float32 []` and `zero: uint8 []` such that zero and every element is in range.
///
/// Source: [ONNX DynamicQuantizeLinear](https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DynamicQuantizeLinear {}

impl Kernel for QuantizeLinear {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, scale) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if !matches!(x.dtype, DType::Float32 | DType::Float16 | DType::Bfloat16 | DType::Int32) {
            bail!("quantises float32, float16, bfloat16 and int32, not {}", x.dtype);
        }
        if limits(self.to).is_none() && format_of(self.to).is_none() {
            bail!("cannot quantise to {}", self.to);
        }
        check_scale(scale)?;
        if let Some(zero) = inputs.optional_tensor(2)?.filter(|zero| zero.dtype != self.to) {
            bail!("the zero point is {}, the result {}", zero.dtype, self.to);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }

    on_device!("quantize" if |self, operands| self.has_kernel(operands));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = converted(call.tensor(0)?, DType::Float32, call.threads)?;
        let scales = Scales::new(x.dims(), call.tensor(1)?, call.optional_tensor(2)?, self.axis, self.block)?;
        let y = match (limits(self.to), format_of(self.to)) {
            (Some(limits), _) if self.precision == DType::Float32 => match storage(self.to) {
                DType::Int8 => scales.quantized::<i8>(&x, limits, call.threads)?,
                DType::Uint8 => scales.quantized::<u8>(&x, limits, call.threads)?,
                DType::Int16 => scales.quantized::<i16>(&x, limits, call.threads)?,
                _ => scales.quantized::<u16>(&x, limits, call.threads)?,
            },
            (Some(limits), _) => self.low_precision(&x, &scales, limits)?,
            (None, Some(format)) => {
                let divided = scales.map(&x, |x, scale, zero| self.rounded(x / scale) + zero)?;
                Array::new(collected(divided.iter().map(|&x| format.encode(x, self.saturate))), x.dims())?
            }
            _ => bail!("cannot quantise to {}", self.to),
        };
        Ok(vec![y.reinterpret(self.to)?.into()])
    }
}

impl QuantizeLinear {
    /// The quotient in the precision that was asked for.
    fn rounded(&self, x: f32) -> f32 {
        match self.precision {
            DType::Float16 => f16::from_f32(x).to_f32(),
            DType::Bfloat16 => bf16::from_f32(x).to_f32(),
            _ => x,
        }
    }

    fn low_precision(&self, x: &Array, scales: &Scales, (low, high): (i32, i32)) -> Result<Array> {
        let code = |x: f32, scale: f32, zero: f32| {
            let code = self.rounded(x / scale).round_ties_even() + zero;
            code.max(low as f32).min(high as f32)
        };
        let codes = Array::new(scales.map(x, code)?, x.dims())?;
        converted(&codes, storage(self.to), &Threads::serial())
    }
}

impl Kernel for DequantizeLinear {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if limits(x.dtype).is_none() && format_of(x.dtype).is_none() && x.dtype != DType::Int32 {
            bail!("cannot dequantise {}", x.dtype);
        }
        if !matches!(self.to, DType::Float32 | DType::Float16 | DType::Bfloat16) {
            bail!("dequantises to float32, float16 and bfloat16, not {}", self.to);
        }
        check_scale(inputs.tensor(1)?)?;
        if let Some(zero) = inputs.optional_tensor(2)?.filter(|zero| zero.dtype != x.dtype) {
            bail!("the zero point is {}, the input {}", zero.dtype, x.dtype);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }

    on_device!("quantize" if |self, operands| self.has_kernel(operands));

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = widened(call.tensor(0)?)?;
        let scales = Scales::new(x.dims(), call.tensor(1)?, call.optional_tensor(2)?, self.axis, self.block)?;
        let y = match x.dtype() {
            DType::Int8 => scales.dequantized::<i8>(&x, call.threads)?,
            DType::Uint8 => scales.dequantized::<u8>(&x, call.threads)?,
            DType::Int16 => scales.dequantized::<i16>(&x, call.threads)?,
            DType::Uint16 => scales.dequantized::<u16>(&x, call.threads)?,
            DType::Int32 => scales.dequantized::<i32>(&x, call.threads)?,
            _ => scales.map(&x, |x, scale, zero| (x - zero) * scale)?,
        };
        let y = converted(&Array::new(y, x.dims())?, self.to, call.threads)?;
        Ok(vec![y.into()])
    }
}

impl Kernel for DynamicQuantizeLinear {
    fn arity(&self) -> Arity {
        Arity::exact(1, 3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.dtype != DType::Float32 {
            bail!("quantises float32, not {}", x.dtype);
        }
        let y = TensorType { dtype: DType::Uint8, shape: x.shape.clone() };
        Ok(vec![Type::Tensor(y), Type::ranked(DType::Float32, 0), Type::ranked(DType::Uint8, 0)])
    }

    on_device!("quantize");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let elements = x.read::<f32>()?;
        let (low, high) = range(elements);
        let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
        let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even() as u8;
        let mut y = room::<u8>(x.dims())?;
        quantize(Isa::get(), elements, Scale { scale, zero: i32::from(zero), low: 0, high: 255 }, &mut y);
        Ok(vec![Array::new(y, x.dims())?.into(), Array::scalar(scale).into(), Array::scalar(zero).into()])
    }
}

/// The smallest and the largest code of an integer type that is quantised to.
pub(crate) fn limits(dtype: DType) -> Option<(i32, i32)> {
    Some(match dtype {
        DType::Int8 => (-128, 127),
        DType::Uint8 => (0, 255),
        DType::Int16 => (-32768, 32767),
        DType::Uint16 => (0, 65535),
        DType::Int4 => (-8, 7),
        DType::Uint4 => (0, 15),
        DType::Int2 => (-2, 1),
        DType::Uint2 => (0, 3),
        _ => return None,
    })
}

/// The type with arithmetic that holds a type's codes as they are stored.
pub(crate) fn storage(dtype: DType) -> DType {
    match dtype {
        DType::Int4 | DType::Int2 => DType::Int8,
        DType::Uint4 | DType::Uint2 => DType::Uint8,
        other => other,
    }
}

fn check_scale(scale: &TensorType) -> Result<()> {
    let known = matches!(scale.dtype, DType::Float32 | DType::Float16 | DType::Bfloat16 | DType::Float8E8M0Fnu);
    if !(known || scale.dtype == DType::Int32) {
        bail!("the scale must be float32, float16, bfloat16, float8_e8m0fnu or int32, not {}", scale.dtype);
    }
    Ok(())
}

/// Elements that are worth a task.
const PIECE: usize = 1 << 15;

/// Which element has which scale: `X` is seen as `[outer, size, inner]` around the axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub outer: usize,
    pub size: usize,
    pub inner: usize,
    /// How many neighbours along the axis share a scale.
    pub block: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    One,
    Axis,
    Blocked,
}

impl Spread {
    /// Of an `X` of shape `dims`, for scales and zero points of these shapes.
    ///
    /// # Errors
    /// They do not fit.
    pub fn new(dims: &[usize], scale: &[usize], zero: Option<&[usize]>, axis: i64, block: usize) -> Result<Spread> {
        let count: usize = scale.iter().product();
        let zeros = zero.map_or(count, |zero| zero.iter().product());
        if count == 0 || zeros != count {
            bail!("there are {count} scales and {zeros} zero points");
        }
        if count == 1 && block == 0 {
            let size = dims.iter().product();
            return Ok(Spread { outer: 1, size: 1, inner: size, block: 1, kind: Kind::One });
        }
        let axis = axes::resolve(axis, dims.len())?;
        let (outer, size, inner) = (dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product());
        let mut expected = dims.to_vec();
        expected[axis] = if block == 0 { size } else { size.div_ceil(block) };
        let (kind, fits) = match block {
            0 => (Kind::Axis, scale == [size]),
            _ => (Kind::Blocked, scale == expected),
        };
        if !fits {
            bail!("scales of shape {scale:?} do not fit {dims:?} along axis {axis} in blocks of {}", block.max(1));
        }
        Ok(Spread { outer, size, inner, block: block.max(1), kind })
    }

    /// Whether each element of a row has a scale of its own.
    pub fn is_blocked(&self) -> bool {
        self.kind == Kind::Blocked
    }

    /// Calls `run(start, end, first scale, whether each element has its own)` for each run of `X` in order.
    fn for_each_run(&self, mut run: impl FnMut(usize, usize, usize, bool)) {
        let blocks = self.size.div_ceil(self.block);
        for row in 0..self.outer * self.size {
            let (start, index) = (row * self.inner, row % self.size);
            let first = match self.kind {
                Kind::One => 0,
                Kind::Axis => index,
                Kind::Blocked => (row / self.size * blocks + index / self.block) * self.inner,
            };
            run(start, start + self.inner, first, self.is_blocked());
        }
    }
}

/// Scales and zero points, and which element has which.
struct Scales {
    scales: Vec<f32>,
    zeros: Vec<f32>,
    spread: Spread,
}

impl Scales {
    fn new(dims: &[usize], scale: &Array, zero: Option<&Array>, axis: i64, block: usize) -> Result<Scales> {
        let spread = Spread::new(dims, scale.dims(), zero.map(Array::dims), axis, block)?;
        let scales = numbers(scale)?;
        let zeros = zero.map(numbers).transpose()?.unwrap_or_else(|| filled(0.0, scales.len()));
        Ok(Scales { scales, zeros, spread })
    }

    fn scale(&self, index: usize, (low, high): (i32, i32)) -> Scale {
        Scale { scale: self.scales[index], zero: self.zeros[index] as i32, low, high }
    }

    fn quantized<C: Code + Element>(&self, x: &Array, limits: (i32, i32), threads: &Threads) -> Result<Array> {
        let isa = Isa::get();
        let codes = self.in_runs(x.read::<f32>()?, threads, |x: &[f32], index, out: &mut [C]| {
            quantize(isa, x, self.scale(index, limits), out);
        });
        Array::new(codes, x.dims())
    }

    fn dequantized<C: Code + Element>(&self, x: &Array, threads: &Threads) -> Result<Vec<f32>> {
        let isa = Isa::get();
        Ok(self.in_runs(x.read::<C>()?, threads, |codes: &[C], index, out: &mut [f32]| {
            dequantize(isa, codes, self.scale(index, (0, 0)), out);
        }))
    }

    /// What `convert(elements, index of their scale, results)` writes for all elements.
    fn in_runs<A: Sync, B: Element>(
        &self,
        x: &[A],
        threads: &Threads,
        convert: impl Fn(&[A], usize, &mut [B]) + Sync,
    ) -> Vec<B> {
        let mut out = for_overwrite::<B>(x.len());
        if self.spread.kind == Kind::One {
            threads.for_each_chunk(&mut out, PIECE, |i, out| convert(&x[i * PIECE..][..out.len()], 0, out));
            return out;
        }
        self.spread.for_each_run(|start, end, first, own| {
            let step = if own { 1 } else { end - start };
            for (i, at) in (start..end).step_by(step.max(1)).enumerate() {
                convert(&x[at..at + step], first + i, &mut out[at..at + step]);
            }
        });
        out
    }

    /// `f(x, scale, zero)` of each element.
    fn map(&self, x: &Array, f: impl Fn(f32, f32, f32) -> f32) -> Result<Vec<f32>> {
        let elements = x.read::<f32>()?;
        let mut out = room::<f32>(x.dims())?;
        self.spread.for_each_run(|start, end, first, own| {
            for at in start..end {
                let index = first + if own { at - start } else { 0 };
                out[at] = f(elements[at], self.scales[index], self.zeros[index]);
            }
        });
        Ok(out)
    }
}

/// A tensor's numbers as `float32`.
fn numbers(x: &Array) -> Result<Vec<f32>> {
    let numbers = converted(&widened(x)?, DType::Float32, &Threads::serial())?;
    Ok(numbers.read::<f32>()?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn linear(to: DType, axis: i64, block: usize) -> QuantizeLinear {
        QuantizeLinear { to, axis, block, saturate: true, precision: DType::Float32 }
    }

    #[test]
    fn scales_are_one_an_axis_or_a_block() {
        let x = tensor(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        let cases = [
            (linear(DType::Int8, 0, 0), tensor(&[2f32], &[]), vec![0i8, 1, 2, 2, 2, 3]),
            (linear(DType::Int8, 0, 0), tensor(&[1f32, 2.0], &[2]), vec![1, 2, 3, 2, 2, 3]),
            (linear(DType::Int8, -1, 0), tensor(&[1f32, 2.0, 4.0], &[3]), vec![1, 1, 1, 4, 2, 2]),
            (linear(DType::Int8, 1, 2), tensor(&[1f32, 2.0, 3.0, 4.0], &[2, 2]), vec![1, 2, 2, 1, 2, 2]),
        ];
        for (op, scale, expected) in cases {
            let y = run(&op, &[Some(x.clone()), Some(scale.clone())]).expect("quantises");
            assert_eq!(*y.tensor().and_then(|y| y.read::<i8>()).expect("int8"), expected, "{op:?}");
        }
        let wrong = tensor(&[1f32, 2.0], &[2]);
        assert!(run(&linear(DType::Int8, 1, 0), &[Some(x), Some(wrong)]).is_err());
    }

    #[test]
    fn blocks_come_back() {
        let codes = tensor(&[1i8, 2, 3, -4], &[1, 4]);
        let op = DequantizeLinear { to: DType::Float32, axis: 1, block: 3 };
        let y = run(&op, &[Some(codes), Some(tensor(&[0.5f32, 10.0], &[1, 2])), Some(tensor(&[1i8, 0], &[1, 2]))]);
        assert_eq!(*y.expect("dequantises").tensor().and_then(|y| y.read::<f32>()).expect("f32"), [0.0, 0.5, 1.0, -40.0]);
    }
}
