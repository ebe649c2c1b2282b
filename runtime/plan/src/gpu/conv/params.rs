//! The parameters of the convolution kernels.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::conv::Shape;
use num_integer::gcd;

use crate::bail;
use crate::error::{Error, Result};
use crate::gpu::launch::{address, count, Params};
use crate::value::Array;

/// The shape comes from the operands' dimensions, and the result's dimensions come from the shape.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Convolution in "convolution.cuh")]
pub(super) struct ConvolutionParams {
    pub x: u64,
    pub w: u64,
    pub bias: u64,
    pub y: u64,
    pub partial: u64,
    pub batch: u32,
    pub groups: u32,
    pub channels: u32,
    pub outputs: u32,
    pub parts: u32,
    pub transposed: u32,
    pub input: [i32; 2],
    pub output: [i32; 2],
    pub kernel: [i32; 2],
    pub stride: [i32; 2],
    pub dilation: [i32; 2],
    pub before: [i32; 2],
    pub apart: [i32; 2],
    pub low: f32,
    pub high: f32,
}

/// The operands of a convolution on a GPU. `bias` may be absent.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub x: &'a Array,
    pub w: &'a Array,
    pub bias: Option<&'a Array>,
}

/// Limits that have no effect.
pub(super) const NO_LIMITS: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

impl ConvolutionParams {
    /// Makes the parameters for operands and a result of the shape, in one part and without limits.
    ///
    /// # Errors
    /// A size is too large for kernels.
    pub fn new(shape: &Shape, transposed: bool, operands: Operands, y: &Array) -> Result<ConvolutionParams> {
        let Operands { x, w, bias } = operands;
        let by_axis = |of: &dyn Fn(usize) -> Result<i32>| Ok::<_, Error>([of(0)?, of(1)?]);
        for size in [x.len(), w.len(), y.len()] {
            count(size)?;
        }
        // The step between taps is unused with one tap, and the step between windows with one window.
        let dilation = |a: usize| if shape.kernel[a] < 2 { 1 } else { shape.dilations[a] };
        let stride = |a: usize| if !transposed && shape.output[a] < 2 { 1 } else { shape.strides[a] };
        let apart = |a: usize| if transposed { stride(a) / gcd(stride(a), dilation(a)) } else { 1 };
        let before = |a: usize| usize::try_from(shape.before[a]).map_or_else(|_| small(usize::MAX), small);
        for a in 0..2 {
            let sides = [shape.input[a], shape.output[a]].map(|size| size.saturating_mul(stride(a)));
            small(sides[usize::from(!transposed)].saturating_add(shape.kernel[a].saturating_mul(dilation(a))))?;
        }
        let [low, high] = NO_LIMITS;
        Ok(ConvolutionParams {
            x: x.address()?,
            w: w.address()?,
            bias: address(bias)?,
            y: y.address()?,
            partial: 0,
            batch: count(shape.batch)?,
            groups: count(shape.groups)?,
            channels: count(shape.channels / shape.groups)?,
            outputs: count(shape.outputs / shape.groups)?,
            parts: 1,
            transposed: transposed.into(),
            input: by_axis(&|a| small(shape.input[a]))?,
            output: by_axis(&|a| small(shape.output[a]))?,
            kernel: by_axis(&|a| small(shape.kernel[a]))?,
            stride: by_axis(&|a| small(stride(a)))?,
            dilation: by_axis(&|a| small(dilation(a)))?,
            before: by_axis(&before)?,
            apart: by_axis(&|a| small(apart(a)))?,
            low,
            high,
        })
    }

    /// Returns the number of planes of the result.
    pub fn planes(&self) -> u32 {
        self.batch * self.groups * self.outputs
    }
}

/// Converts a size along an axis. Kernels add two of them.
fn small(size: usize) -> Result<i32> {
    match i32::try_from(size) {
        Ok(size) if size < 1 << 30 => Ok(size),
        _ => bail!("kernels of the device slide windows over fewer than 2³⁰ elements, found {size}"),
    }
}
