//! CPU kernels: convolutions over one or two spatial axes.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::conv::conv_plain;
use candle_plan_kernels::convolution::{ConvCase, ConvOperands, ConvWeights, Epilogue, ImageLayout};
use candle_plan_kernels::isa::Isa;

use super::packed::Packs;
use crate::dtype::DType;
use crate::epilogue;
use crate::error::Result;
use crate::float::{read_f32, to_f32, to_half, widened_bytes};
use crate::form::{Alternative, Form};
use crate::kernel::{Call, Constants};
use crate::ops::conv::Conv;
use crate::ops::window::out_dims;
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

impl Packs for Conv {
    type Packed = ConvWeights;

    fn pack(&self, constants: &Constants) -> Result<Option<Self::Packed>> {
        let Some(w) = constants.tensor(1).filter(|w| w.dtype() != DType::Float64) else { return Ok(None) };
        let case = self.case(constants, w.dims())?;
        Ok(Some(ConvWeights::new(&case, ImageLayout::Rows, &read_f32(w)?)))
    }

    fn is_replaced(&self, input: usize) -> bool {
        input == 1
    }

    fn form(&self, packed: Option<&Self::Packed>) -> Form {
        let form = Form::of(packed, |weights: &ConvWeights| Form::named(weights.form()).packed(weights.bytes()));
        form.with(self.epilogue.as_ref())
    }

    fn alternatives(&self, packed: Option<&Self::Packed>, _inputs: &Types) -> Vec<Alternative> {
        packed.map_or_else(Vec::new, alternatives)
    }

    fn scratch(&self, packed: Option<&Self::Packed>, inputs: &Types) -> Option<usize> {
        let weights = packed?;
        let shape = self.window().shape(&inputs.tensor(0).ok()?.sizes()?, &inputs.tensor(1).ok()?.sizes()?);
        let moved = size_of::<f32>().saturating_mul(weights.scratch(&shape.ok()?));
        Some(widened_bytes(self, inputs, |i| self.is_replaced(i))?.saturating_add(moved))
    }

    fn run(&self, packed: Option<&Self::Packed>, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let out = match x.dtype() {
            DType::Float32 => self.run_f32(packed, call, x, w, bias)?,
            DType::Float64 => self.run_f64(call, x, w, bias)?,
            dtype => {
                let bias = bias.map(to_f32).transpose()?;
                to_half(&self.run_f32(packed, call, &to_f32(x)?, w, bias.as_ref())?, dtype)?
            }
        };
        Ok(vec![out.into()])
    }
}

/// Every form that the planner compared for packed weights.
pub(super) fn alternatives(weights: &ConvWeights) -> Vec<Alternative> {
    weights.alternatives().into_iter().map(Alternative::from).collect()
}

impl Conv {
    /// Convolves `float32` images. Weights that are not packed may also be 16-bit floats.
    fn run_f32(
        &self,
        packed: Option<&ConvWeights>,
        call: &Call,
        x: &Array,
        w: &Array,
        bias: Option<&Array>,
    ) -> Result<Array> {
        let shape = self.shape(x.dims(), w.dims(), bias)?;
        let packed_here;
        let weights = match packed {
            Some(packed) => packed,
            None => {
                let case = ConvCase::new(Blocking::largest(Isa::get()), &shape, true);
                packed_here = ConvWeights::new(&case, ImageLayout::Rows, &read_f32(w)?);
                &packed_here
            }
        };
        let dims = out_dims(&shape, x.rank());
        let mut out = alloc_uninit(&dims)?;
        let (x, bias) = (x.read::<f32>()?, bias.map(Array::read::<f32>).transpose()?);
        epilogue::with(self.epilogue.as_ref(), call, &dims, |finish| {
            let epilogue = Epilogue { finish, ..Epilogue::NONE };
            weights.run(call.threads, ConvOperands { shape: &shape, bias, x, out: &mut out, epilogue });
            Ok(())
        })?;
        Array::new(out, &dims)
    }

