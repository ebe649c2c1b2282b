//! CPU kernels: transposed convolutions over one or two spatial axes.

use super::choice::{BlocksKernel, HasBlocksKernel, OnBlocks};
use super::conv_blocks;
use super::conv_rows;
use super::packed::HasKernel;
use super::planned::CpuOperands;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::ops::conv_transpose::ConvTranspose;
use crate::types::Type;

impl HasKernel for ConvTranspose {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        conv_rows::kernel(self, operands)
    }
}

impl HasBlocksKernel for ConvTranspose {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        let (kernel, layouts) = conv_blocks::blocked(self, operands, outputs.first().copied().flatten())?;
        Some(OnBlocks { kernel: BlocksKernel::ConvTranspose(kernel), layouts })
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::ops::padding::Padding;
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
