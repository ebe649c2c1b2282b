//! CPU kernels: deformable convolutions, whose window positions are shifted by an input.

use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::sample::{sample, Taps};
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;

use super::convert::converted;
use super::einsum::multiply;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::deform_conv::{DeformConv, DeformSizes};
use crate::ops::grid_sample::{GridSample, Outside, Sampling};
use crate::types::Types;
use crate::value::{alloc_uninit, element_count, Array, Value};

impl Kernel for DeformConv {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dtype = call.tensor(0)?.dtype();
        let wide = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let input = |i: usize| -> Result<Option<Array>> {
            call.optional_tensor(i)?.map(|input| converted(input, wide, call.threads)).transpose()
        };
        let required = |i: usize| input(i)?.ok_or_else(|| Error::op(format!("input {i} is missing")));
        let inputs =
            Inputs { x: required(0)?, w: required(1)?, offset: required(2)?, bias: input(3)?, mask: input(4)? };
        let dims = [&inputs.x, &inputs.w, &inputs.offset].map(Array::dims);
        let sizes = self.sizes(dims, inputs.bias.as_ref().map(Array::dims), inputs.mask.as_ref().map(Array::dims))?;
        let y = dispatch!("DeformConv", wide, [f32, f64], T => self.convolved::<T>(&inputs, &sizes, call.threads))?;
        Ok(vec![converted(&y, dtype, call.threads)?.into()])
    }
}

struct Inputs {
    x: Array,
    w: Array,
    offset: Array,
    bias: Option<Array>,
    mask: Option<Array>,
}

impl DeformConv {
    fn convolved<R: Real + Element>(&self, inputs: &Inputs, sizes: &DeformSizes, threads: &Threads) -> Result<Array> {
        let (taps, positions) = (sizes.kernel[0] * sizes.kernel[1], sizes.result[0] * sizes.result[1]);
        let depth = sizes.channels / self.groups * taps;
        let dims = [sizes.batch, sizes.outputs, sizes.result[0], sizes.result[1]];
        let weights = inputs.w.reshape(&[self.groups, sizes.outputs / self.groups, depth])?;
        let mut y = alloc_uninit::<R>(&dims)?.try_overwrite(|y| -> Result<()> {
            for image in 0..sizes.batch {
                let columns =
                    self.columns::<R>(inputs, sizes, image, threads)?.reshape(&[self.groups, depth, positions])?;
                let product = multiply(&weights, &columns, threads)?;
                y[image * sizes.outputs * positions..][..sizes.outputs * positions]
                    .copy_from_slice(product.read::<R>()?);
            }
            Ok(())
        })?;
        if let Some(bias) = &inputs.bias {
            let bias = bias.read::<R>()?;
            for (i, plane) in y.chunks_exact_mut(positions.max(1)).enumerate() {
                plane.iter_mut().for_each(|y| *y += bias[i % sizes.outputs]);
            }
        }
        Array::new(y, &dims)
    }

    /// Samples one image into a matrix with a row per channel and tap, and a column per output position.
    fn columns<R: Real + Element>(
        &self,
        inputs: &Inputs,
        sizes: &DeformSizes,
        image: usize,
        threads: &Threads,
    ) -> Result<Array> {
        let (taps, positions) = (sizes.kernel[0] * sizes.kernel[1], sizes.result[0] * sizes.result[1]);
        let (x, points) = (inputs.x.read::<R>()?, self.points::<R>(inputs, sizes, image, threads)?);
        let pixels = sizes.image[0] * sizes.image[1];
        let dims = [sizes.channels * taps, positions];
        let row = |row: usize, out: &mut [R]| {
            let (channel, tap) = (row / taps, row % taps);
            let group = channel / (sizes.channels / self.offset_groups);
            let plane = &x[(image * sizes.channels + channel) * pixels..][..pixels];
            sample(plane, &points[(group * taps + tap) * positions..][..positions], out);
        };
        let columns = alloc_uninit(&dims)?;
        Array::new(columns.overwrite(|columns| threads.for_each_chunk(columns, positions, row)), &dims)
    }

