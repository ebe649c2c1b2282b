//! CPU kernels: reductions: sums, means, extrema and norms over axes.

use bytemuck::cast_slice;
use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::reduce::{Extremum, Fold, Number, Ordered, Summed};
use candle_plan_kernels::softmax::log_sum_exp;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::{collected, mapped};
use candle_plan_memory::uninit::Uninit;
use half::{bf16, f16};

use super::blocks::Blocked;
use super::bounds::{counted, is_short, len};
use super::choice::{HasBlocksKernel, OnBlocks};
use super::convert::{read_widened, widened_bytes, Float};
use super::planned::CpuOperands;
use crate::bail;
use crate::dispatch;
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::layout::{Image, Layout};
use crate::operands::reduce::Groups;
use crate::ops::reduce::{Reduce, Reduction};
use crate::types::{Type, Types};
use crate::value::{Array, Value};

impl Kernel for Reduce {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let (dims, dtype) = (inputs.sizes(0).ok()??, inputs.tensor(0).ok()?.dtype);
        let axes = match inputs.optional(1) {
            Some(_) => Some(inputs.constant(1)?.to_i64().ok()?),
            None => None,
        };
        let mask = self.mask(axes.as_deref(), dims.len()).ok()?;
        // Each pass has totals of up to 64 bits. In blocks, there may be more channels.
        let unused = dims.first().map_or(0, |batch| batch.saturating_mul(Blocking::MOST));
        let results = |[outer, _, inner]: [usize; 3]| outer.saturating_mul(inner).saturating_add(unused);
        let passes = Groups::new(&dims, &mask).passes();
        let totals = passes.iter().map(|&pass| counted::<f64>(results(pass))).fold(0, usize::saturating_add);
        let has_sums_of_columns = self.function == Reduction::LogSumExp;
        if has_sums_of_columns && !passes.iter().all(|&[_, _, inner]| is_short(inner)) {
            return None;
        }
        let converted = match dtype {
            DType::Float16 | DType::Bfloat16 => widened_bytes(self, inputs, |_| false)?,
            _ if !dtype.is_float() && has_sums_of_columns => counted::<f64>(len(inputs, 0)?),
            _ => 0,
        };
        Some(totals.saturating_add(converted))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (mask, dims) = self.mask_and_dims(call)?;
        let groups = Groups::new(x.dims(), &mask);
        let y = match x.dtype() {
            DType::Bool => self.reduce_bools(call.threads, x.read()?, &groups, &dims),
            DType::Float16 => self.reduce_halves::<f16>(call.threads, x, &groups, &dims),
            DType::Bfloat16 => self.reduce_halves::<bf16>(call.threads, x, &groups, &dims),
            DType::Int8 => Array::new(self.extremum::<i8>(call.threads, x.read()?, &groups)?, &dims),
            DType::Uint8 => Array::new(self.extremum::<u8>(call.threads, x.read()?, &groups)?, &dims),
            dtype => dispatch!("Reduce", dtype, [f32, f64, i32, i64, u32, u64], T => {
                Array::new(self.reduce::<T>(call.threads, x.read::<T>()?, &groups)?, &dims)
            }),
        }?;
        Ok(vec![y.into()])
    }
}

impl HasBlocksKernel for Reduce {
    fn on_blocks(&self, operands: &CpuOperands, outputs: &[Option<&Type>]) -> Option<OnBlocks> {
        let x = Image::of(operands.constants.types.first().copied().flatten()?)?;
        Image::of(outputs.first().copied().flatten()?)?;
        let mut axes = self.axes.clone().filter(|_| operands.constants.types.len() == 1)?;
        axes.sort_unstable();
        let is_plane = (2..x.rank as i64).eq(axes);
        let layouts = Blocked {
            rank: x.rank,
            inputs: vec![Layout::Blocks],
            outputs: vec![Layout::Blocks],
            times: [0.0, x.wasted(operands.blocking) as f64],
        };
        (self.keepdims && is_plane).then_some(OnBlocks::with_own(layouts))
    }
}

