//! GPU kernels: convolutions and transposed convolutions.

mod case;
mod constants;
mod direct;
mod form;
mod params;
mod planner;
mod product;
mod requested;
#[cfg(test)]
mod tests;
mod tiles;

use self::case::Case;
use self::form::Work;
use self::params::{ConvolutionParams, Operands, NO_LIMITS};
use self::planner::Choice;
use self::requested::Requested;
use candle_plan_descriptors::conv::Shape;
use candle_plan_descriptors::program::Program;
use candle_plan_device::Gpu;

use super::launch::{alloc_uninit, count};
use super::program::{OnGpuProgram, INPUTS};
use super::OnGpu;
use crate::bail;
use crate::dtype::FLOATS;
use crate::epilogue;
use crate::error::Result;
use crate::form::Estimate;
use crate::gpu::gpu_kernel;
use crate::kernel::{Call, Constants};
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::window::out_dims;
use crate::types::Types;
use crate::value::{element_count, Array, Value};

/// An operator that is computed by the kernels of convolutions.
trait Convolves {
    const TRANSPOSED: bool;

    /// Returns the sizes for an image, weights and a bias of these dimensions.
    ///
    /// # Errors
    /// They do not fit.
    fn sizes(&self, x: &[usize], w: &[usize], bias: Option<&[usize]>) -> Result<Shape>;
}

impl Convolves for Conv {
    const TRANSPOSED: bool = false;

    fn sizes(&self, x: &[usize], w: &[usize], bias: Option<&[usize]>) -> Result<Shape> {
        self.shape(x, w, bias)
    }
}

impl Convolves for ConvTranspose {
    const TRANSPOSED: bool = true;

    fn sizes(&self, x: &[usize], w: &[usize], bias: Option<&[usize]>) -> Result<Shape> {
        self.shape(x, w, bias)
    }
}

/// A convolution on a GPU, with its epilogue.
#[derive(Debug)]
struct Convolution<Op> {
    op: Op,
    limits: [f32; 2],
    program: Option<OnGpuProgram>,
}

impl<Op> Convolution<Op> {
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
}

gpu_kernel!(Conv: "conv" by |self, operands, gpu| self.for_gpu(operands, gpu));

impl Conv {
    /// Returns the step on a GPU, if there are kernels for it.
    ///
    /// # Errors
    /// The GPU's memory does not suffice for the epilogue.
    pub(crate) fn for_gpu(&self, operands: &Constants, gpu: &Gpu) -> Result<Option<impl OnGpu>> {
        Convolution::place(self.clone(), self.epilogue.as_ref(), operands, gpu)
    }
}

gpu_kernel!(ConvTranspose: "conv" by |self, operands, gpu| self.for_gpu(operands, gpu));

impl ConvTranspose {
    /// Returns the step on a GPU, if there are kernels for it.
    ///
    /// # Errors
    /// The GPU's memory does not suffice for the epilogue.
    pub(crate) fn for_gpu(&self, operands: &Constants, gpu: &Gpu) -> Result<Option<impl OnGpu>> {
        Convolution::place(self.clone(), self.epilogue.as_ref(), operands, gpu)
    }
}

impl<Op: Convolves + std::fmt::Debug + Send + Sync> OnGpu for Convolution<Op> {
    fn estimates(&self, inputs: &Types) -> Vec<Estimate> {
        let estimates = || {
            let x = inputs.tensor(0).ok()?;
            let shape = self.op.sizes(&x.sizes()?, &inputs.sizes(1).ok()??, None).ok()?;
            let case = Case { shape: &shape, transposed: Op::TRANSPOSED, dtype: x.dtype };
            let is_empty = element_count(&out_dims(&shape, x.rank()?)).ok()? == 0;
            let requested =
                Requested::read().and_then(|requested| requested.map(|form| form.choice(&case)).transpose());
            Some(if is_empty { Vec::new() } else { planner::estimates(&case, requested.ok()?) })
        };
        estimates().unwrap_or_default()
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let operands = Operands { x: call.tensor(0)?, w: call.tensor(1)?, bias: call.optional_tensor(2)? };
        let (x, dtype) = (operands.x, operands.x.dtype());
        let shape = self.op.sizes(x.dims(), operands.w.dims(), operands.bias.map(Array::dims))?;
        let case = Case { shape: &shape, transposed: Op::TRANSPOSED, dtype };
        let dims = out_dims(&shape, x.rank());
        let requested = Requested::read()?;
        let y = match count(element_count(&dims)?)? {
            0 => alloc_uninit(gpu, &dims, dtype)?,
            _ => {
                let choice = requested.map_or_else(|| Ok(planner::fastest(&case)), |form| form.choice(&case))?;
                convolve(gpu, case, operands, self.limits, choice)?
            }
        };
        if let Some(program) = &self.program {
            program.run(call, &y, true, None)?;
        }
        Ok(vec![y.into()])
    }
}

/// Computes a convolution or transposed convolution, clamped to limits. The operands fit the case, and the result is
/// not empty.
///
/// # Errors
/// The dtypes differ, a size is too large for kernels, or the device fails.
fn convolve(gpu: &Gpu, case: Case, operands: Operands, limits: [f32; 2], choice: Choice) -> Result<Array> {
    let Operands { x, w, bias } = operands;
    let dtype = case.dtype;
    if w.dtype() != dtype || bias.is_some_and(|bias| bias.dtype() != dtype) {
        bail!("a convolution is of operands of one dtype, found X of {dtype} and W of {}", w.dtype());
    }
    let y = alloc_uninit(gpu, &out_dims(case.shape, x.rank()), dtype)?;
    let mut params = ConvolutionParams::new(case.shape, case.transposed, operands, &y)?;
    [params.low, params.high] = limits;
    choice.form.run(Work { gpu, case, y: &y, params }, choice.parts)?;
    Ok(y)
}