    /// Returns the pixels around each sampled point of one image, weighted by the mask:
    /// `[offset groups, taps, positions]`.
    fn points<R: Real + Element>(
        &self,
        inputs: &Inputs,
        sizes: &DeformSizes,
        image: usize,
        threads: &Threads,
    ) -> Result<Scratch<Taps<R, 4>>> {
        let (taps, positions) = (sizes.kernel[0] * sizes.kernel[1], sizes.result[0] * sizes.result[1]);
        let offset = inputs.offset.read::<R>()?;
        let mask = inputs.mask.as_ref().map(Array::read::<R>).transpose()?;
        let linear = GridSample { mode: Sampling::Linear, outside: Outside::Zeros, align_corners: true };
        let planes = self.offset_groups * taps;
        let mut points = Scratch::filled(Taps::NOTHING, element_count(&[planes, positions])?);
        threads.for_each_chunk(&mut points, positions, |plane, points| {
            let (tap, plane) = (plane % taps, image * planes + plane);
            let [down, across] = [0, 1].map(|i| &offset[(2 * plane + i) * positions..][..positions]);
            for (at, point) in points.iter_mut().enumerate() {
                let y = self.place(0, at / sizes.result[1], tap / sizes.kernel[1]) + down[at].to_f64();
                let x = self.place(1, at % sizes.result[1], tap % sizes.kernel[1]) + across[at].to_f64();
                *point = linear.taps::<R, 2, 4>([y, x], sizes.image);
                if let Some(mask) = &mask {
                    point.weights = point.weights.map(|weight| weight * mask[plane * positions + at]);
                }
            }
        });
        Ok(points)
    }

    /// Returns the coordinate of a tap along one axis, without its offset.
    fn place(&self, axis: usize, position: usize, tap: usize) -> f64 {
        (position * self.strides[axis] + tap * self.dilations[axis]) as f64 - self.pads[axis][0] as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn op() -> DeformConv {
        DeformConv { strides: [1, 1], dilations: [1, 1], pads: [[0, 0]; 2], groups: 1, offset_groups: 1 }
    }

    #[test]
    fn offsets_move_the_window() {
        let x = tensor(&[0f32, 1., 2., 3., 4., 5., 6., 7., 8.], &[1, 1, 3, 3]);
        let w = tensor(&[1f32], &[1, 1, 1, 1]);
        let offset: Vec<f32> = [[0.5; 9], [-1.0; 9]].concat();
        let inputs = [Some(x), Some(w), Some(tensor(&offset, &[1, 2, 3, 3])), Some(tensor(&[10f32], &[1]))];
        let y = run(&op(), &inputs).expect("inputs that fit");
        let expected = [10f32, 11.5, 12.5, 10., 14.5, 15.5, 10., 13., 13.5];
        assert_eq!(*y.tensor().and_then(|y| y.read::<f32>()).expect("float32"), expected);
    }

    #[test]
    fn inputs_that_do_not_fit_are_refused() {
        let [x, w] = [Some(tensor(&[0f32; 18], &[1, 2, 3, 3])), Some(tensor(&[0f32; 8], &[1, 2, 2, 2]))];
        let offset =
            |planes: usize, side: usize| Some(tensor(&vec![0f32; planes * side * side], &[1, planes, side, side]));
        assert!(run(&op(), &[x.clone(), w.clone(), offset(8, 2)]).is_ok());
        for (op, offset) in [
            (op(), offset(8, 3)),
            (op(), offset(16, 2)),
            (DeformConv { groups: 2, ..op() }, offset(8, 2)),
            (DeformConv { offset_groups: 0, ..op() }, offset(0, 2)),
            (DeformConv { strides: [0, 1], ..op() }, offset(8, 2)),
            (DeformConv { dilations: [usize::MAX, 1], ..op() }, offset(8, 2)),
        ] {
            assert!(run(&op, &[x.clone(), w.clone(), offset]).is_err(), "{op:?}");
        }
    }
}
