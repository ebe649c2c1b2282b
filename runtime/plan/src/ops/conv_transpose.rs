//! Transposed convolutions over one and two spatial axes.

use candle_plan_kernels::conv::{self, Shape, TransposedWeights};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conv::{float_operands, read_single, room, rounded, single};
use super::padding::{check_steps, Padding};
use super::window::{check_ranks, out_dims};
use crate::device::on_device;
use crate::dtype::DType;
use crate::epilogue;
use crate::error::Result;
use crate::form::Form;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::types::{Dim, TensorType, Type};
use crate::value::{Array, Value};
use crate::work::{self, Work};

/// `Y[n, o, y·s + i·d − before, x·s + j·d − before] += W[c, o, i, j] · X[n, c, y, x]` over the bias `B[o]`, then the
/// epilogue.
///
/// Inputs: `X [N, C, H, W]` or `[N, C, W]`, `W [C, O / groups, kernel…]`, `B [O]` or absent, then the epilogue's operands.
/// An axis of the output has `(input − 1) · stride + output_padding + (kernel − 1) · dilation + 1 − pads` elements, or
/// `output_shape`'s; then, and for `SameUpper` and `SameLower` (`input · stride` elements), the pads follow from the
/// size: half of them at each end, an odd one at the end (`SameUpper`) or at the beginning.
///
/// Source: [ONNX ConvTranspose](https://onnx.ai/onnx/operators/onnx__ConvTranspose.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvTranspose {
    /// The step between the outputs of neighbouring inputs, on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window.
    pub dilations: Vec<usize>,
    /// What is cut off the output.
    pub pads: Padding,
    /// Elements added to the end of the output.
    pub output_padding: Vec<usize>,
    /// The output's spatial sizes, instead of explicit pads.
    pub output_shape: Option<Vec<usize>>,
    /// The number of groups.
    pub groups: usize,
    /// What finishes the result.
    pub epilogue: Option<Program>,
}

impl Kernel for ConvTranspose {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = float_operands(inputs, 3)?;
        epilogue::check(self.epilogue.as_ref(), inputs, dtype)?;
        let (x, w) = (inputs.tensor(0)?, inputs.tensor(1)?);
        check_steps(&self.strides, &self.dilations, self.groups)?;
        let Some(rank) = x.rank().or(w.rank()) else { return Ok(vec![Type::any(dtype)]) };
        check_ranks(rank, w.rank().unwrap_or(rank))?;
        self.check_lists(rank - 2)?;
        if let (Some(x), Some(w)) = (x.sizes(), w.sizes()) {
            let bias = inputs.optional_tensor(2)?.and_then(TensorType::sizes);
            let shape = self.shape(&x, &w, bias.as_deref())?;
            return Ok(vec![Type::Tensor(TensorType::sized(dtype, &out_dims(&shape, rank)))]);
        }
        let mut shape = vec![None; rank];
        shape[0] = x.shape.as_ref().and_then(|dims| dims[0].clone());
        shape[1] = w.size(1).and_then(|outputs| outputs.checked_mul(self.groups)).map(Dim::Size);
        for (a, dim) in shape.iter_mut().enumerate().skip(2) {
            let sizes = x.size(a).zip(w.size(a));
            *dim = sizes.map(|(x, w)| self.axis(a - 2, x, w)).transpose()?.map(|(size, _)| Dim::Size(size));
        }
        Ok(vec![Type::Tensor(TensorType { dtype, shape: Some(shape) })])
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        let Some(w) = constants.tensor(1).filter(|w| w.dtype() != DType::Float64) else { return Ok(None) };
        Ok(Some(Box::new(self.pack(w)?)))
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self, packed: Option<&Packed>) -> Form {
        let form = Form::of(packed, |weights: &TransposedWeights| Form::named(weights.form()).packed(weights.bytes()));
        form.with(self.epilogue.as_ref())
    }

    on_device!("conv" by |self, operands, gpu| self.for_gpu(operands, gpu));

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let each = || Some(work::product(inputs.tensor(1).ok()?.sizes()?.get(1..)?));
        let products = || Some(work::count(inputs.tensor(0).ok()?)?.saturating_mul(each()?));
        Work::multiplying(inputs, outputs, products())
    }

    fn scratch(&self, packed: Option<&Packed>, inputs: &Types) -> usize {
        let bytes = || {
            let weights = packed?.downcast_ref::<TransposedWeights>()?;
            let shape = self.shape(&inputs.tensor(0).ok()?.sizes()?, &inputs.tensor(1).ok()?.sizes()?, None);
            Some(size_of::<f32>() * weights.scratch(&shape.ok()?))
        };
        bytes().unwrap_or(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let shape = self.shape(x.dims(), w.dims(), bias.map(Array::dims))?;
        let out = match x.dtype() {
            DType::Float32 => self.run_f32(call, &shape, x, w, bias)?,
            DType::Float64 => {
                let dims = out_dims(&shape, x.rank());
                let mut out = room(&dims)?;
                let (x, w, bias) = (x.read::<f64>()?, w.read::<f64>()?, bias.map(Array::read::<f64>).transpose()?);
                conv::conv_transposed_plain(call.threads, &shape, w, bias, x, &mut out);
                Array::new(out, &dims)?
            }
            dtype => {
                let bias = bias.map(single).transpose()?;
                rounded(&self.run_f32(call, &shape, &single(x)?, w, bias.as_ref())?, dtype)?
            }
        };
        Ok(vec![out.into()])
    }
}