impl Reduce {
    /// Computes an extremum of a type without sums.
    fn extremum<T: Ordered>(&self, threads: &Threads, x: &[T], groups: &Groups) -> Result<Vec<T>> {
        match self.function.extremum() {
            Some(which) => Ok(groups.extremum(which, threads, x)),
            None => bail!("{:?} is not defined for this element type", self.function),
        }
    }
}

impl Reduce {
    fn reduce_halves<T: Float<Wide = f32>>(
        &self,
        threads: &Threads,
        x: &Array,
        groups: &Groups,
        dims: &[usize],
    ) -> Result<Array> {
        let y = self.reduce::<f32>(threads, &read_widened::<T>(x)?, groups)?;
        Array::new(T::narrow(y), dims)
    }

    fn reduce_bools(&self, threads: &Threads, x: &[Bool], groups: &Groups, dims: &[usize]) -> Result<Array> {
        let y = self.extremum::<u8>(threads, cast_slice(x), groups)?;
        Array::new(mapped(y, |v| Bool::from(v != 0)), dims)
    }

    fn reduce<T: Reducible>(&self, threads: &Threads, x: &[T], groups: &Groups) -> Result<Vec<T>> {
        let totals = |fold| groups.fold(fold, threads, x);
        let real = |total: T::Total| total.to_f64();
        Ok(match self.function {
            Reduction::Sum => mapped(totals(Fold::Sum), T::from_total),
            Reduction::Mean => mapped(totals(Fold::Sum), |total| T::mean(total, groups.reduced())),
            Reduction::Max | Reduction::Min => return self.extremum(threads, x, groups),
            Reduction::Prod => mapped(totals(Fold::Product), T::from_total),
            Reduction::L1 => mapped(totals(Fold::SumAbs), T::from_total),
            Reduction::L2 => mapped(totals(Fold::SumSquare), |total| T::from_f64(real(total).sqrt())),
            Reduction::LogSum => mapped(totals(Fold::Sum), |total| T::from_f64(real(total).ln())),
            Reduction::LogSumExp => T::log_sum_exp(threads, x, groups),
            Reduction::SumSquare => mapped(totals(Fold::SumSquare), T::from_total),
        })
    }
}

/// The reduction that [`Summed`] lacks.
trait Reducible: Summed {
    fn log_sum_exp(threads: &Threads, x: &[Self], groups: &Groups) -> Vec<Self>;
}

macro_rules! reducible {
    (real: $($real:ident)*; integer: $($integer:ident)*) => {
        $(impl Reducible for $real {
            fn log_sum_exp(threads: &Threads, x: &[$real], groups: &Groups) -> Vec<$real> {
                groups.log_sum_exp(threads, x)
            }
        })*
        $(impl Reducible for $integer {
            fn log_sum_exp(threads: &Threads, x: &[$integer], groups: &Groups) -> Vec<$integer> {
                let x: Vec<f64> = collected(x.iter().map(|v| Number::to_f64(*v)));
                mapped(groups.log_sum_exp(threads, &x), <$integer as Number>::from_f64)
            }
        })*
    };
}

reducible! { real: f32 f64; integer: i32 i64 u32 u64 }

impl Groups {
    /// Returns the number of elements per result.
    pub(crate) fn reduced(&self) -> usize {
        self.0.iter().filter(|(_, reduced)| *reduced).map(|(size, _)| size).product()
    }

    /// Returns `[outer, n, inner]` of each pass. Without reduced axes, there is one pass over one element.
    fn passes(&self) -> Vec<[usize; 3]> {
        let size = |groups: &[(usize, bool)], all: bool| -> usize {
            groups.iter().filter(|(_, reduced)| all || !reduced).map(|(size, _)| size).product()
        };
        let places = (0..self.0.len()).rev().filter(|&i| self.0[i].1);
        let pass = |i: usize| [size(&self.0[..i], true), self.0[i].0, size(&self.0[i + 1..], false)];
        let passes: Vec<[usize; 3]> = places.map(pass).collect();
        if passes.is_empty() {
            vec![[size(&self.0, true), 1, 1]]
        } else {
            passes
        }
    }

