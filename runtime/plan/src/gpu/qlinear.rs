//! GPU kernels: convolutions and matrix products from 8-bit codes to 8-bit codes.

use candle_plan_device::Gpu;

use super::int8::{product, scratch_of_convolution, scratch_of_product, Channels, Convolution, End, Weights};
use super::OnGpu;
use crate::bail;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::qlinear::{QLinearConv, QLinearMatMul};
use crate::types::Types;
use crate::value::Value;

gpu_kernel!(QLinearMatMul: "qlinear" by |self, operands, _gpu| Ok(Some(QLinearOnGpu::new(self.clone(), operands.tensor(1).is_some()))));

gpu_kernel!(QLinearConv: "qlinear" by |self, operands, _gpu| Ok(Some(QLinearOnGpu::new(self.clone(), operands.tensor(1).is_some()))));

/// A [`QLinearConv`] or a [`QLinearMatMul`] step.
#[derive(Debug)]
pub(crate) struct QLinearOnGpu<Op> {
    op: Op,
    weights: Weights,
}

impl<Op> QLinearOnGpu<Op> {
    /// Makes a step whose weights may be constant.
    pub fn new(op: Op, is_constant: bool) -> QLinearOnGpu<Op> {
        QLinearOnGpu { op, weights: Weights::new(is_constant) }
    }
}

impl OnGpu for QLinearOnGpu<QLinearConv> {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        scratch_of_convolution(inputs.tensor(1).ok()?)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, w) = (call.tensor(0)?, call.tensor(1)?);
        let shape = self.op.shape(x.dims(), w.dims())?;
        let mut dims = vec![shape.batch];
        dims.extend(&shape.output[4 - x.rank()..]);
        dims.push(shape.outputs);
        let taps = shape.kernel[0] * shape.kernel[1];
        let convolution = Convolution {
            shape: &shape,
            channels: Channels::Last,
            x,
            x_zero: Some(call.tensor(3)?),
            w,
            w_zero: Some(call.tensor(4)?),
            w_strides: [shape.channels / shape.groups * taps, taps, 1],
            bias: call.optional_tensor(6)?,
            end: end(call, [self.op.low, self.op.high])?,
        };
        Ok(vec![convolution.run(gpu, &self.weights, &dims)?.into()])
    }
}

impl OnGpu for QLinearOnGpu<QLinearMatMul> {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        scratch_of_product(inputs.tensor(1).ok()?)
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (a, b) = (call.tensor(0)?, call.tensor(1)?);
        let (Some((&depth, rows)), &[k, n]) = (a.dims().split_last(), b.dims()) else {
            bail!("{:?} times {:?} is no product of matrices", a.dims(), b.dims());
        };
        if rows.is_empty() || depth != k {
            bail!("{:?} times {:?} is no product of matrices", a.dims(), b.dims());
        }
        let dims = [rows, &[n]].concat();
        let product = Convolution {
            shape: &product(rows.iter().product(), k, n),
            channels: Channels::Last,
            x: a,
            x_zero: Some(call.tensor(3)?),
            w: b,
            w_zero: Some(call.tensor(4)?),
            w_strides: [1, n, 0],
            bias: call.optional_tensor(6)?,
            end: end(call, [self.op.low, self.op.high])?,
        };
        Ok(vec![product.run(gpu, &self.weights, &dims)?.into()])
    }
}

