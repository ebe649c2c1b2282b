//! CPU kernels: linear quantization.

use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::quantize::{dequantize, quantize, range, Code, Scale};
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::{collected, filled};
use candle_plan_memory::uninit::Uninit;
use half::{bf16, f16};

use super::bounds::{counted, len};
use super::convert::{converted, read_as, Float};
use crate::bail;
use crate::cpu::cast::widened;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::cast::format_of;
use crate::ops::quantize::{
    limits, storage, DequantizeLinear, DynamicQuantizeLinear, Granularity, QuantizeLinear, Spread,
};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl Kernel for QuantizeLinear {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let len = len(inputs, 0)?;
        let is_single = inputs.tensor(0).ok()?.dtype == DType::Float32;
        let is_rounded_later = self.precision != DType::Float32 || limits(self.to).is_none();
        let copies = usize::from(!is_single) + usize::from(is_rounded_later);
        Some(counted::<f32>(len).saturating_mul(copies).saturating_add(scales_bytes(inputs)?))
    }

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
            _ => bail!("cannot quantize to {}", self.to),
        };
        Ok(vec![y.reinterpret(self.to)?.into()])
    }
}

impl QuantizeLinear {
    /// Rounds the quotient to the requested precision.
    fn rounded(&self, x: f32) -> f32 {
        match self.precision {
            DType::Float16 => f16::rounded(x).wide(),
            DType::Bfloat16 => bf16::rounded(x).wide(),
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
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let len = len(inputs, 0)?;
        let copies =
            usize::from(inputs.tensor(0).ok()?.dtype.is_small_float()) + usize::from(self.to != DType::Float32);
        Some(counted::<f32>(len).saturating_mul(copies).saturating_add(scales_bytes(inputs)?))
    }

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
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let elements = x.read::<f32>()?;
        let (low, high) = range(elements);
        let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
        let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even() as u8;
        let to = Scale { scale, zero: i32::from(zero), low: 0, high: 255 };
        let y = alloc_uninit::<u8>(x.dims())?.overwrite(|y| quantize(Isa::get(), elements, to, y));
        Ok(vec![Array::new(y, x.dims())?.into(), Array::scalar(scale).into(), Array::scalar(zero).into()])
    }
}

/// Elements per task.
const CHUNK: usize = 1 << 15;

impl Spread {
    /// Calls `run(start, end, first scale, whether each element has its own scale)` for each run of `X`, in order.
    fn for_each_run(&self, mut run: impl FnMut(usize, usize, usize, bool)) {
        let blocks = self.size.div_ceil(self.block);
        for row in 0..self.outer * self.size {
            let (start, index) = (row * self.inner, row % self.size);
            let first = match self.kind {
                Granularity::One => 0,
                Granularity::Axis => index,
                Granularity::Blocked => (row / self.size * blocks + index / self.block) * self.inner,
            };
            run(start, start + self.inner, first, self.is_blocked());
        }
    }
}

/// Scales and zero points, and their assignment to elements.
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

    /// Returns `f(x, scale, zero)` for each element.
    fn map(&self, x: &Array, f: impl Fn(f32, f32, f32) -> f32) -> Result<Vec<f32>> {
        let elements = x.read::<f32>()?;
        let convert = |out: &mut [f32]| {
            self.spread.for_each_run(|start, end, first, own| {
                for at in start..end {
                    let index = first + if own { at - start } else { 0 };
                    out[at] = f(elements[at], self.scales[index], self.zeros[index]);
                }
            });
        };
        Ok(alloc_uninit(x.dims())?.overwrite(convert))
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

    /// Returns the results of `convert(elements, index of their scale, results)` for all elements.
    fn in_runs<A: Sync, B: Element>(
        &self,
        x: &[A],
        threads: &Threads,
        convert: impl Fn(&[A], usize, &mut [B]) + Sync,
    ) -> Vec<B> {
        Uninit::new(x.len()).overwrite(|out| {
            if self.spread.kind == Granularity::One {
                return threads.for_each_chunk(out, CHUNK, |i, out| convert(&x[i * CHUNK..][..out.len()], 0, out));
            }
            self.spread.for_each_run(|start, end, first, own| {
                let step = if own { 1 } else { end - start };
                for (i, at) in (start..end).step_by(step.max(1)).enumerate() {
                    convert(&x[at..at + step], first + i, &mut out[at..at + step]);
                }
            });
        })
    }
}

/// The bytes of the scales and zero points as `float32`, each also in between.
fn scales_bytes(inputs: &Types) -> Option<usize> {
    Some(counted::<f32>(len(inputs, 1)?).saturating_mul(4))
}

/// Returns the numbers of a tensor as `float32`.
fn numbers(x: &Array) -> Result<Vec<f32>> {
    read_as(&widened(x)?, &Threads::serial())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn linear(to: DType, axis: i64, block: usize) -> QuantizeLinear {
        QuantizeLinear { to, axis, block, saturate: true, precision: DType::Float32 }
    }

    #[test]
    fn scales_are_per_tensor_axis_or_block() {
        let x = tensor(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        let cases = [
            (linear(DType::Int8, 0, 0), tensor(&[2f32], &[]), vec![0i8, 1, 2, 2, 2, 3]),
            (linear(DType::Int8, 0, 0), tensor(&[1f32, 2.0], &[2]), vec![1, 2, 3, 2, 2, 3]),
            (linear(DType::Int8, -1, 0), tensor(&[1f32, 2.0, 4.0], &[3]), vec![1, 1, 1, 4, 2, 2]),
            (linear(DType::Int8, 1, 2), tensor(&[1f32, 2.0, 3.0, 4.0], &[2, 2]), vec![1, 2, 2, 1, 2, 2]),
        ];
        for (op, scale, expected) in cases {
            let y = run(&op, &[Some(x.clone()), Some(scale.clone())]).expect("quantizes");
            assert_eq!(*y.tensor().and_then(|y| y.read::<i8>()).expect("int8"), expected, "{op:?}");
        }
        let wrong = tensor(&[1f32, 2.0], &[2]);
        assert!(run(&linear(DType::Int8, 1, 0), &[Some(x), Some(wrong)]).is_err());
    }

    #[test]
    fn blocks_are_dequantized() {
        let codes = tensor(&[1i8, 2, 3, -4], &[1, 4]);
        let op = DequantizeLinear { to: DType::Float32, axis: 1, block: 3 };
        let y = run(&op, &[Some(codes), Some(tensor(&[0.5f32, 10.0], &[1, 2])), Some(tensor(&[1i8, 0], &[1, 2]))]);
        assert_eq!(
            *y.expect("dequantizes").tensor().and_then(|y| y.read::<f32>()).expect("f32"),
            [0.0, 0.5, 1.0, -40.0]
        );
    }
}
