//! Plain and transposed convolutions of images in rows: their common parts.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::convolution::rows::Shape;
use candle_plan_kernels::convolution::{self, ConvOperands, ConvWeights, ImageLayout, PlannedConv};
use candle_plan_kernels::isa::Isa;

use super::conv_case::{constant_weights, Convolution};
use super::conv_output::with_epilogue;
use super::convert::{converted, read_f32, widened_bytes};
use super::packed::Packed;
use super::planned::{CpuOperands, PlannedKernel};
use crate::dtype::DType;
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel, Memory};
use crate::ops::window::{check_bias, out_dims};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

/// Returns the kernel of a convolution. It packs the weights, if they are constant.
///
/// # Errors
/// They do not fit.
pub(super) fn kernel<C: Convolution>(op: &C, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
    let w = operands.constants.tensor(1).filter(|w| w.dtype() != DType::Float64);
    let pack = |w: &Array| -> Result<ConvWeights> {
        Ok(ConvWeights::new(&op.case(operands, w.dims())?, ImageLayout::Rows, &read_f32(w)?))
    };
    Ok(Packed::boxed(op, w.map(pack).transpose()?))
}

impl<C: Convolution> Kernel for Packed<C, Option<ConvWeights>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input == 1
    }

    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), form).with(self.op.epilogue())
    }

    fn alternatives(&self, inputs: &Types) -> Vec<Alternative> {
        match &self.packed {
            Some(packed) => packed.alternatives(),
            None => alternatives(&self.op, inputs).unwrap_or_default(),
        }
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let widened = widened_bytes(&self.op, inputs, |i| i == 1)?;
        Some(widened.saturating_add(scratch(&self.op, self.packed.as_ref()?, inputs)?))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![run(&self.op, self.packed.as_ref(), call)?.into()])
    }
}

/// A convolution of images in rows with its form, chosen but not packed.
#[derive(Debug)]
pub(crate) struct PlannedRows<C> {
    pub conv: C,
    pub planned: PlannedConv,
}

impl<C: Convolution> PlannedKernel for PlannedRows<C> {
    fn pack(self: Box<Self>, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let w = read_f32(constant_weights(&operands.constants, 1)?)?;
        Ok(Packed::boxed(&self.conv, Some(self.planned.pack(ImageLayout::Rows, &w))))
    }
}

/// The chosen form and the size of the weights.
pub(super) fn form(weights: &ConvWeights) -> KernelForm {
    KernelForm::named(weights.form()).packed(weights.bytes())
}

/// The forms that the planner compares in every run if the weights are not constant. Then, the image and the result are in
/// rows. `None` if the sizes of the weights are unknown, or if the convolution is not computed in `f32`.
fn alternatives<C: Convolution>(op: &C, inputs: &Types) -> Option<Vec<Alternative>> {
    let w = inputs.tensor(1).ok().filter(|w| w.dtype != DType::Float64)?.sizes()?;
    let shape = op.typical_shape(inputs.optional(0), &w).ok()?;
    let case = C::case_of(Blocking::largest(Isa::get()), &shape, Memory::Full);
    Some(convolution::alternatives_in_rows(&case))
}

/// The bytes of temporary memory for inputs of these types, besides widened inputs. The types are those in rows.
pub(super) fn scratch<C: Convolution>(op: &C, weights: &ConvWeights, inputs: &Types) -> Option<usize> {
    let shape = op.sizes(&inputs.tensor(0).ok()?.sizes()?, &inputs.tensor(1).ok()?.sizes()?).ok()?;
    Some(size_of::<f32>().saturating_mul(weights.scratch(&shape)?))
}

/// Convolves an image.
///
/// # Errors
/// The inputs do not fit.
fn run<C: Convolution>(op: &C, packed: Option<&ConvWeights>, call: &Call) -> Result<Array> {
    let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
    let shape = op.sizes(x.dims(), w.dims())?;
    check_bias(bias.map(Array::dims), Some(shape.outputs))?;
    match x.dtype() {
        DType::Float32 => run_f32(op, packed, call, &shape, [x, w], bias),
        DType::Float64 => run_f64::<C>(call, &shape, [x, w], bias),
        dtype => {
            let widened = |array| converted(array, DType::Float32, call.threads);
            let bias = bias.map(widened).transpose()?;
            let y = run_f32(op, packed, call, &shape, [&widened(x)?, w], bias.as_ref())?;
            converted(&y, dtype, call.threads)
        }
    }
}

/// Convolves a `float32` image. Weights that are not packed may also be 16-bit floats.
fn run_f32<C: Convolution>(
    op: &C,
    packed: Option<&ConvWeights>,
    call: &Call,
    shape: &Shape,
    [x, w]: [&Array; 2],
    bias: Option<&Array>,
) -> Result<Array> {
    let packed_here;
    let weights = match packed {
        Some(packed) => packed,
        None => {
            let case = C::case_of(Blocking::largest(Isa::get()), shape, Memory::Full);
            packed_here = ConvWeights::new(&case, ImageLayout::Rows, &read_f32(w)?);
            &packed_here
        }
    };
    let dims = out_dims(shape, x.rank());
    let out = alloc_uninit(&dims)?;
    let (x, bias) = (x.read::<f32>()?, bias.map(Array::read::<f32>).transpose()?);
    let out = with_epilogue(op.epilogue(), call, &dims, |epilogue| {
        Ok(out.overwrite(|out| weights.run(call.threads, ConvOperands { shape, bias, x, out, epilogue })))
    })?;
    Array::new(out, &dims)
}

fn run_f64<C: Convolution>(call: &Call, shape: &Shape, [x, w]: [&Array; 2], bias: Option<&Array>) -> Result<Array> {
    let dims = out_dims(shape, x.rank());
    let out = alloc_uninit(&dims)?;
    let (x, w, bias) = (x.read::<f64>()?, w.read::<f64>()?, bias.map(Array::read::<f64>).transpose()?);
    Array::new(out.overwrite(|out| C::plain(call.threads, shape, w, bias, x, out)), &dims)
}