/// Returns the conversion of sums: scaled, and quantized if the result has a zero point.
fn end<'a>(call: &'a Call, limits: [i32; 2]) -> Result<End<'a>> {
    Ok(End::Scaled(call.tensor(2)?, call.optional_tensor(5)?.map(|zero| (zero, limits))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::padding::Padding;
    use crate::testing::{run, run_on_device, tensor};

    /// All codes, of either signedness.
    fn codes(dims: &[usize], step: usize, signed: bool) -> Value {
        let bytes = (0..dims.iter().product()).map(|i: usize| (i * step + i / 251) as u8);
        match signed {
            true => tensor(&bytes.map(u8::cast_signed).collect::<Vec<_>>(), dims),
            false => tensor(&bytes.collect::<Vec<_>>(), dims),
        }
    }

    fn zero(signed: bool, code: i8) -> Option<Value> {
        zeros(signed, &[code], &[])
    }

    /// Zero points. Those of `uint8` are larger by 128.
    fn zeros(signed: bool, codes: &[i8], dims: &[usize]) -> Option<Value> {
        Some(match signed {
            true => tensor(codes, dims),
            false => tensor(&codes.iter().map(|&code| code.cast_unsigned() ^ 128).collect::<Vec<_>>(), dims),
        })
    }

    /// Variants of the end of a step: the scales, the result's zero point, and a bias.
    fn ends(outputs: usize, spread: f32) -> Vec<[Option<Value>; 3]> {
        let scales = (0..outputs).map(|i| spread * (1.0 + i as f32 * 0.3)).collect::<Vec<_>>();
        let bias = (0..outputs).map(|i| i as i32 * 1000 - 500).collect::<Vec<_>>();
        let (one, each) = (Some(tensor(&[spread], &[])), Some(tensor(&scales, &[outputs])));
        let bias = Some(tensor(&bias, &[outputs]));
        vec![[one, zero(true, 11), None], [each.clone(), zero(false, -9), bias.clone()], [each, None, bias]]
    }

    /// Runs an op with codes of all types, and with all variants of zero points and ends, but not with every
    /// combination.
    fn all_types(op: impl Fn(i32, i32) -> Box<dyn crate::testing::Tested>, x: &[usize], w: &[usize], outputs: usize) {
        let each: Vec<i8> = (0..outputs).map(|i| (i * 5) as u8 as i8).collect();
        let ends = ends(outputs, 3e-4);
        for (i, (signed_x, signed_w)) in
            [(false, true), (true, true), (false, false), (true, false)].into_iter().enumerate()
        {
            let w_zero = if i % 2 == 0 { zero(signed_w, 0) } else { zeros(signed_w, &each, &[outputs]) };
            let [scale, y_zero, bias] = ends[i % 3].clone();
            let (low, high) = if i % 3 == 0 { (-128, 127) } else { (3, 250) };
            let (x, w) = (Some(codes(x, 89, signed_x)), Some(codes(w, 57, signed_w)));
            let inputs = [x, w, scale, zero(signed_x, 17), w_zero, y_zero, bias];
            run(&*op(low, high), &inputs).expect("fits");
        }
    }

    #[test]
    fn convolutions_of_every_kind_match_the_cpu() {
        // The shapes of X and W, strides, dilations, pads, groups.
        type Case<'a> = (&'a [usize], &'a [usize], [usize; 2], [usize; 2], [[usize; 2]; 2], usize);
        let cases: [Case; 9] = [
            (&[1, 9, 9, 16], &[24, 16, 3, 3], [1, 1], [1, 1], [[1, 1]; 2], 1),
            (&[2, 7, 5, 3], &[70, 3, 3, 2], [2, 1], [1, 2], [[0, 2], [1, 0]], 1),
            (&[1, 6, 6, 40], &[9, 40, 1, 1], [1, 1], [1, 1], [[0; 2]; 2], 1),
            (&[1, 8, 7, 5], &[5, 1, 3, 3], [1, 2], [1, 1], [[1, 1]; 2], 5),
            (&[1, 8, 7, 6], &[12, 2, 3, 3], [1, 1], [2, 1], [[2, 0]; 2], 3),
            (&[1, 5, 5, 24], &[30, 8, 3, 3], [1, 1], [1, 1], [[1, 1]; 2], 3),
            (&[1, 1, 1, 4], &[8, 4, 3, 3], [1, 1], [1, 1], [[1, 1]; 2], 1),
            (&[0, 5, 5, 4], &[8, 4, 3, 3], [1, 1], [1, 1], [[1, 1]; 2], 1),
            (&[3, 4, 4, 7], &[1, 7, 2, 2], [1, 1], [1, 1], [[0; 2]; 2], 1),
        ];
        for (x, w, strides, dilations, pads, groups) in cases {
            let op = |low, high| {
                let (strides, dilations, pads) =
                    (strides.to_vec(), dilations.to_vec(), Padding::Explicit(pads.to_vec()));
                Box::new(QLinearConv { strides, dilations, pads, groups, low, high }) as Box<_>
            };
            all_types(op, x, w, w[0]);
        }
        let row = |low, high| {
            let (strides, dilations, pads) = (vec![2], vec![1], Padding::SameUpper);
            Box::new(QLinearConv { strides, dilations, pads, groups: 2, low, high }) as Box<_>
        };
        all_types(row, &[2, 30, 6], &[20, 3, 5], 20);
    }

    #[test]
    fn products_of_every_size_match_the_cpu() {
        let shapes: [(&[usize], &[usize]); 6] = [
            (&[65, 33], &[33, 66]),
            (&[2, 3, 5], &[5, 9]),
            (&[1, 1], &[1, 1]),
            (&[4, 70], &[70, 3]),
            (&[0, 3], &[3, 8]),
            (&[3, 0], &[0, 8]),
        ];
        for (a, b) in shapes {
            all_types(|low, high| Box::new(QLinearMatMul { low, high }), a, b, b[1]);
        }
    }

    #[test]
    fn mismatched_inputs_are_refused_on_the_device() {
        let refused = |inputs: [Option<Value>; 6], expected: &str| {
            let inputs = inputs.map(|input| input.expect("it is there"));
            let error = run_on_device(&QLinearMatMul { low: 0, high: 255 }, &inputs).expect_err("it does not fit");
            assert!(error.to_string().contains(expected), "{error}");
        };
        let bytes = |dims: &[usize]| Some(codes(dims, 3, false));
        let scale = |count: usize| Some(tensor(&vec![0.1f32; count], &[count]));
        let one = || bytes(&[1]);
        refused([bytes(&[2, 3]), bytes(&[4, 2]), scale(1), one(), one(), one()], "times");
        refused([bytes(&[2, 3]), bytes(&[3, 4]), scale(2), one(), one(), one()], "the scale has shape [2]");
        refused(
            [bytes(&[2, 3]), bytes(&[3, 4]), scale(4), bytes(&[2]), one(), one()],
            "has shape [2]; it must have one element",
        );
        refused([bytes(&[2, 3]), bytes(&[3, 4]), scale(4), one(), bytes(&[3]), one()], "zero point has shape [3]");
        refused(
            [bytes(&[2, 3]), bytes(&[3, 4]), scale(4), one(), one(), bytes(&[2])],
            "has shape [2]; it must have one element",
        );
    }
}
