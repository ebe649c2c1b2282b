//! CPU kernels: transposed convolutions over one or two spatial axes.

use candle_plan_kernels::conv::{self, Shape, TransposedWeights};
use candle_plan_kernels::isa::Isa;

use super::packed::Packs;
use crate::dtype::DType;
use crate::epilogue;
use crate::error::Result;
use crate::float::{read_f32, to_f32, to_half, widened_bytes};
use crate::form::Form;
use crate::kernel::{Call, Constants};
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::padding::Padding;
use crate::ops::window::{check_ranks, out_dims};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl Packs for ConvTranspose {
    type Packed = TransposedWeights;

    fn pack(&self, constants: &Constants) -> Result<Option<Self::Packed>> {
        let Some(w) = constants.tensor(1).filter(|w| w.dtype() != DType::Float64) else { return Ok(None) };
        Ok(Some(self.pack_weights(w)?))
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self, packed: Option<&Self::Packed>) -> Form {
        let form = Form::of(packed, |weights: &TransposedWeights| Form::named(weights.form()).packed(weights.bytes()));
        form.with(self.epilogue.as_ref())
    }

    fn scratch(&self, packed: Option<&Self::Packed>, inputs: &Types) -> Option<usize> {
        let weights = packed?;
        let shape = self.shape(&inputs.tensor(0).ok()?.sizes()?, &inputs.tensor(1).ok()?.sizes()?, None);
        let moved = size_of::<f32>().saturating_mul(weights.scratch(&shape.ok()?));
        Some(widened_bytes(self, inputs, |i| self.is_replaced(i))?.saturating_add(moved))
    }

    fn run(&self, packed: Option<&Self::Packed>, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let shape = self.shape(x.dims(), w.dims(), bias.map(Array::dims))?;
        let out = match x.dtype() {
            DType::Float32 => self.run_f32(packed, call, &shape, x, w, bias)?,
            DType::Float64 => {
                let dims = out_dims(&shape, x.rank());
                let mut out = alloc_uninit(&dims)?;
                let (x, w, bias) = (x.read::<f64>()?, w.read::<f64>()?, bias.map(Array::read::<f64>).transpose()?);
                conv::conv_transposed_plain(call.threads, &shape, w, bias, x, &mut out);
                Array::new(out, &dims)?
            }
            dtype => {
                let bias = bias.map(to_f32).transpose()?;
                to_half(&self.run_f32(packed, call, &shape, &to_f32(x)?, w, bias.as_ref())?, dtype)?
            }
        };
        Ok(vec![out.into()])
    }
}

impl ConvTranspose {
    /// Convolves `float32` images. Weights that are not packed may also be 16-bit floats.
    fn run_f32(
        &self,
        packed: Option<&TransposedWeights>,
        call: &Call,
        shape: &Shape,
        x: &Array,
        w: &Array,
        bias: Option<&Array>,
    ) -> Result<Array> {
        let packed_here;
        let weights = match packed {
            Some(packed) => packed,
            None => {
                packed_here = self.pack_weights(w)?;
                &packed_here
            }
        };
        let dims = out_dims(shape, x.rank());
        let mut out = alloc_uninit(&dims)?;
        let (x, bias) = (x.read::<f32>()?, bias.map(Array::read::<f32>).transpose()?);
        epilogue::with(self.epilogue.as_ref(), call, &dims, |finish| {
            conv::conv_transposed(call.threads, shape, weights, bias, x, &mut out, finish);
            Ok(())
        })?;
        Array::new(out, &dims)
    }

    /// Packs the weights for an image of one element and an uncropped output. Packed weights do not depend on either.
    fn pack_weights(&self, w: &Array) -> Result<TransposedWeights> {
        let mut x = w.dims().to_vec();
        check_ranks(x.len(), x.len())?;
        self.check_lists(x.len() - 2)?;
        (x[1], x[0]) = (x[0], 1);
        x[2..].fill(1);
        let uncropped = Padding::Explicit(vec![[0, 0]; x.len() - 2]);
        let uncropped = ConvTranspose { pads: uncropped, output_shape: None, epilogue: None, ..self.clone() };
        let shape = uncropped.shape(&x, w.dims(), None)?;
        Ok(TransposedWeights::new(Isa::get(), &shape, &read_f32(w)?))
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
    fn output_sizes_follow_every_attribute() {
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
    fn mismatched_inputs_are_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        for (op, inputs, expected) in [
            (plain(2), vec![f(&[1, 2, 1]), f(&[2, 1, 1])], "spatial axes"),
            (plain(1), vec![f(&[1, 2, 1]), f(&[1, 1, 1])], "channels"),
            (ConvTranspose { strides: vec![0], ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 1])], "stride"),
            (ConvTranspose { dilations: vec![1 << 39], ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 2])], "large"),
            (ConvTranspose { dilations: vec![1 << 41], ..plain(1) }, vec![f(&[1, 1, 1]), f(&[1, 1, 2])], "large"),
            (ConvTranspose { strides: vec![1 << 39], ..plain(1) }, vec![f(&[1, 1, 2]), f(&[1, 1, 1])], "no memory"),
            (
                ConvTranspose { pads: Padding::Explicit(vec![[9, 9]]), ..plain(1) },
                vec![f(&[1, 1, 1]), f(&[1, 1, 1])],
                "leave nothing",
            ),
        ] {
            let error = run(&op, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