    fn run_f64(&self, call: &Call, x: &Array, w: &Array, bias: Option<&Array>) -> Result<Array> {
        let shape = self.shape(x.dims(), w.dims(), bias)?;
        let dims = out_dims(&shape, x.rank());
        let mut out = alloc_uninit(&dims)?;
        let (x, w, bias) = (x.read::<f64>()?, w.read::<f64>()?, bias.map(Array::read::<f64>).transpose()?);
        conv_plain(call.threads, &shape, w, bias, x, &mut out);
        Array::new(out, &dims)
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::ops::padding::Padding;
    use crate::testing::{run, tensor};
    use candle_plan_kernels::program::Program;

    fn conv(strides: &[usize], pads: Padding, groups: usize) -> Conv {
        let dilations = vec![1; strides.len()];
        Conv { strides: strides.to_vec(), dilations, pads, groups, epilogue: None }
    }

    fn none(axes: usize) -> Padding {
        Padding::Explicit(vec![[0, 0]; axes])
    }

    #[test]
    fn one_and_two_axes_in_every_type() {
        macro_rules! check {
            ($($T:ty: $from:expr;)*) => {$({
                let data = |x: &[f32]| x.iter().map(|&x| $from(x)).collect::<Vec<$T>>();
                let tensor = |x: &[f32], dims: &[usize]| Some(tensor(&data(x), dims));
                let x = [1., 2., 3., 4., 5., 6.];
                let cases = [
                    (conv(&[1], none(1), 1), (&x[..], vec![1, 2, 3]), (&[1., 0., 0., 1.][..], vec![1, 2, 2]), vec![6., 8.], vec![1, 1, 2]),
                    (conv(&[2], Padding::SameUpper, 2), (&x, vec![1, 2, 3]), (&[1., 2.], vec![2, 1, 1]), vec![1., 3., 8., 12.], vec![1, 2, 2]),
                    (conv(&[1, 1], Padding::Explicit(vec![[1, 0], [0, 1]]), 1), (&x, vec![1, 1, 2, 3]), (&[1., 1.], vec![1, 1, 1, 2]),
                        vec![0., 0., 0., 3., 5., 3., 9., 11., 6.], vec![1, 1, 3, 3]),
                    (conv(&[1, 1], none(2), 1), (&[], vec![0, 1, 2, 3]), (&[1.], vec![1, 1, 1, 1]), vec![], vec![0, 1, 2, 3]),
                ];
                for (conv, (x, x_dims), (w, w_dims), y, y_dims) in cases {
                    let out = run(&conv, &[tensor(x, &x_dims), tensor(w, &w_dims)]).unwrap();
                    let out = out.tensor().unwrap();
                    assert_eq!((out.dims(), &out.read::<$T>().unwrap()[..]), (&y_dims[..], &data(&y)[..]), "{conv:?}");
                }
            })*};
        }
        check! { f32: |x| x; f64: f64::from; f16: f16::from_f32; bf16: bf16::from_f32; }
    }

    #[test]
    fn mismatched_inputs_are_refused() {
        let f = |dims: &[usize]| Some(tensor(&vec![1f32; dims.iter().product()], dims));
        let one = conv(&[1, 1], none(2), 1);
        for (conv, inputs, expected) in [
            (&one, vec![f(&[1, 1, 2, 2, 2]), f(&[1, 1, 1, 1, 1])], "rank"),
            (&one, vec![f(&[1, 3, 2, 2]), f(&[1, 2, 1, 1])], "channels"),
            (&one, vec![f(&[1, 1, 2, 2]), f(&[1, 1, 1, 1]), f(&[2])], "B has shape"),
            (&one, vec![f(&[1, 1, 2, 2]), Some(tensor(&[1f64], &[1, 1, 1, 1]))], "float64"),
            (&one, vec![Some(tensor(&[1i32], &[1, 1, 1, 1])), f(&[1, 1, 1, 1])], "int32"),
            (&conv(&[0, 1], none(2), 1), vec![f(&[1, 1, 2, 2]), f(&[1, 1, 1, 1])], "stride"),
            (&conv(&[1, 1], none(1), 1), vec![f(&[1, 1, 2, 2]), f(&[1, 1, 1, 1])], "pads"),
            (&conv(&[1, 1], none(2), 0), vec![f(&[1, 1, 2, 2]), f(&[1, 1, 1, 1])], "groups"),
            (
                &conv(&[1], Padding::Explicit(vec![[1 << 32, 0]]), 1),
                vec![f(&[1, 1, 2]), f(&[1, 1, 1])],
                "2^32 elements",
            ),
        ] {
            let error = run(conv, &inputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_epilogue_finishes_the_result() {
        use candle_plan_kernels::program::{Binary, Instruction, Operand, Unary};
        let code = vec![Instruction::Binary(Binary::Add, Operand::Input(3)), Instruction::Unary(Unary::Relu)];
        let conv = Conv { epilogue: Some(Program { code }), ..conv(&[1], none(1), 1) };
        let x = Some(tensor(&[1f32, -2., 3.], &[1, 1, 3]));
        let w = Some(tensor(&[1f32, -1.], &[2, 1, 1]));
        let out = run(&conv, &[x, w, None, Some(tensor(&[1f32, -1.], &[2, 1]))]).unwrap();
        assert_eq!(out.tensor().unwrap().read::<f32>().unwrap(), [2., 0., 4., 0., 1., 0.]);
    }
}
