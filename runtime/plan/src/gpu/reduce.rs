//! GPU kernels: reductions over any axes.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::launch::{alloc_uninit, count, kind, launch, Params};
use super::shapes::{Dims, Strides};
use super::team::Teams;
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::Call;
use crate::operands::reduce::Groups;
use crate::ops::reduce::{Reduce, Reduction};
use crate::value::{Array, Value};

/// X has the kept and the reduced dimensions, Y an element per element of the kept ones, and `totals` has 16 bytes per
/// part of each result.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Reduce in "reduce.cuh")]
struct ReduceParams {
    x: u64,
    y: u64,
    totals: u64,
    function: u32,
    results: u32,
    n: u32,
    parts: u32,
    part: u32,
    truth: u32,
    teams: Teams,
    kept: Dims,
    reduced: Dims,
    kept_steps: Strides,
    reduced_steps: Strides,
}

/// The kernel that reduces, and the kernel that combines the totals of parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels {
    pub module: &'static str,
    pub whole: &'static str,
    pub parts: &'static str,
}

/// Kernels that find the indices of extrema.
pub(super) const PLACE: Kernels =
    Kernels { module: "reduce_place", whole: "reduce_place", parts: "reduce_place_parts" };

const SUM: Kernels = Kernels { module: "reduce", whole: "reduce_sum", parts: "reduce_sum_parts" };

const PRODUCT: Kernels = Kernels { module: "reduce", whole: "reduce_product", parts: "reduce_product_parts" };

const EXTREMUM: Kernels =
    Kernels { module: "reduce_extremum", whole: "reduce_extremum", parts: "reduce_extremum_parts" };

const LOG_SUM_EXP: Kernels =
    Kernels { module: "reduce_log_sum_exp", whole: "reduce_log_sum_exp", parts: "reduce_log_sum_exp_parts" };

impl Kernels {
    fn of(function: Reduction) -> Kernels {
        match function {
            Reduction::Max | Reduction::Min => EXTREMUM,
            Reduction::Prod => PRODUCT,
            Reduction::LogSumExp => LOG_SUM_EXP,
            _ => SUM,
        }
    }

    /// Reduces X, grouped into these dimensions, to Y.
    ///
    /// # Errors
    /// There are more elements or dimensions than kernels support, or the device fails.
    pub fn run(self, gpu: &Gpu, function: u32, x: &Array, groups: &Groups, y: &Array) -> Result<()> {
        count(x.len())?;
        let (results, n) = (count(y.len())?, count(groups.reduced())?);
        let is_inner = groups.sizes().last().is_some_and(|&(_, reduced)| reduced);
        let teams = if is_inner { Teams::along(n) } else { Teams::across(n, results) };
        let (parts, part) = parts(n, teams, results);
        let totals = match parts {
            1 => None,
            parts => Some(alloc_uninit(gpu, &[parts as usize, results as usize, 2], DType::Float64)?),
        };
        let (kept, kept_steps) = dims_and_steps(groups, false)?;
        let (reduced, reduced_steps) = dims_and_steps(groups, true)?;
        let params = ReduceParams {
            x: x.address()?,
            y: y.address()?,
            totals: totals.as_ref().map(Array::address).transpose()?.unwrap_or(0),
            function,
            results,
            n,
            parts,
            part,
            truth: (y.dtype() == DType::Bool).into(),
            teams,
            kept,
            reduced,
            kept_steps,
            reduced_steps,
        };
        let kind = kind(x.dtype())?;
        let kernel = |name| Symbol { module: self.module, name, kind };
        launch(gpu, kernel(self.whole), Grid::blocks(teams.blocks(results) * parts), &params)?;
        match totals {
            Some(_) => launch(gpu, kernel(self.parts), Grid::over(results), &params),
            None => Ok(()),
        }
    }
}

/// Returns the number of parts and the elements per part, so that even few long results use many blocks.
fn parts(n: u32, teams: Teams, results: u32) -> (u32, u32) {
    /// The number of blocks that keeps every GPU busy.
    const BLOCKS: u32 = 1024;
    /// The fewest elements per thread for which a part pays off.
    const MANY: u32 = 64;
    let wanted = BLOCKS / teams.blocks(results).max(1);
    let parts = wanted.min(n.div_ceil(teams.size() * MANY)).max(1);
    let part = n.div_ceil(parts);
    // Because `part` is rounded up, fewer parts may suffice.
    (n.div_ceil(part.max(1)).max(1), part)
}

/// Returns the reduced or the kept dimensions, and their strides.
fn dims_and_steps(groups: &Groups, reduced: bool) -> Result<(Dims, Strides)> {
    let (mut dims, mut steps, mut step) = (Vec::new(), Vec::new(), 1isize);
    for &(size, is_reduced) in groups.sizes().iter().rev() {
        if is_reduced == reduced {
            dims.insert(0, size);
            steps.insert(0, step);
        }
        step = step.saturating_mul(size as isize);
    }
    Ok((Dims::new(&dims)?, Strides::new(steps)?))
}

