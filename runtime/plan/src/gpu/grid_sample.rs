//! GPU kernels: samples images at the points of a grid.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, width, Params};
use super::numbers::number;
use super::OnGpu;
use crate::bail;
use crate::dtype::{require_dtype, FLOATS};
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::grid_sample::{check_grid, GridSample, Outside, Sampling};
use crate::value::Value;

/// X, the grid and Y have the shapes that the kernel's struct states.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(GridSample in "grid_sample.cu")]
struct GridSampleParams {
    x: u64,
    grid: u64,
    y: u64,
    images: u32,
    channels: u32,
    points: u32,
    high: u32,
    wide: u32,
    grid_type: u32,
    outside: u32,
    align_corners: u32,
}

/// The channels that a thread reads for a point, as `CHANNELS` in `grid_sample.cu`.
const CHANNELS: u32 = 8;

gpu_kernel!(GridSample: "grid_sample");

impl GridSample {
    /// Fills the sizes; the addresses stay zero.
    fn sizes(&self, x: &[usize], grid: &[usize]) -> Result<GridSampleParams> {
        check_grid(x, grid)?;
        let (&[batch, channels, high, wide], &[_, rows, columns, _]) = (x, grid) else {
            bail!("images and points have four dimensions");
        };
        if high * wide == 0 && self.outside != Outside::Zeros && batch * channels * rows * columns > 0 {
            bail!("an image of {high} × {wide} pixels cannot be sampled");
        }
        Ok(GridSampleParams {
            images: count(batch)?,
            channels: count(channels)?,
            points: count(rows.saturating_mul(columns))?,
            high: count(high)?,
            wide: count(wide)?,
            outside: match self.outside {
                Outside::Zeros => 0,
                Outside::Border => 1,
                Outside::Reflection => 2,
            },
            align_corners: self.align_corners.into(),
            ..GridSampleParams::zeroed()
        })
    }
}

impl OnGpu for GridSample {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, grid) = (call.tensor(0)?, call.tensor(1)?);
        require_dtype("the grid", grid.dtype(), &FLOATS)?;
        let sizes = self.sizes(x.dims(), grid.dims())?;
        let y = alloc_uninit(gpu, &[x.dims()[0], x.dims()[1], grid.dims()[1], grid.dims()[2]], x.dtype())?;
        count(x.len().max(grid.len()).max(y.len()))?;
        let params = GridSampleParams {
            x: x.address()?,
            grid: grid.address()?,
            y: y.address()?,
            grid_type: number(grid.dtype())?,
            ..sizes
        };
        let (name, kind) = match self.mode {
            Sampling::Nearest => ("sample_nearest", width(x.dtype())?),
            Sampling::Linear => ("sample_linear", kind(x.dtype())?),
            Sampling::Cubic => ("sample_cubic", kind(x.dtype())?),
        };
        // The product cannot exceed the number of elements of Y.
        let pieces = if y.is_empty() { 0 } else { params.images * params.channels.div_ceil(CHANNELS) * params.points };
        launch(gpu, Symbol { module: "grid_sample", name, kind }, Grid::over(pieces), &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::testing::{run, tensor};

    /// Points inside and outside the image, on edges and halves, far away, and NaN.
    fn points(count: usize) -> Vec<f32> {
        let special = [-1.0, 1.0, 0.0, f32::INFINITY, -1e30, f32::NAN, 3.5, -2.25, 0.5, -0.75];
        (0..count).map(|i| special.get(i * 7 % 53).copied().unwrap_or((i as f32 * 0.37).sin() * 1.7)).collect()
    }

    fn check_modes(x: &Value, grid: &Value, modes: &[Sampling]) {
        for &mode in modes {
            for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
                for align_corners in [false, true] {
                    let op = GridSample { mode, outside, align_corners };
                    run(&op, &[Some(x.clone()), Some(grid.clone())]).unwrap_or_else(|error| panic!("{op:?}: {error}"));
                }
            }
        }
    }

    const ALL: [Sampling; 3] = [Sampling::Nearest, Sampling::Linear, Sampling::Cubic];

    #[test]
    fn all_modes_take_all_floats() {
        let dims = [2usize, 11, 5, 4];
        let x: Vec<f32> = (0..dims.iter().product()).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
        let grid = tensor(&points(2 * 9 * 17 * 2), &[2, 9, 17, 2]);
        check_modes(&tensor(&x, &dims), &grid, &ALL);
        check_modes(&tensor(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), &dims), &grid, &ALL);
        let grid: Vec<f64> = points(2 * 9 * 17 * 2).into_iter().map(f64::from).collect();
        check_modes(&tensor(&x, &dims), &tensor(&grid, &[2, 9, 17, 2]), &ALL);
        let grid: Vec<f16> = points(2 * 9 * 17 * 2).into_iter().map(f16::from_f32).collect();
        let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
        check_modes(&tensor(&halves, &dims), &tensor(&grid, &[2, 9, 17, 2]), &ALL);
        let grid: Vec<bf16> = points(2 * 9 * 17 * 2).into_iter().map(bf16::from_f32).collect();
        let brains: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
        check_modes(&tensor(&brains, &dims), &tensor(&grid, &[2, 9, 17, 2]), &ALL);
    }

    #[test]
    fn nearest_takes_any_element_and_size() {
        let grid = tensor(&points(50), &[1, 5, 5, 2]);
        check_modes(&tensor(&(0..12).collect::<Vec<u8>>(), &[1, 2, 3, 2]), &grid, &[Sampling::Nearest]);
        check_modes(&tensor(&(0..12).collect::<Vec<i64>>(), &[1, 2, 3, 2]), &grid, &[Sampling::Nearest]);
        check_modes(&tensor(&[7.0f32], &[1, 1, 1, 1]), &grid, &ALL);
        check_modes(&tensor::<f32>(&[], &[1, 0, 1, 1]), &grid, &ALL);
        check_modes(&tensor(&[7.0f32], &[1, 1, 1, 1]), &tensor::<f32>(&[], &[1, 0, 3, 2]), &ALL);
    }
}