impl ConvTranspose {
    /// Of `float32`, but weights that were not packed, which are of any width up to it.
    fn run_f32(&self, call: &Call, shape: &Shape, x: &Array, w: &Array, bias: Option<&Array>) -> Result<Array> {
        let packed_here;
        let weights = match call.packed::<TransposedWeights>() {
            Some(packed) => packed,
            None => {
                packed_here = self.pack(w)?;
                &packed_here
            }
        };
        let dims = out_dims(shape, x.rank());
        let mut out = room(&dims)?;
        let (x, bias) = (x.read::<f32>()?, bias.map(Array::read::<f32>).transpose()?);
        epilogue::with(self.epilogue.as_ref(), call, &dims, |finish| {
            conv::conv_transposed(call.threads, shape, weights, bias, x, &mut out, finish);
            Ok(())
        })?;
        Array::new(out, &dims)
    }

    /// Weights do not depend on the image nor on what is cut off the output: one element, uncut, stands for all.
    fn pack(&self, w: &Array) -> Result<TransposedWeights> {
        let mut x = w.dims().to_vec();
        check_ranks(x.len(), x.len())?;
        self.check_lists(x.len() - 2)?;
        (x[1], x[0]) = (x[0], 1);
        x[2..].fill(1);
        let uncut = Padding::Explicit(vec![[0, 0]; x.len() - 2]);
        let uncut = ConvTranspose { pads: uncut, output_shape: None, epilogue: None, ..self.clone() };
        let shape = uncut.shape(&x, w.dims(), None)?;
        Ok(TransposedWeights::new(Isa::get(), &shape, &read_single(w)?))
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::testing::{run, tensor};

    fn plain(axes: usize) -> ConvTranspose {
        ConvTranspose {
            strides: vec![2; axes],
            dilations: vec![1; axes],
            pads: Padding::Explicit(vec![[0, 0]; axes]),
            output_padding: vec![0; axes],
            output_shape: None,
            groups: 1,
            epilogue: None,
        }
    }

    #[test]
    fn sizes_of_the_output_in_every_form() {
        let w = [1f32, 2., 3.];
        for (op, expected) in [
            (plain(1), vec![1., 2., 5., 4., 6.]),
            (ConvTranspose { output_padding: vec![1], ..plain(1) }, vec![1., 2., 5., 4., 6., 0.]),
            (ConvTranspose { pads: Padding::Explicit(vec![[1, 0]]), ..plain(1) }, vec![2., 5., 4., 6.]),
            (ConvTranspose { pads: Padding::Explicit(vec![[2, 2]]), ..plain(1) }, vec![5.]),
            (ConvTranspose { pads: Padding::SameUpper, ..plain(1) }, vec![1., 2., 5., 4.]),
            (ConvTranspose { pads: Padding::SameLower, ..plain(1) }, vec![2., 5., 4., 6.]),
            (ConvTranspose { output_shape: Some(vec![4]), ..plain(1) }, vec![2., 5., 4., 6.]),
            (ConvTranspose { output_shape: Some(vec![7]), ..plain(1) }, vec![1., 2., 5., 4., 6., 0., 0.]),
            (ConvTranspose { strides: vec![1], dilations: vec![2], ..plain(1) }, vec![1., 2., 2., 4., 3., 6.]),
        ] {
            let out = run(&op, &[Some(tensor(&[1f32, 2.], &[1, 1, 2])), Some(tensor(&w, &[1, 1, 3]))]).unwrap();
            assert_eq!(out.tensor().unwrap().read::<f32>().unwrap(), expected, "{op:?}");
        }
    }

    #[test]
    fn every_type_and_groups() {
        macro_rules! check {
            ($($T:ty: $from:expr;)*) => {$({
                let data = |x: &[f32]| x.iter().map(|&x| $from(x)).collect::<Vec<$T>>();
                let op = ConvTranspose { groups: 2, ..plain(2) };
                let x = tensor(&data(&[1., 2.]), &[1, 2, 1, 1]);
                let w = tensor(&data(&[1., 2., 3., 4.]), &[2, 1, 1, 2]);
                let out = run(&op, &[Some(x), Some(w), Some(tensor(&data(&[1., 0.]), &[2]))]).unwrap();
                assert_eq!(&out.tensor().unwrap().read::<$T>().unwrap()[..], data(&[2., 3., 6., 8.]));
            })*};
        }
        check! { f32: |x| x; f64: f64::from; f16: f16::from_f32; }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        for (op, inputs, expected) in [
            (plain(2), vec![f(&[1, 2, 1]), f(&[2, 1, 1])], "spatial axes"),
            (plain(1), vec![f(&[1, 2, 1]), f(&[1, 1, 1])], "channels"),
            (ConvTranspose { strides: vec![0], ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 1])], "stride"),
            (ConvTranspose { dilations: vec![1 << 39], ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 2])], "large"),
            (ConvTranspose { dilations: vec![1 << 41], ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 2])], "large"),
            (ConvTranspose { strides: vec![1 << 39], ..plain(1) }, vec![f(&[1, 1, 2]), f(&[1, 1, 1])], "no memory"),
            (ConvTranspose { pads: Padding::Explicit(vec![[9, 9]]), ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 1])], "leave nothing"),
        ] {
            let error = run(&op, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
