//! Plain and transposed convolutions of images in blocks of channels.

use std::fmt::{self, Debug, Formatter};

use candle_plan_kernels::convolution::{ConvOperands, ConvWeights, ImageLayout, PlannedConv};

use super::blocks::{operand, Blocked};
use super::conv_case::{constant_weights, ConvBlocks, Convolution};
use super::conv_output::ConvOutput;
use super::conv_rows::{self, PlannedRows};
use super::planned::{CpuOperands, PlannedKernel};
use crate::dtype::DType;
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::layout::{in_blocks, Image, Layout};
use crate::ops::window::{check_bias, out_dims};
use crate::types::{Type, Types};
use crate::value::{Array, Value};

/// Returns how a convolution of `float32` images with constant weights runs on blocks.
pub(super) fn blocked<C: Convolution>(
    conv: &C,
    operands: &CpuOperands,
    output: Option<&Type>,
) -> Option<(PlannedBlocks<C>, Blocked)> {
    let constants = &operands.constants;
    let x = constants.types.first().copied().flatten()?;
    let (image, result) = (Image::of(x)?, Image::of(output?)?);
    let case = conv.case(operands, constants.tensor(1)?.dims()).ok()?;
    let others = (3..constants.types.len()).map(|i| operand(&result, constants, i)).collect::<Option<Vec<_>>>()?;
    let planned = PlannedConv::new(&case)?;
    let read = match planned.image_for_blocks() {
        ImageLayout::Rows => Layout::Rows,
        ImageLayout::Blocks => Layout::Blocks,
    };
    let first = [read, Layout::Rows, Layout::Rows].into_iter().take(constants.types.len());
    let blocked = Blocked {
        rank: image.rank,
        inputs: first.chain(others).collect(),
        outputs: vec![Layout::Blocks],
        times: planned.times(),
    };
    let op = ConvBlocks { conv: conv.clone(), channels: image.channels, rank: image.rank };
    Some((PlannedBlocks { op, planned, inputs: constants.types.len() }, blocked))
}

/// [`ConvBlocks`] with its forms, chosen but not packed.
#[derive(Debug)]
pub(crate) struct PlannedBlocks<C> {
    pub op: ConvBlocks<C>,
    /// The forms for results in rows and in blocks.
    pub planned: PlannedConv,
    /// The number of inputs of the step.
    pub inputs: usize,
}

impl<C: Convolution> PlannedBlocks<C> {
    /// Returns the kernel of the same step for images in rows.
    pub fn in_rows(self) -> PlannedRows<C> {
        PlannedRows { conv: self.op.conv, planned: self.planned }
    }
}

impl<C: Convolution> PlannedKernel for PlannedBlocks<C> {
    fn pack(self: Box<Self>, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let weights = self.planned.pack(ImageLayout::Blocks, constant_weights(&operands.constants, 1)?.read::<f32>()?);
        let output = ConvOutput::new(self.op.conv.epilogue(), weights.adds_residual());
        Ok(Box::new(PackedConvBlocks { op: self.op, weights, output }))
    }
}

/// [`ConvBlocks`] with packed weights.
struct PackedConvBlocks<C> {
    op: ConvBlocks<C>,
    weights: ConvWeights,
    output: ConvOutput,
}

impl<C: Convolution> Debug for PackedConvBlocks<C> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}

impl<C: Convolution> Kernel for PackedConvBlocks<C> {
    fn takes(&self, input: usize, _dtype: DType) -> bool {
        self.output.takes(input)
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self) -> KernelForm {
        conv_rows::form(&self.weights).with(self.op.conv.epilogue())
    }

    fn alternatives(&self, _inputs: &Types) -> Vec<Alternative> {
        self.weights.alternatives()
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        conv_rows::scratch(&self.op.conv, &self.weights, inputs)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let shape = self.op.conv.sizes(&self.op.input(x.dims())?, w.dims())?;
        check_bias(bias.map(Array::dims), Some(shape.outputs))?;
        let dims = in_blocks(&out_dims(&shape, self.op.rank), self.weights.blocking());
        let out = self.output.write(self.op.conv.epilogue(), call, &dims, |call, out, epilogue| {
            let (x, bias) = (call.read(0)?, call.optional_tensor(2)?.map(Array::read::<f32>).transpose()?);
            self.weights.run(call.threads, ConvOperands { shape: &shape, bias, x, out, epilogue });
            Ok(())
        })?;
        Ok(vec![out.into()])
    }
}
