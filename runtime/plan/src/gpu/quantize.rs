//! GPU kernels: linear quantization.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Mirror, Symbol, BLOCK};

use super::launch::{address, alloc_uninit, count, kind, launch, Params};
use super::{numbers, OnGpu};
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::{Call, Constants};
use crate::ops::quantize::{limits, storage, DequantizeLinear, DynamicQuantizeLinear, QuantizeLinear, Spread};
use crate::value::{Array, Value};

/// Which scale belongs to an element.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Spread in "quantize.cu")]
struct SpreadParams {
    inner: u32,
    size: u32,
    block: u32,
    blocks: u32,
    blocked: u32,
}

/// X and Y have `count` elements, and `Spread::new` checks the numbers of scales and zero points.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Quantize in "quantize.cu")]
struct QuantizeParams {
    x: u64,
    scale: u64,
    zero: u64,
    y: u64,
    count: u32,
    number: u32,
    scale_number: u32,
    precision: u32,
    low: i32,
    high: i32,
    spread: SpreadParams,
    padding: u32,
}

/// X and Y have `count` elements, and `Spread::new` checks the numbers of scales and zero points.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Dequantize in "quantize.cu")]
struct DequantizeParams {
    x: u64,
    scale: u64,
    zero: u64,
    y: u64,
    count: u32,
    scale_number: u32,
    number: u32,
    spread: SpreadParams,
}

/// X has `count` elements, `ends` has two per block, and the others have one.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Range in "quantize.cu")]
struct RangeParams {
    x: u64,
    ends: u64,
    scale: u64,
    zero: u64,
    count: u32,
    blocks: u32,
}

/// Returns the number of a floating-point type, as in `quantize.cu`.
fn number(dtype: DType) -> Result<u32> {
    match dtype {
        DType::Float32 | DType::Float16 | DType::Bfloat16 | DType::Int32 => numbers::number(dtype),
        other => bail!("the device does not quantize with {other}"),
    }
}

impl SpreadParams {
    fn new(spread: &Spread) -> Result<SpreadParams> {
        let blocks = spread.size.div_ceil(spread.block);
        let [inner, size, blocks] = [spread.inner, spread.size, blocks].map(count);
        // A block may be longer than the axis.
        let block = count(spread.block.min(spread.size.max(1)))?;
        Ok(SpreadParams { inner: inner?, size: size?, block, blocks: blocks?, blocked: spread.is_blocked().into() })
    }
}

gpu_kernel!(QuantizeLinear: "quantize" if |self, operands| self.has_kernel(operands));

impl QuantizeLinear {
    /// Whether there are kernels for the types.
    pub(crate) fn has_kernel(&self, operands: &Constants) -> bool {
        let known = |i: usize| operands.dtype(i).is_some_and(|dtype| number(dtype).is_ok());
        let precise = matches!(self.precision, DType::Float32 | DType::Float16 | DType::Bfloat16);
        known(0) && known(1) && precise && limits(self.to).is_some()
    }
}

impl OnGpu for QuantizeLinear {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, scale, zero) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let spread = Spread::new(x.dims(), scale.dims(), zero.map(Array::dims), self.axis, self.block)?;
        let Some((low, high)) = limits(self.to) else { bail!("the device does not quantize to {}", self.to) };
        let y = alloc_uninit(gpu, x.dims(), self.to)?;
        let params = QuantizeParams {
            x: x.address()?,
            scale: scale.address()?,
            zero: address(zero)?,
            y: y.address()?,
            count: count(x.len())?,
            number: number(x.dtype())?,
            scale_number: number(scale.dtype())?,
            precision: number(self.precision)?,
            low,
            high,
            spread: SpreadParams::new(&spread)?,
            padding: 0,
        };
        let symbol = Symbol { module: "quantize", name: "quantize", kind: kind(storage(self.to))? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(DequantizeLinear: "quantize" if |self, operands| self.has_kernel(operands));

impl DequantizeLinear {
    /// Whether there are kernels for the types.
    pub(crate) fn has_kernel(&self, operands: &Constants) -> bool {
        let is_code = |dtype: DType| limits(dtype).is_some() || dtype == DType::Int32;
        let has_scale = operands.dtype(1).is_some_and(|dtype| number(dtype).is_ok());
        operands.dtype(0).is_some_and(is_code) && has_scale
    }
}

impl OnGpu for DequantizeLinear {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, scale, zero) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let spread = Spread::new(x.dims(), scale.dims(), zero.map(Array::dims), self.axis, self.block)?;
        let y = alloc_uninit(gpu, x.dims(), self.to)?;
        let params = DequantizeParams {
            x: x.address()?,
            scale: scale.address()?,
            zero: address(zero)?,
            y: y.address()?,
            count: count(x.len())?,
            scale_number: number(scale.dtype())?,
            number: number(self.to)?,
            spread: SpreadParams::new(&spread)?,
        };
        let symbol = Symbol { module: "quantize", name: "dequantize", kind: kind(storage(x.dtype()))? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok(vec![y.into()])
    }
}

gpu_kernel!(DynamicQuantizeLinear: "quantize");

