//! GPU kernels: convolutions and transposed convolutions.

mod form;
mod params;
mod requested;
#[cfg(test)]
mod tests;

use self::form::{Form, Tile};
use self::params::{ConvolutionParams, Operands, NO_LIMITS};
use self::requested::Requested;
use candle_plan_descriptors::conv::Shape;
use candle_plan_descriptors::program::Program;
use candle_plan_device::{Gemm, Gpu, Grid, Kind, Matrix, Symbol, BLOCK, MOST_BLOCKS};

use super::launch::{address, alloc_uninit, count, kind, launch};
use super::program::{OnGpuProgram, INPUTS};
use super::OnGpu;
use crate::bail;
use crate::dtype::{DType, FLOATS};
use crate::epilogue;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::{Call, Constants};
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::window::out_dims;
use crate::value::{element_count, Array, Value};

/// A convolution on a GPU, with its epilogue.
#[derive(Debug)]
struct Convolution<Op> {
    op: Op,
    limits: [f32; 2],
    program: Option<OnGpuProgram>,
}

impl<Op> Convolution<Op>
where
    Convolution<Op>: OnGpu + 'static,
{
    fn place(op: Op, program: Option<&Program>, operands: &Constants, gpu: &Gpu) -> Result<Option<Convolution<Op>>> {
        let program = program.filter(|program| !program.is_empty());
        let is_long = program.is_some_and(|program| program.inputs().any(|input| input >= INPUTS));
        if is_long || !operands.dtype(0).is_some_and(|dtype| FLOATS.contains(&dtype)) {
            return Ok(None);
        }
        let limits = epilogue::limits(program);
        let program =
            program.filter(|_| limits.is_none()).map(|program| OnGpuProgram::new(gpu, program)).transpose()?;
        Ok(Some(Convolution { op, limits: limits.unwrap_or(NO_LIMITS), program }))
    }

    fn compute(&self, gpu: &Gpu, call: &Call, shape: &Shape, transposed: bool) -> Result<Vec<Value>> {
        let operands = Operands { x: call.tensor(0)?, w: call.tensor(1)?, bias: call.optional_tensor(2)? };
        let (dims, dtype) = (out_dims(shape, operands.x.rank()), operands.x.dtype());
        let requested = Requested::read()?;
        let y = match count(element_count(&dims)?)? {
            0 => alloc_uninit(gpu, &dims, dtype)?,
            _ => {
                let form = match requested {
                    Some(requested) => requested.form(shape, transposed, dtype)?,
                    None => Form::of(shape, transposed, dtype),
                };
                convolve(gpu, shape, transposed, operands, self.limits, form)?
            }
        };
        if let Some(program) = &self.program {
            program.run(call, &y, true, None)?;
        }
        Ok(vec![y.into()])
    }
}

gpu_kernel!(Conv: "conv" by |self, operands, gpu| self.for_gpu(operands, gpu));

impl Conv {
    /// Returns the step on a GPU, if there are kernels for it.
    ///
    /// # Errors
    /// The GPU has no room for the epilogue.
    pub(crate) fn for_gpu(&self, operands: &Constants, gpu: &Gpu) -> Result<Option<impl OnGpu>> {
        Convolution::place(self.clone(), self.epilogue.as_ref(), operands, gpu)
    }
}

gpu_kernel!(ConvTranspose: "conv" by |self, operands, gpu| self.for_gpu(operands, gpu));

impl ConvTranspose {
    /// Returns the step on a GPU, if there are kernels for it.
    ///
    /// # Errors
    /// The GPU has no room for the epilogue.
    pub(crate) fn for_gpu(&self, operands: &Constants, gpu: &Gpu) -> Result<Option<impl OnGpu>> {
        Convolution::place(self.clone(), self.epilogue.as_ref(), operands, gpu)
    }
}

impl OnGpu for Convolution<Conv> {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let shape = self.op.shape(call.tensor(0)?.dims(), call.tensor(1)?.dims(), call.optional_tensor(2)?)?;
        self.compute(gpu, call, &shape, false)
    }
}

impl OnGpu for Convolution<ConvTranspose> {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let bias = call.optional_tensor(2)?.map(Array::dims);
        let shape = self.op.shape(call.tensor(0)?.dims(), call.tensor(1)?.dims(), bias)?;
        self.compute(gpu, call, &shape, true)
    }
}