    fn fold<T: Summed>(&self, fold: Fold, threads: &Threads, x: &[T]) -> Vec<T::Total> {
        let then = if fold == Fold::Product { Fold::Product } else { Fold::Sum };
        let passes = self.passes();
        let mut totals = allocated(passes[0], |out| T::fold(fold, Isa::get(), threads, x, passes[0], out));
        for &dims in &passes[1..] {
            totals = allocated(dims, |out| <T::Total as Summed>::fold(then, Isa::get(), threads, &totals, dims, out));
        }
        totals
    }

    /// Passes can follow each other: the logarithm of a sum of sums is the log-sum-exp of the sums' logarithms.
    fn log_sum_exp<R: Real>(&self, threads: &Threads, x: &[R]) -> Vec<R> {
        self.each_pass(x, |x, dims, out| log_sum_exp(Isa::get(), threads, x, dims, out))
    }

    fn each_pass<T: bytemuck::Pod>(&self, x: &[T], pass: impl Fn(&[T], [usize; 3], &mut [T])) -> Vec<T> {
        let passes = self.passes();
        let mut y = allocated(passes[0], |out| pass(x, passes[0], out));
        for &dims in &passes[1..] {
            y = allocated(dims, |out| pass(&y, dims, out));
        }
        y
    }

    fn extremum<T: Ordered>(&self, which: Extremum, threads: &Threads, x: &[T]) -> Vec<T> {
        self.each_pass(x, |x, dims, out| T::extremum(which, Isa::get(), threads, x, dims, out))
    }
}

fn allocated<T: bytemuck::Pod>([outer, _, inner]: [usize; 3], fill: impl FnOnce(&mut [T])) -> Vec<T> {
    Uninit::new(outer * inner).overwrite(fill)
}

#[cfg(test)]
impl Reduction {
    pub(crate) const ALL: [Reduction; 10] = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Max,
        Reduction::Min,
        Reduction::Prod,
        Reduction::L1,
        Reduction::L2,
        Reduction::LogSum,
        Reduction::LogSumExp,
        Reduction::SumSquare,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn reduce(function: Reduction, axes: Option<Vec<i64>>, keepdims: bool) -> Reduce {
        Reduce { function, axes, keepdims, noop_with_empty_axes: false }
    }

    /// Computes the result for one group, in `f64`.
    fn plain(function: Reduction, x: &[f64]) -> f64 {
        let sum = |f: fn(f64) -> f64| x.iter().map(|&v| f(v)).sum::<f64>();
        match function {
            Reduction::Sum => sum(|v| v),
            Reduction::Mean => sum(|v| v) / x.len() as f64,
            Reduction::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Reduction::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
            Reduction::Prod => x.iter().product(),
            Reduction::L1 => sum(f64::abs),
            Reduction::L2 => sum(|v| v * v).sqrt(),
            Reduction::LogSum => sum(|v| v).ln(),
            Reduction::LogSumExp => sum(f64::exp).ln(),
            Reduction::SumSquare => sum(|v| v * v),
        }
    }