gpu_kernel!(Reduce: "reduce");

impl OnGpu for Reduce {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (mask, dims) = self.mask_and_dims(call)?;
        let y = alloc_uninit(gpu, &dims, x.dtype())?;
        Kernels::of(self.function).run(gpu, self.function as u32, x, &Groups::new(x.dims(), &mask), &y)?;
        Ok(vec![y.into()])
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::dtype::Bool;
    use crate::testing::{run, tensor};

    /// `run` also compares with the CPU.
    fn check(function: Reduction, axes: &[i64], x: Value) {
        let op = Reduce { function, axes: Some(axes.to_vec()), keepdims: false, noop_with_empty_axes: false };
        run(&op, &[Some(x)]).expect("runs");
    }

    /// Numbers around 1, so that long products stay finite.
    fn values(len: usize) -> Vec<f32> {
        (0..len).map(|i| 0.75 + (i * 7919 % 1013) as f32 / 2048.0).collect()
    }

    #[test]
    fn lines_of_any_length_in_any_place() {
        for (dims, axes) in [
            (&[3, 129][..], &[1][..]),
            (&[300, 3], &[1]),
            (&[70, 65], &[0]),
            (&[700, 2], &[0]),
            (&[2, 40_000], &[-1]),
            (&[9000, 3], &[0]),
            (&[40, 5, 60], &[0, 2]),
            (&[2, 3, 2, 3, 2, 3, 2, 2, 1, 2], &[0, 2, 4, 6, -1]),
        ] {
            for function in Reduction::ALL {
                let x = values(dims.iter().product());
                check(function, axes, tensor(&x, dims));
                if x.len() < 5000 {
                    check(function, axes, tensor(&x.iter().map(|&v| f64::from(v)).collect::<Vec<_>>(), dims));
                    check(function, axes, tensor(&x.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>(), dims));
                    check(function, axes, tensor(&x.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<_>>(), dims));
                }
            }
        }
    }

    #[test]
    fn integers_wrap_truncate_and_saturate() {
        for function in Reduction::ALL {
            for (dims, axis) in [([3, 50], 1), ([50, 3], 0)] {
                let x = (0..150i64).map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64));
                check(function, &[axis], tensor(&x.clone().collect::<Vec<_>>(), &dims));
                check(function, &[axis], tensor(&x.clone().map(|v| v as u64).collect::<Vec<_>>(), &dims));
                check(function, &[axis], tensor(&x.clone().map(|v| (v >> 32) as i32).collect::<Vec<_>>(), &dims));
                check(function, &[axis], tensor(&x.clone().map(|v| (v >> 32) as u32).collect::<Vec<_>>(), &dims));
                if matches!(function, Reduction::Max | Reduction::Min) {
                    check(function, &[axis], tensor(&x.clone().map(|v| v as i8).collect::<Vec<_>>(), &dims));
                    check(function, &[axis], tensor(&x.clone().map(|v| v as u8).collect::<Vec<_>>(), &dims));
                    check(function, &[axis], tensor(&x.map(|v| Bool::from(v & 16 > 0)).collect::<Vec<_>>(), &dims));
                }
            }
        }
    }

    #[test]
    fn infinities_and_nan() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let rows =
            [[-inf, -inf, -inf], [inf, 0.0, inf], [nan, 1.0, 2.0], [1.0, nan, 2.0], [-inf, 2.0, 3.0], [-2.0, 0.0, 1.0]];
        for function in Reduction::ALL {
            check(function, &[1], tensor(&rows.concat(), &[6, 3]));
            let columns: Vec<f32> = (0..3).flat_map(|k| rows.map(|row| row[k])).collect();
            check(function, &[0], tensor(&columns, &[3, 6]));
        }
    }

    #[test]
    fn empty_inputs_give_the_identity() {
        for function in Reduction::ALL {
            check(function, &[0, 1], tensor::<f32>(&[], &[0, 2]));
            check(function, &[0], tensor::<f32>(&[], &[5, 0, 2]));
        }
    }

    #[test]
    fn long_results_are_computed_in_parts() {
        assert_eq!(parts(0, Teams::along(0), 5), (1, 0));
        assert_eq!(parts(100, Teams::along(100), 1), (1, 100));
        for (n, results) in [(1 << 20, 1), (100_000, 3), (123_457, 40), (1 << 30, 1 << 10)] {
            let (parts, part) = parts(n, Teams::along(n), results);
            assert!(part * (parts - 1) < n && u64::from(part) * u64::from(parts) >= n.into(), "{n} {parts} {part}");
        }
    }
}
