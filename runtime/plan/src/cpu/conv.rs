//! CPU kernels: convolutions over one or two spatial axes.

use super::choice::{BlocksKernel, HasBlocksKernel, OnBlocks};
use super::conv_blocks;
use super::conv_rows;
use super::packed::HasKernel;
use super::planned::CpuOperands;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::ops::conv::Conv;
use crate::types::Type;

impl HasKernel for Conv {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        conv_rows::kernel(self, operands)
    }
}

impl HasBlocksKernel for Conv {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        let (kernel, layouts) = conv_blocks::blocked(self, operands, outputs.first().copied().flatten())?;
        Some(OnBlocks { kernel: BlocksKernel::Conv(kernel), layouts })
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
