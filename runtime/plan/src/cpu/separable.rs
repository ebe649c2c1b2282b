//! A fused kernel for a depthwise convolution and the following 1 × 1 convolution, on images in blocks of channels.

use std::fmt::{self, Debug, Formatter};

use candle_plan_kernels::blocked::{self, SeparableWeights, Stage};
use candle_plan_kernels::conv::Shape;
use candle_plan_kernels::isa::Isa;

use super::conv_blocks::{with_epilogue, ConvBlocks};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::kernel::{Call, Constants, Kernel};
use crate::layout::in_blocks;
use crate::ops::window::{check_bias, out_dims};
use crate::value::{alloc_uninit, Array, Value};

/// The two convolutions. The inputs are those of the first, then those of the second without its image.
#[derive(Debug, Clone)]
pub(crate) struct Separable {
    first: ConvBlocks,
    /// The second convolution. Its epilogue refers to the inputs of the fused step.
    second: ConvBlocks,
    /// The number of inputs of the first convolution.
    inputs: usize,
    /// The sizes for which the weights are packed.
    typical: [Shape; 2],
}

impl Separable {
    /// Returns the fused convolutions, if they are faster than two steps.
    pub fn of(first: &ConvBlocks, operands: &Constants, second: &ConvBlocks, next: &Constants) -> Option<Separable> {
        let typical = [first.typical_shape(operands).ok()?, second.typical_shape(next).ok()?];
        if !blocked::is_separable(&typical[0], &typical[1]) {
            return None;
        }
        let (inputs, mut second) = (operands.types.len(), second.clone());
        second.conv.epilogue = second.conv.epilogue.map(|program| program.with_inputs(|i| i + inputs - 1));
        Some(Separable { first: first.clone(), second, inputs, typical })
    }

    /// Packs the weights into a kernel.
    ///
    /// # Errors
    /// The weights are not constant.
    pub fn pack(self, operands: &Constants) -> Result<Box<dyn Kernel>> {
        let weights = |i: usize| match operands.tensor(i) {
            Some(w) => w.read::<f32>(),
            None => Err(Error::op("the weights are not constant")),
        };
        let weights = SeparableWeights::new(Isa::get(), self.typical.each_ref(), [weights(1)?, weights(self.inputs)?]);
        Ok(Box::new(PackedSeparable { op: self, weights }))
    }
}

/// [`Separable`] with packed weights.
struct PackedSeparable {
    op: Separable,
    weights: SeparableWeights,
}

impl Debug for PackedSeparable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}

impl Kernel for PackedSeparable {
    fn is_replaced(&self, input: usize) -> bool {
        input == 1 || input == self.op.inputs
    }

    fn form(&self) -> Form {
        let (op, [first, second]) = (&self.op, self.weights.forms());
        let between = op.first.conv.epilogue.as_ref().map_or_else(String::new, |program| format!(" with {program}"));
        let name = format!("{first}{between}, then {second} while it is in the cache");
        Form::named(name).packed(self.weights.bytes()).with(op.second.conv.epilogue.as_ref())
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, second) = (call.tensor(0)?, self.op.inputs);
        let first_bias = if second > 2 { call.optional_tensor(2)? } else { None };
        let bias = [first_bias, call.optional_tensor(second + 1)?];
        let [first_w, second_w] = [call.tensor(1)?, call.tensor(second)?];
        let shape = self.op.first.conv.window().shape(&self.op.first.input(x.dims())?, first_w.dims())?;
        let between = out_dims(&shape, self.op.first.rank);
        let next = self.op.second.conv.window().shape(&between, second_w.dims())?;
        for (bias, shape) in bias.iter().zip([&shape, &next]) {
            check_bias(bias.map(Array::dims), Some(shape.outputs))?;
        }
        let (between, dims) = (in_blocks(&between), in_blocks(&out_dims(&next, self.op.second.rank)));
        let mut out = alloc_uninit(&dims)?;
        let x = x.read::<f32>()?;
        let [first_bias, second_bias] = bias.map(|bias| bias.map(Array::read::<f32>).transpose());
        let (first_bias, second_bias) = (first_bias?, second_bias?);
        with_epilogue(self.op.first.conv.epilogue.as_ref(), call, &between, |epilogue| {
            let first = Stage { shape: &shape, bias: first_bias, epilogue };
            with_epilogue(self.op.second.conv.epilogue.as_ref(), call, &dims, |epilogue| {
                let second = Stage { shape: &next, bias: second_bias, epilogue };
                blocked::separable(call.threads, &self.weights, [first, second], x, &mut out);
                Ok(())
            })
        })?;
        Ok(vec![Array::new(out, &dims)?.into()])
    }
}
