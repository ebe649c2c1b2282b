//! Convolutions of images in blocks of channels.

use std::any::Any;

use candle_plan_kernels::blocked::{self, Epilogue, Weights};
use candle_plan_kernels::conv::Shape;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::Program;

use super::conv::Conv;
use super::separable;
use super::window::{check_bias, infer_window, out_dims};
use crate::device::on_device;
use crate::dtype::DType;
use crate::epilogue;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::kernel::{Arity, Call, Constants, Kernel, Memory, Packed, Types};
use crate::layout::{in_blocks, in_rows, type_in_blocks, Blocked, Image, Layout};
use crate::types::{TensorType, Type};
use crate::value::{room, Array, Value};
use crate::work::{product, Work};

/// How a convolution runs in blocks: of `float32` images, with constant weights.
pub(super) fn blocked(conv: &Conv, operands: &Constants, output: Option<&Type>) -> Option<Blocked> {
    let x = operands.types.first().copied().flatten()?;
    let (image, result) = (Image::of(x)?, Image::of(output?)?);
    let shape = conv.usual_shape(Some(x), operands.tensor(1)?.dims()).ok()?;
    if !Weights::fits(&shape) || shape.channels != image.channels {
        return None;
    }
    let layout = |i: usize| match i {
        0 if !Weights::take_rows(&shape) => Some(Layout::Blocks),
        0 => Some(Layout::Rows),
        1 | 2 => Some(Layout::Rows),
        _ => result.operand(operands, i),
    };
    Some(Blocked {
        kernel: Box::new(ConvBlocks { conv: conv.clone(), channels: shape.channels, rank: image.rank }),
        rank: image.rank,
        inputs: (0..operands.types.len()).map(layout).collect::<Option<Vec<_>>>()?,
        outputs: vec![Layout::Blocks],
        gain: blocked::gain(Isa::get(), &shape),
    })
}

/// [`Conv`] of images in blocks.
#[derive(Debug, Clone)]
pub(super) struct ConvBlocks {
    pub conv: Conv,
    channels: usize,
    /// The number of dimensions in rows.
    pub rank: usize,
}

impl Kernel for ConvBlocks {
    fn arity(&self) -> Arity {
        self.conv.arity()
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?.sizes().map(|dims| self.input(&dims)).transpose()?;
        let x = Type::Tensor(
            x.map_or(TensorType::ranked(DType::Float32, self.rank), |x| TensorType::sized(DType::Float32, &x)),
        );
        let inputs: Vec<Option<&Type>> = [Some(&x)].into_iter().chain(inputs.inputs[1..].iter().copied()).collect();
        let y = infer_window(&self.conv.window(), &Types { inputs: &inputs, outputs: 1 }, DType::Float32)?;
        Ok(vec![Type::Tensor(type_in_blocks(y.tensor()?))])
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let Some(w) = constants.tensor(1) else { return Ok(None) };
        let pack = if constants.memory == Memory::Low { Weights::direct } else { Weights::new };
        Ok(Some(Box::new(pack(Isa::get(), &self.usual_shape(constants)?, w.read::<f32>()?))))
    }

    fn with_next(&self, operands: &Constants, next: &dyn Kernel, of_next: &Constants) -> Option<Box<dyn Kernel>> {
        separable::together(self, operands, (next as &dyn Any).downcast_ref()?, of_next)
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        let form = Form::of(packed, |weights: &Weights| Form::named(weights.form()).packed(weights.bytes()));
        form.with(self.conv.epilogue.as_ref())
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let w = inputs.tensor(1).ok()?.sizes()?;
        let y = in_rows(&outputs.first()?.tensor().ok()?.sizes()?, *w.first()?).ok()?;
        Work::multiplying(inputs, outputs, Some(product(&y).saturating_mul(product(w.get(1..)?))))
    }

    on_device!(NoKernel);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let weights = call.packed::<Weights>().ok_or_else(|| Error::op("the weights are not packed"))?;
        let shape = self.conv.window().shape(&self.input(x.dims())?, w.dims())?;
        check_bias(bias.map(Array::dims), shape.outputs)?;
        let dims = in_blocks(&out_dims(&shape, self.rank));
        let mut out = room(&dims)?;
        let (x, bias) = (x.read::<f32>()?, bias.map(Array::read::<f32>).transpose()?);
        with_epilogue(self.conv.epilogue.as_ref(), call, &dims, |epilogue| {
            weights.conv(call.threads, &shape, bias, x, &mut out, epilogue);
            Ok(())
        })?;
        Ok(vec![Array::new(out, &dims)?.into()])
    }
}

impl ConvBlocks {
    /// The sizes that the weights are packed for.
    pub fn usual_shape(&self, operands: &Constants) -> Result<Shape> {
        let w = operands.tensor(1).ok_or_else(|| Error::op("the weights are not constant"))?;
        self.conv.usual_shape(operands.types.first().copied().flatten(), w.dims())
    }

    /// The dimensions of the input in rows, which it may be in.
    pub fn input(&self, dims: &[usize]) -> Result<Vec<usize>> {
        if dims.len() == self.rank {
            Ok(dims.to_vec())
        } else {
            in_rows(dims, self.channels)
        }
    }
}

/// Calls `compute` with what becomes of a result of shape `result` by a program.
///
/// # Errors
/// As [`epilogue::with`].
pub(super) fn with_epilogue<R>(
    program: Option<&Program>,
    call: &Call,
    result: &[usize],
    compute: impl FnOnce(Epilogue) -> Result<R>,
) -> Result<R> {
    let limits = epilogue::limits(program);
    epilogue::with(program.filter(|_| limits.is_none()), call, result, |finish| {
        compute(Epilogue { limits: limits.unwrap_or(Epilogue::NO_LIMITS), finish })
    })
}
