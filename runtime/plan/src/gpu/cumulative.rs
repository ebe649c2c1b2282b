//! GPU kernels: running sums and products along an axis.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, width, Params};
use super::OnGpu;
use crate::axes;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::ops::cumulative::{Accumulation, Cumulative};
use crate::value::Value;

/// X and Y have `lines` · `n` elements.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(CumulativeOf in "cumulative.cu")]
struct CumulativeParams {
    x: u64,
    y: u64,
    lines: u32,
    n: u32,
    inner: u32,
    is_product: u32,
    is_exclusive: u32,
    is_reverse: u32,
}

impl CumulativeParams {
    /// Returns the kernel and its grid. A block computes each line if the lines are long, and either there are few
    /// lines or neighboring threads would read distant elements anyway.
    fn kernel(&self) -> (&'static str, Grid) {
        if self.n > 64 && (self.inner < 32 || self.lines < 2048) {
            ("cumulative_blocks", Grid::blocks(self.lines))
        } else {
            ("cumulative_lines", Grid::over(self.lines))
        }
    }
}

gpu_kernel!(Cumulative: "cumulative");

impl OnGpu for Cumulative {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let (x, axis) = (call.tensor(0)?, axes::number("axis", call.tensor(1)?)?);
        let [outer, n, inner] = axes::split(x.dims(), axis)?;
        let y = alloc_uninit(gpu, x.dims(), x.dtype())?;
        if y.is_empty() {
            return Ok(vec![y.into()]);
        }
        count(y.len())?;
        let params = CumulativeParams {
            x: x.address()?,
            y: y.address()?,
            lines: count(outer * inner)?,
            n: count(n)?,
            inner: count(inner)?,
            is_product: (self.function == Accumulation::Prod).into(),
            is_exclusive: self.exclusive.into(),
            is_reverse: self.reverse.into(),
        };
        let (name, grid) = params.kernel();
        let kind = if x.dtype().is_float() { kind(x.dtype())? } else { width(x.dtype())? };
        launch(gpu, Symbol { module: "cumulative", name, kind }, grid, &params)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::dtype::SUMMED;
    use crate::testing::{numbers_of, run, tensor};

    /// Compares with the CPU, on numbers that are small enough for 16-bit floats.
    fn check(dims: &[usize], axis: i64, dtype: DType) {
        let sizes = [0.5, 1.0, 2.0, -1.0, 0.25, 3.0, 0.125];
        let numbers: Vec<f64> = (0..dims.iter().product()).map(|i: usize| sizes[(i * i + i / 7) % 7]).collect();
        let x: Value = numbers_of(dtype, &numbers, dims).into();
        for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            for function in [Accumulation::Sum, Accumulation::Prod] {
                let op = Cumulative { function, exclusive, reverse };
                run(&op, &[Some(x.clone()), Some(tensor(&[axis], &[]))]).expect("runs");
            }
        }
    }

    #[test]
    fn totals_along_every_axis() {
        let short: [(&[usize], i64); 5] =
            [(&[5, 3, 2, 2, 2, 2, 2, 2, 2], -9), (&[9, 64, 33], 1), (&[700, 2], 1), (&[2, 0, 3], 0), (&[1], 0)];
        for dtype in SUMMED {
            short.iter().for_each(|(dims, axis)| check(dims, *axis, dtype));
            check(&[257], 0, dtype);
        }
        for dtype in [DType::Float32, DType::Int64] {
            check(&[2, 70, 2], -2, dtype);
        }
        let lines = tensor(&(0..65 * 2048).map(|i| i % 77).collect::<Vec<i32>>(), &[65, 2048]);
        let op = Cumulative { function: Accumulation::Sum, exclusive: false, reverse: true };
        run(&op, &[Some(lines), Some(tensor(&[0i64], &[]))]).expect("runs");
    }

    #[test]
    fn infinities_and_nan_propagate() {
        for at in [3, 256] {
            let mut x = vec![1f32; 600];
            (x[at], x[at + 280]) = (f32::INFINITY, f32::NEG_INFINITY);
            let op = Cumulative { function: Accumulation::Sum, exclusive: true, reverse: false };
            run(&op, &[Some(tensor(&x, &[600])), Some(tensor(&[0i32], &[1]))]).expect("runs");
        }
    }
}
