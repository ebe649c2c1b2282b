//! GPU kernels: softmax, log-softmax and hardmax.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Symbol};

use super::launch::{alloc_uninit, kind, launch, Params};
use super::team::Lines;
use super::OnGpu;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::softmax::Softmax;
use crate::value::Value;

/// X and Y have the lines.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(SoftmaxOf in "softmax.cu")]
struct SoftmaxParams {
    x: u64,
    y: u64,
    lines: Lines,
    form: u32,
}

gpu_kernel!(Softmax: "softmax");

impl OnGpu for Softmax {
    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dtype, dims, address) = (x.dtype(), x.dims().to_vec(), x.address()?);
        let lines = Lines::new(self.split(&dims)?)?;
        let y = match call.take(0) {
            Some(array) => array,
            None => alloc_uninit(gpu, &dims, dtype)?,
        };
        let params = SoftmaxParams { x: address, y: y.address()?, lines, form: self.function as u32 };
        launch(gpu, Symbol { module: "softmax", name: "softmax", kind: kind(dtype)? }, lines.grid(), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use crate::ops::softmax::{Softmax, SoftmaxFunction};
    use crate::testing::{run, tensor};

    const FUNCTIONS: [SoftmaxFunction; 3] =
        [SoftmaxFunction::Softmax, SoftmaxFunction::LogSoftmax, SoftmaxFunction::Hardmax];

    /// `run` also compares with the CPU.
    #[test]
    fn lines_of_any_length_in_every_dtype() {
        for (dims, axis) in [
            (&[1, 1, 1][..], 1),
            (&[3, 0, 2], 1),
            (&[2, 7, 1], 1),
            (&[300, 5], 1),
            (&[3, 129], -1),
            (&[2, 1500], -1),
            (&[2, 5, 3], 1),
            (&[3, 70, 65], 1),
            (&[1, 700, 2], 1),
            (&[2, 2, 1, 3, 2, 9], -2),
        ] {
            let x: Vec<f32> =
                (0..dims.iter().product()).map(|i: usize| (i * 7919 % 1013) as f32 / 64.0 - 5.0).collect();
            for function in FUNCTIONS {
                let op = Softmax { function, axis, coerce_2d: false };
                let go = |x| run(&op, &[Some(x)]).expect("runs");
                go(tensor(&x, dims));
                go(tensor(&x.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), dims));
                go(tensor(&x.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>(), dims));
                go(tensor(&x.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<_>>(), dims));
            }
        }
    }

    #[test]
    fn infinities_and_nan() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let rows = [[-inf, -inf, -inf], [inf, 0.0, 1.0], [nan, 1.0, 2.0], [1.0, nan, 2.0], [-inf, 2.0, 2.0]];
        for function in FUNCTIONS {
            for (axis, dims) in [(1, [5, 3]), (0, [3, 5])] {
                let x: Vec<f32> = match axis {
                    1 => rows.concat(),
                    _ => (0..3).flat_map(|k| rows.map(|row| row[k])).collect(),
                };
                run(&Softmax { function, axis, coerce_2d: false }, &[Some(tensor(&x, &dims))]).expect("runs");
            }
        }
    }
}
