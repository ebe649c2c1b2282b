//! GPU kernels: repetition of elements along axes.

use candle_plan_device::Gpu;

use super::copy::copied;
use super::OnGpu;
use crate::axes;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::operands::repeat::broadcast;
use crate::ops::repeat::{Expand, Tile};
use crate::value::Value;

gpu_kernel!(Expand: "copy");

impl OnGpu for Expand {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let view = broadcast(x.dims(), &axes::dims(&axes::numbers(call.tensor(1)?)?)?)?;
        Ok(vec![if view.dims == x.dims() { x.clone() } else { copied(gpu, x, &view)? }.into()])
    }
}

gpu_kernel!(Tile: "copy");

impl OnGpu for Tile {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (view, dims) = self.tiles(x.dims(), call)?;
        Ok(vec![copied(gpu, x, &view)?.reshape(&dims)?.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    /// `run` also compares with the host.
    #[test]
    fn many_axes_are_repeated() {
        let x = |dims: &[usize]| Some(tensor(&(0..dims.iter().product()).map(|i| i as f64).collect::<Vec<_>>(), dims));
        let list = |numbers: &[i64]| Some(tensor(numbers, &[numbers.len()]));
        for (dims, repeats) in [(&[2, 3, 2, 1, 3][..], &[2, 2, 2, 3, 2][..]), (&[33, 8], &[1, 5]), (&[3, 8], &[4, 1])] {
            run(&Tile {}, &[x(dims), list(repeats)]).expect("one for each axis");
        }
        for (dims, shape) in [(&[3, 1, 5, 1][..], &[2, 3, 40, 1, 6][..]), (&[1, 40], &[50, 40]), (&[40, 1], &[40, 50])]
        {
            run(&Expand {}, &[x(dims), list(shape)]).expect("it broadcasts");
        }
    }
}
