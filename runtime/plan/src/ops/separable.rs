//! A depthwise convolution with the 1 × 1 convolution after it, on images in blocks of channels.

use candle_plan_kernels::blocked::{self, Stage, Weights};
use candle_plan_kernels::conv::Shape;
use candle_plan_kernels::isa::Isa;

use super::conv_blocks::{with_epilogue, ConvBlocks};
use super::window::{check_bias, out_dims};
use crate::device::on_device;
use crate::error::{Error, Result};
use crate::form::Form;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::layout::in_blocks;
use crate::types::Type;
use crate::value::{room, Array, Value};
use crate::work::Work;

/// The two, if that takes less time than one after the other.
pub(super) fn together(
    first: &ConvBlocks,
    operands: &Constants,
    second: &ConvBlocks,
    next: &Constants,
) -> Option<Box<dyn Kernel>> {
    let usual = [first.usual_shape(operands).ok()?, second.usual_shape(next).ok()?];
    if !blocked::is_separable(&usual[0], &usual[1]) {
        return None;
    }
    let (inputs, mut second) = (operands.types.len(), second.clone());
    second.conv.epilogue = second.conv.epilogue.map(|program| program.with_inputs(|i| i + inputs - 1));
    Some(Box::new(Separable { first: first.clone(), second, inputs, usual }))
}

/// The inputs of the first convolution, then those of the second without its image.
#[derive(Debug, Clone)]
struct Separable {
    first: ConvBlocks,
    /// Its epilogue names this op's inputs.
    second: ConvBlocks,
    /// Those of the first.
    inputs: usize,
    /// The sizes that the weights are packed for.
    usual: [Shape; 2],
}

impl Kernel for Separable {
    fn arity(&self) -> Arity {
        Arity::inputs(self.inputs + 1..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (first, second) = inputs.inputs.split_at(self.inputs.min(inputs.len()));
        let between = self.first.infer(&Types { inputs: first, outputs: 1 })?;
        let second: Vec<Option<&Type>> = between.iter().map(Some).chain(second.iter().copied()).collect();
        self.second.infer(&Types { inputs: &second, outputs: 1 })
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let weights = |i: usize, usual: &Shape| match constants.tensor(i) {
            Some(w) => Ok(Weights::new(Isa::get(), usual, w.read::<f32>()?)),
            None => Err(Error::op("the weights are not constant")),
        };
        Ok(Some(Box::new([weights(1, &self.usual[0])?, weights(self.inputs, &self.usual[1])?])))
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1 || input == self.inputs
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        let between = self.first.conv.epilogue.as_ref().map_or_else(String::new, |program| format!(" with {program}"));
        let form = Form::of(packed, |[first, second]: &[Weights; 2]| {
            let name = format!("{}{between}, then {} while it is in the cache", first.form(), second.form());
            Form::named(name).packed(first.bytes() + second.bytes())
        });
        form.with(self.second.conv.epilogue.as_ref())
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let (first, second) = inputs.inputs.split_at_checked(self.inputs)?;
        let first = Types { inputs: first, outputs: 1 };
        let between = self.first.infer(&first).ok()?;
        let second: Vec<Option<&Type>> = between.iter().map(Some).chain(second.iter().copied()).collect();
        Some(self.first.work(&first, &between)? + self.second.work(&Types { inputs: &second, outputs: 1 }, outputs)?)
    }

    on_device!(NoKernel);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, second) = (call.tensor(0)?, self.inputs);
        let first_bias = if second > 2 { call.optional_tensor(2)? } else { None };
        let bias = [first_bias, call.optional_tensor(second + 1)?];
        let [first_w, second_w] = [call.tensor(1)?, call.tensor(second)?];
        let shape = self.first.conv.window().shape(&self.first.input(x.dims())?, first_w.dims())?;
        let between = out_dims(&shape, self.first.rank);
        let next = self.second.conv.window().shape(&between, second_w.dims())?;
        for (bias, shape) in bias.iter().zip([&shape, &next]) {
            check_bias(bias.map(Array::dims), shape.outputs)?;
        }
        let [first, second] = call.packed::<[Weights; 2]>().ok_or_else(|| Error::op("the weights are not packed"))?;
        let (between, dims) = (in_blocks(&between), in_blocks(&out_dims(&next, self.second.rank)));
        let mut out = room(&dims)?;
        let x = x.read::<f32>()?;
        let [first_bias, second_bias] = bias.map(|bias| bias.map(Array::read::<f32>).transpose());
        let (first_bias, second_bias) = (first_bias?, second_bias?);
        with_epilogue(self.first.conv.epilogue.as_ref(), call, &between, |epilogue| {
            let first = Stage { shape: &shape, weights: first, bias: first_bias, epilogue };
            with_epilogue(self.second.conv.epilogue.as_ref(), call, &dims, |epilogue| {
                let second = Stage { shape: &next, weights: second, bias: second_bias, epilogue };
                blocked::separable(call.threads, first, second, x, &mut out);
                Ok(())
            })
        })?;
        Ok(vec![Array::new(out, &dims)?.into()])
    }
}