/// Computes a convolution or transposed convolution, clamped to limits. The operands fit the shape, and the result is
/// not empty.
///
/// # Errors
/// The dtypes differ, a size is too large for kernels, or the device fails.
fn convolve(
    gpu: &Gpu,
    shape: &Shape,
    transposed: bool,
    operands: Operands,
    limits: [f32; 2],
    form: Form,
) -> Result<Array> {
    let Operands { x, w, bias } = operands;
    let dtype = x.dtype();
    if w.dtype() != dtype || bias.is_some_and(|bias| bias.dtype() != dtype) {
        bail!("a convolution is of operands of one dtype, found X of {dtype} and W of {}", w.dtype());
    }
    let y = alloc_uninit(gpu, &out_dims(shape, x.rank()), dtype)?;
    let mut params = ConvolutionParams::new(shape, transposed, operands, &y)?;
    [params.low, params.high] = limits;
    match form {
        Form::Product => product(gpu, &mut params, dtype)?,
        Form::Direct => {
            let windows = Form::most_windows(shape, transposed);
            let threads = count(windows)?.next_multiple_of(32).clamp(32, BLOCK);
            let blocks = [
                count(windows)?.div_ceil(threads),
                params.planes().min(MOST_BLOCKS),
                remainders(shape, transposed)?.min(MOST_BLOCKS),
            ];
            step(gpu, "conv_direct", dtype, Grid { blocks, threads }, &params)?;
        }
        Form::Tiles { tile, parts } => tiles(gpu, shape, transposed, (tile, parts), &y, &mut params)?,
    }
    Ok(y)
}

fn remainders(shape: &Shape, transposed: bool) -> Result<u32> {
    let [rows, columns] = Form::remainders(shape, transposed);
    count(rows.saturating_mul(columns))
}

fn step(gpu: &Gpu, name: &'static str, dtype: DType, grid: Grid, params: &ConvolutionParams) -> Result<()> {
    launch(gpu, Symbol { module: "conv", name, kind: kind(dtype)? }, grid, params)
}

/// Computes tiles, with the depth split into parts that are added at the end.
fn tiles(
    gpu: &Gpu,
    shape: &Shape,
    transposed: bool,
    (tile, parts): (Tile, usize),
    y: &Array,
    params: &mut ConvolutionParams,
) -> Result<()> {
    let dtype = y.dtype();
    let total = [parts, y.len()];
    let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let partial = if parts > 1 { Some(alloc_uninit(gpu, &total, wide)?) } else { None };
    params.parts = count(parts)?;
    params.partial = address(partial.as_ref())?;
    let windows = Form::most_windows(shape, transposed).saturating_mul(shape.batch);
    let pieces = (remainders(shape, transposed)? as usize).saturating_mul(shape.groups).saturating_mul(parts);
    let outputs = params.outputs.div_ceil(tile.outputs() as u32).min(MOST_BLOCKS);
    let blocks = [count(windows.div_ceil(tile.windows()))?, outputs, count(pieces)?.min(MOST_BLOCKS)];
    step(gpu, tile.name(), dtype, Grid { blocks, threads: BLOCK }, params)?;
    match partial {
        Some(_) => step(gpu, "conv_finish", dtype, Grid::over(count(y.len())?), params),
        None => Ok(()),
    }
}

/// Computes a 1 × 1 convolution with stride 1 as the product of the weights and the image, for each image or each
/// group.
fn product(gpu: &Gpu, params: &mut ConvolutionParams, dtype: DType) -> Result<()> {
    let ConvolutionParams { groups, channels: k, outputs: m, batch, .. } = *params;
    let n = (params.output[0] * params.output[1]).unsigned_abs();
    let finish = |params: &ConvolutionParams| step(gpu, "conv_finish", dtype, Grid::over(params.planes() * n), params);
    // A result that is not rounded can get the bias afterwards.
    let rounded = matches!(dtype, DType::Float16 | DType::Bfloat16) && params.bias != 0;
    if rounded {
        params.parts = 0;
        finish(params)?;
    }
    let matrix = |address, next, row| Matrix { address, next, row, transposed: 0 };
    let weights = if groups > 1 { u64::from(m) * u64::from(k) } else { 0 };
    let gemm = Gemm {
        kind: match dtype {
            DType::Float16 => Kind::F16,
            DType::Bfloat16 => Kind::Bf16,
            DType::Float64 => Kind::F64,
            _ => Kind::F32,
        },
        m,
        n,
        k,
        batch: batch * groups,
        a: matrix(params.w, weights, k),
        b: matrix(params.x, u64::from(k) * u64::from(n), n),
        c: matrix(params.y, u64::from(m) * u64::from(n), n),
        alpha: 1.0,
        beta: if rounded { 1.0 } else { 0.0 },
    };
    // SAFETY: `Form::of` chooses products only for one image or one group, whose matrices are contiguous.
    unsafe { gpu.gemm(&gemm) }?;
    if rounded || (params.bias == 0 && [params.low, params.high] == NO_LIMITS) {
        return Ok(());
    }
    (params.parts, params.partial) = (1, params.y);
    finish(params)
}
