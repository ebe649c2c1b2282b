//! A fused kernel for a depthwise convolution and the following 1 × 1 convolution, on images in blocks of channels.

use std::fmt::{self, Debug, Formatter};

use candle_plan_kernels::convolution::blocked::{self, SeparableWeights, Stage};
use candle_plan_kernels::convolution::rows::Shape;
use candle_plan_kernels::convolution::PlannedPair;

use super::conv_blocks::PlannedBlocks;
use super::conv_case::{constant_weights, ConvBlocks};
use super::conv_output::{with_epilogue, ConvOutput};
use super::planned::{CpuOperands, Paired, PlannedKernel};
use crate::dtype::DType;
use crate::error::Result;
use crate::form::{Alternative, KernelForm};
use crate::kernel::{Call, Kernel};
use crate::layout::in_blocks;
use crate::ops::conv::Conv;
use crate::ops::window::{check_bias, out_dims};
use crate::types::Types;
use crate::value::{Array, Value};

/// Where the kernel computes the second convolution, as a part of its name.
const TOGETHER: &str = " while it is in the cache";

/// The two convolutions. Its inputs are the inputs of the first, then the inputs of the second without its image.
#[derive(Debug)]
struct Separable {
    first: ConvBlocks<Conv>,
    /// The second convolution. Its epilogue refers to the inputs of the fused step.
    second: ConvBlocks<Conv>,
    /// The number of inputs of the first convolution.
    inputs: usize,
    planned: PlannedPair,
}

/// Returns the fused convolutions, if they are faster than two steps.
pub(super) fn paired(first: &PlannedBlocks<Conv>, next: &PlannedBlocks<Conv>) -> Option<Paired> {
    let planned = PlannedPair::new(&first.planned, &next.planned)?;
    let (inputs, mut second) = (first.inputs, next.op.clone());
    second.conv.epilogue = second.conv.epilogue.map(|program| program.with_inputs(|i| i + inputs - 1));
    let (saving, overhead) = (planned.saving(), planned.overhead());
    let kernel = Box::new(Separable { first: first.op.clone(), second, inputs, planned });
    Some(Paired { kernel, saving, overhead })
}

impl PlannedKernel for Separable {
    fn pack(self: Box<Self>, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let weights = |i: usize| constant_weights(&operands.constants, i)?.read::<f32>();
        let weights = self.planned.pack([weights(1)?, weights(self.inputs)?]);
        let output = ConvOutput::new(self.second.conv.epilogue.as_ref(), true);
        Ok(Box::new(PackedSeparable { op: *self, weights, output }))
    }
}

/// [`Separable`] with packed weights.
struct PackedSeparable {
    op: Separable,
    weights: SeparableWeights,
    output: ConvOutput,
}

impl Debug for PackedSeparable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}

impl PackedSeparable {
    /// The names of both forms, in order.
    fn name(&self) -> String {
        let [first, second] = self.op.planned.forms();
        let between = self.op.first.conv.epilogue.as_ref();
        let between = between.map_or_else(String::new, |program| format!(" with {program}"));
        format!("{first}{between}, then {second}")
    }
}

impl Kernel for PackedSeparable {
    fn takes(&self, input: usize, _dtype: DType) -> bool {
        self.output.takes(input)
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1 || input == self.op.inputs
    }

    fn form(&self) -> KernelForm {
        let name = format!("{}{TOGETHER}", self.name());
        KernelForm::named(name).packed(self.weights.bytes()).with(self.op.second.conv.epilogue.as_ref())
    }

    /// One step and two steps, then the forms of the first convolution, and those of the second.
    fn alternatives(&self, _inputs: &Types) -> Vec<Alternative> {
        let names = [TOGETHER, ", in two steps"].map(|place| format!("{}{place}", self.name()));
        let whole = Alternative::all(names.into_iter().zip(self.op.planned.times()));
        let whole = whole.into_iter().map(|each| Alternative { in_blocks: true, ..each });
        let parts = (0..).zip(self.op.planned.parts());
        let parts = parts.flat_map(|(i, of)| of.into_iter().map(move |each| Alternative { part: Some(i), ..each }));
        whole.chain(parts).collect()
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let sizes = |i: usize| inputs.sizes(i).ok().flatten();
        let shape = self.op.first.conv.window().shape(&sizes(0)?, &sizes(1)?).ok()?;
        Some(size_of::<f32>().saturating_mul(self.weights.scratch(&shape)?))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, [first_bias, second_bias]) = (&self.op, self.op.biases());
        let [shape, next] = op.shapes(call)?;
        let between = in_blocks(&out_dims(&shape, op.first.rank), op.planned.blocking());
        let dims = in_blocks(&out_dims(&next, op.second.rank), op.planned.blocking());
        let out = self.output.write(op.second.conv.epilogue.as_ref(), call, &dims, |call, out, epilogue| {
            let second = Stage { shape: &next, bias: read(call, second_bias)?, epilogue };
            with_epilogue(op.first.conv.epilogue.as_ref(), call, &between, |epilogue| {
                let first = Stage { shape: &shape, bias: read(call, first_bias)?, epilogue };
                blocked::separable(call.threads, &self.weights, [first, second], call.read(0)?, out);
                Ok(())
            })
        })?;
        Ok(vec![out.into()])
    }
}

impl Separable {
    /// The inputs of the biases.
    fn biases(&self) -> [Option<usize>; 2] {
        [(self.inputs > 2).then_some(2), Some(self.inputs + 1)]
    }

    /// Returns the sizes of both convolutions.
    fn shapes(&self, call: &Call) -> Result<[Shape; 2]> {
        let (x, [first, second]) = (call.tensor(0)?, [call.tensor(1)?, call.tensor(self.inputs)?]);
        let shape = self.first.conv.window().shape(&self.first.input(x.dims())?, first.dims())?;
        let next = self.second.conv.window().shape(&out_dims(&shape, self.first.rank), second.dims())?;
        for (bias, shape) in self.biases().into_iter().zip([&shape, &next]) {
            check_bias(optional(call, bias)?.map(Array::dims), Some(shape.outputs))?;
        }
        Ok([shape, next])
    }
}

fn optional<'a>(call: &'a Call, input: Option<usize>) -> Result<Option<&'a Array>> {
    input.map_or(Ok(None), |input| call.optional_tensor(input))
}

fn read<'a>(call: &'a Call, input: Option<usize>) -> Result<Option<&'a [f32]>> {
    optional(call, input)?.map(Array::read::<f32>).transpose()
}