impl OnGpu for DynamicQuantizeLinear {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        /// The number of blocks that keeps a GPU busy.
        const MAX_BLOCKS: u32 = 1024;
        let x = call.tensor(0)?;
        let (elements, y) = (count(x.len())?, alloc_uninit(gpu, x.dims(), DType::Uint8)?);
        let (scale, zero) = (alloc_uninit(gpu, &[], DType::Float32)?, alloc_uninit(gpu, &[], DType::Uint8)?);
        let blocks = elements.div_ceil(BLOCK).min(MAX_BLOCKS);
        let ends = alloc_uninit(gpu, &[blocks as usize, 2], DType::Float32)?;
        let range = RangeParams {
            x: x.address()?,
            ends: ends.address()?,
            scale: scale.address()?,
            zero: zero.address()?,
            count: elements,
            blocks,
        };
        let symbol = |name, kind| Symbol { module: "quantize", name, kind };
        launch(gpu, symbol("range", ""), Grid::blocks(blocks), &range)?;
        launch(gpu, symbol("range_scale", ""), Grid::blocks(1), &range)?;
        let spread = Spread::new(x.dims(), scale.dims(), None, 0, 0)?;
        let params = QuantizeParams {
            x: range.x,
            scale: range.scale,
            zero: range.zero,
            y: y.address()?,
            count: elements,
            high: 255,
            spread: SpreadParams::new(&spread)?,
            ..QuantizeParams::zeroed()
        };
        launch(gpu, symbol("quantize", "u8"), Grid::over(elements), &params)?;
        Ok(vec![y.into(), scale.into(), zero.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    /// Numbers around the midpoints between codes, beyond all codes, and NaN.
    fn numbers(count: usize) -> Vec<f32> {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -0.0, 0.5, 1.5, -2.5];
        (0..count).map(|i| special.get(i % 37).copied().unwrap_or((i as f32 - 300.0) * 0.37)).collect()
    }

    #[test]
    fn codes_match_the_cpu() {
        let x = tensor(&numbers(600), &[4, 5, 30]);
        let halves = tensor(&numbers(600).into_iter().map(f16::from_f32).collect::<Vec<_>>(), &[4, 5, 30]);
        let brains = tensor(&numbers(600).into_iter().map(bf16::from_f32).collect::<Vec<_>>(), &[4, 5, 30]);
        let whole = tensor(&(0..600).map(|i| (i - 300) * 11_111).collect::<Vec<i32>>(), &[4, 5, 30]);
        let scales = |dims: &[usize]| {
            let count = dims.iter().product();
            tensor(&(0..count).map(|i| 0.1 + i as f32 * 0.3).collect::<Vec<_>>(), dims)
        };
        let layouts: [(&[usize], i64, usize); 5] =
            [(&[], 0, 0), (&[5], 1, 0), (&[30], -1, 0), (&[4, 3, 30], 1, 2), (&[4, 5, 1], 2, 99)];
        for to in [DType::Int8, DType::Uint8, DType::Int16, DType::Uint16, DType::Int4, DType::Uint4, DType::Uint2] {
            for (dims, axis, block) in layouts {
                for precision in [DType::Float32, DType::Float16, DType::Bfloat16] {
                    let op = QuantizeLinear { to, axis, block, saturate: true, precision };
                    for x in [&x, &halves, &brains, &whole] {
                        run(&op, &[Some(x.clone()), Some(scales(dims))]).expect("quantizes");
                    }
                }
            }
        }
    }

    #[test]
    fn zero_points_shift_codes_and_are_removed() {
        let x = tensor(&numbers(600), &[20, 30]);
        let scale = tensor(&(0..30).map(|i| f16::from_f32(0.2 + i as f32)).collect::<Vec<_>>(), &[30]);
        let signed = tensor(&(0..30).map(|i: i32| (i * 7 - 100) as i8).collect::<Vec<i8>>(), &[30]);
        let wide = tensor(&(0..30).map(|i| i * 2000).collect::<Vec<u16>>(), &[30]);
        for (to, zero) in [(DType::Int8, signed), (DType::Uint16, wide)] {
            let op = QuantizeLinear { to, axis: 1, block: 0, saturate: true, precision: DType::Float32 };
            let codes = run(&op, &[Some(x.clone()), Some(scale.clone()), Some(zero.clone())]).expect("quantizes");
            for to in [DType::Float32, DType::Float16, DType::Bfloat16] {
                let back = DequantizeLinear { to, axis: 1, block: 0 };
                run(&back, &[Some(codes.clone()), Some(scale.clone()), Some(zero.clone())]).expect("dequantizes");
            }
        }
        let sums = tensor(&[i32::MAX, i32::MIN, 7, -7], &[4]);
        let zero = tensor(&[i32::MAX], &[1]);
        let back = DequantizeLinear { to: DType::Float32, axis: 0, block: 0 };
        run(&back, &[Some(sums), Some(tensor(&[0.5f32], &[1])), Some(zero)]).expect("dequantizes");
    }

    #[test]
    fn ranges_cover_all_elements() {
        let finite = |count: usize| (0..count).map(|i| (i as f32 * 0.7).sin() * 9.0 + 3.0).collect::<Vec<_>>();
        let cases = [vec![], vec![0.0; 3], vec![-5.0], finite(1), finite(257), finite(3000), numbers(500)];
        for x in cases {
            run_outputs(&DynamicQuantizeLinear {}, &[Some(tensor(&x, &[x.len()]))], 3).expect("quantizes");
        }
    }
}