    #[test]
    fn every_function_over_every_set_of_axes() {
        let dims = [2, 3, 4, 5];
        let x: Vec<f64> = (0..120).map(|i| 0.25 + f64::from(i * 37 % 101) / 64.0).collect();
        for set in 0..16usize {
            let axes: Vec<i64> = (0..4).filter(|a| set >> a & 1 == 1).map(|a| if a > 1 { a - 4 } else { a }).collect();
            let kept = |i: usize| {
                let place = [i / 60, i / 20 % 3, i / 5 % 4, i % 5];
                (0..4).filter(|a| set >> a & 1 == 0).fold(0, |at, a| at * dims[a] + place[a])
            };
            let outputs = 1 + (0..120).map(kept).max().unwrap_or(0);
            for function in Reduction::ALL {
                let row = |o| (0..120).filter(|&i| kept(i) == o).map(|i| x[i]).collect::<Vec<_>>();
                let expected: Vec<f64> = (0..outputs).map(|o| plain(function, &row(o))).collect();
                let op = reduce(function, Some(axes.clone()), true);
                for input in [tensor(&x.iter().map(|&v| v as f32).collect::<Vec<_>>(), &dims), tensor(&x, &dims)] {
                    let y = run(&op, &[Some(input)]).expect("runs");
                    let y: Vec<f64> = y.tensor().expect("a tensor").to_f64().expect("floats");
                    assert_eq!(y.len(), expected.len(), "{op:?}");
                    for (y, expected) in y.iter().zip(&expected) {
                        assert!((y - expected).abs() <= 2e-6 * expected.abs().max(1.0), "{op:?}: {y} {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn empty_inputs_give_the_identity() {
        let inf = f32::INFINITY;
        for (function, float, integer) in [
            (Reduction::Sum, 0.0, 0),
            (Reduction::Mean, 0.0, 0),
            (Reduction::Max, -inf, i32::MIN),
            (Reduction::Min, inf, i32::MAX),
            (Reduction::Prod, 1.0, 1),
            (Reduction::L1, 0.0, 0),
            (Reduction::L2, 0.0, 0),
            (Reduction::LogSum, -inf, i32::MIN),
            (Reduction::LogSumExp, -inf, i32::MIN),
            (Reduction::SumSquare, 0.0, 0),
        ] {
            let op = reduce(function, Some(vec![1]), false);
            let y = run(&op, &[Some(tensor::<f32>(&[], &[2, 0]))]).expect("runs");
            assert_eq!(*y.tensor().unwrap().read::<f32>().unwrap(), [float; 2], "{function:?}");
            let y = run(&op, &[Some(tensor::<i32>(&[], &[2, 0]))]).expect("runs");
            assert_eq!(*y.tensor().unwrap().read::<i32>().unwrap(), [integer; 2], "{function:?}");
        }
        for (function, expected) in [(Reduction::Max, false), (Reduction::Min, true)] {
            let y = run(&reduce(function, None, false), &[Some(tensor::<Bool>(&[], &[0, 3]))]).expect("runs");
            assert_eq!(*y.tensor().unwrap().read::<Bool>().unwrap(), [Bool::from(expected)]);
        }
    }

    #[test]
    fn axes_may_be_an_input() {
        let x = || Some(tensor(&[1i64, 2, 3, 4, 5, 6], &[2, 3]));
        for (noop, axes, expected) in [
            (false, &[-1][..], &[6, 15][..]),
            (false, &[], &[21]),
            (true, &[], &[1, 2, 3, 4, 5, 6]),
            (false, &[0, 1], &[21]),
        ] {
            let op = Reduce { noop_with_empty_axes: noop, ..reduce(Reduction::Sum, None, false) };
            let y = run(&op, &[x(), Some(tensor::<i64>(axes, &[axes.len()]))]).expect("runs");
            assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), expected, "{axes:?}");
        }
        for axes in [vec![2], vec![0, -2]] {
            assert!(run(&reduce(Reduction::Sum, Some(axes), true), &[x()]).is_err());
        }
    }

    #[test]
    fn half_floats_are_summed_in_f32() {
        let x = vec![f16::from_f32(0.1); 4096];
        let y = run(&reduce(Reduction::Sum, None, false), &[Some(tensor(&x, &[4096]))]).expect("runs");
        assert_eq!(*y.tensor().unwrap().read::<f16>().unwrap(), [f16::from_f32(4096.0 * f16::from_f32(0.1).to_f32())]);
    }

    #[test]
    fn real_results_of_integers_are_truncated() {
        for (function, expected) in [(Reduction::L2, 7), (Reduction::LogSumExp, 5), (Reduction::Mean, 4)] {
            let y = run(&reduce(function, None, false), &[Some(tensor(&[3i32, 4, 5], &[3]))]).expect("runs");
            assert_eq!(*y.tensor().unwrap().read::<i32>().unwrap(), [expected], "{function:?}");
        }
    }
}
