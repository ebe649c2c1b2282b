//! CPU kernels: running sums and products along an axis.

use candle_plan_kernels::reduce::Number;
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::is_cached;
use half::{bf16, f16};

use super::convert::{widened_bytes, Float};
use crate::axes;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::cumulative::{Accumulation, Cumulative};
use crate::types::Types;
use crate::value::{alloc_uninit, Array, Value};

/// Elements per task, about 20 µs of work.
const TASK: usize = 1 << 14;

impl Kernel for Cumulative {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        // Each thread has the totals of a row, which is not longer than a plane.
        let dims = inputs.sizes(0).ok()??;
        let plane = dims.iter().skip(1).fold(1, |plane: usize, &dim| plane.saturating_mul(dim));
        is_cached::<u64>(plane).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (x, axis) = (call.tensor(0)?, axes::number("axis", call.tensor(1)?)?);
        let split = axes::split(x.dims(), axis)?;
        let threads = call.threads;
        let y = match x.dtype() {
            DType::Float16 => Array::new(f16::narrow(self.scan(threads, &f16::widen(x.read()?), split)?), x.dims()),
            DType::Bfloat16 => Array::new(bf16::narrow(self.scan(threads, &bf16::widen(x.read()?), split)?), x.dims()),
            dtype => dispatch!("Cumulative", dtype, [f32, f64, i32, i64, u32, u64], T => {
                Array::new(self.scan::<T>(threads, x.read::<T>()?, split)?, x.dims())
            }),
        }?;
        Ok(vec![y.into()])
    }
}

impl Cumulative {
    fn scan<T: Scan>(&self, threads: &Threads, x: &[T], split: [usize; 3]) -> Result<Vec<T>> {
        match self.function {
            Accumulation::Sum => self.accumulate(threads, x, split, T::from_f64(0.0), T::plus),
            Accumulation::Prod => self.accumulate(threads, x, split, T::from_f64(1.0), T::times),
        }
    }

    fn accumulate<T: Scan>(
        &self,
        threads: &Threads,
        x: &[T],
        [outer, n, inner]: [usize; 3],
        start: T,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> Result<Vec<T>> {
        let y = alloc_uninit(&[outer, n, inner])?;
        let block = (n * inner).max(1);
        let per_task = (TASK / block).max(1) * block;
        let some = |task: usize, y: &mut [T]| {
            let mut totals = Scratch::filled(start, inner);
            for (x, y) in x[task * per_task..].chunks_exact(block).zip(y.chunks_exact_mut(block)) {
                totals.fill(start);
                self.accumulate_block(x, y, &mut totals, &combine);
            }
        };
        Ok(y.overwrite(|y| threads.for_each_chunk(y, per_task, some)))
    }

    /// Accumulates the rows of one block, starting from `totals`, which serve as scratch.
    fn accumulate_block<T: Scan>(&self, x: &[T], y: &mut [T], totals: &mut [T], combine: impl Fn(T, T) -> T) {
        // A total in memory would make each addition wait for the store of the previous one.
        if let [total] = totals {
            let mut sum = *total;
            let pass = |(&x, y): (&T, &mut T)| {
                let next = combine(sum, x);
                *y = if self.exclusive { sum } else { next };
                sum = next;
            };
            let places = x.iter().zip(y);
            return if self.reverse { places.rev().for_each(pass) } else { places.for_each(pass) };
        }
        let inner = totals.len();
        let n = x.len() / inner;
        for k in 0..n {
            let row = if self.reverse { n - 1 - k } else { k } * inner;
            let places = x[row..row + inner].iter().zip(&mut y[row..row + inner]);
            for ((&x, y), total) in places.zip(&mut *totals) {
                let next = combine(*total, x);
                *y = if self.exclusive { *total } else { next };
                *total = next;
            }
        }
    }
}

/// The operations that [`Number`] lacks for running totals.
trait Scan: Number + Element {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! scan {
    ($($number:ident: $plus:expr, $times:expr;)*) => {
        $(impl Scan for $number {
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            fn times(self, other: Self) -> Self {
                $times(self, other)
            }
        })*
    };
}

scan! {
    f32: |a, b| a + b, |a, b| a * b;
    f64: |a, b| a + b, |a, b| a * b;
    i32: i32::wrapping_add, i32::wrapping_mul;
    i64: i64::wrapping_add, i64::wrapping_mul;
    u32: u32::wrapping_add, u32::wrapping_mul;
    u64: u64::wrapping_add, u64::wrapping_mul;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn totals_run_forward_and_in_reverse() {
        let x = [1, 2, 3, 4, 5, 6];
        for (function, exclusive, reverse, axis, expected) in [
            (Accumulation::Sum, false, false, 0, [1, 2, 3, 5, 7, 9]),
            (Accumulation::Sum, true, false, 1, [0, 1, 3, 0, 4, 9]),
            (Accumulation::Sum, false, true, -1, [6, 5, 3, 15, 11, 6]),
            (Accumulation::Sum, true, true, -2, [4, 5, 6, 0, 0, 0]),
            (Accumulation::Prod, false, false, 1, [1, 2, 6, 4, 20, 120]),
            (Accumulation::Prod, true, true, 1, [6, 3, 1, 30, 6, 1]),
        ] {
            let op = Cumulative { function, exclusive, reverse };
            let inputs = [Some(tensor(&x, &[2, 3])), Some(tensor(&[axis], &[]))];
            let y = run(&op, &inputs).expect("runs");
            assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), expected, "{op:?} axis {axis}");
            let halves = [Some(tensor(&x.map(|v: i32| f16::from_f32(v as f32)), &[2, 3])), inputs[1].clone()];
            let y = run(&op, &halves).expect("runs");
            let y: Vec<i64> = y.tensor().unwrap().read::<f16>().unwrap().iter().map(|v| v.to_f32() as i64).collect();
            assert_eq!(y, expected, "{op:?} axis {axis} in float16");
        }
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let x: Vec<f32> = (0..3 * 7001 * 3).map(|i| (i * 7919 % 101) as f32 / 7.0).collect();
        let two = Threads::new(2).expect("a pool of two threads");
        for (split, reverse) in
            [([3, 7001, 3], false), ([9 * 7001, 1, 1], true), ([1, 7001, 9], true), ([63, 999, 1], false)]
        {
            let op = Cumulative { function: Accumulation::Sum, exclusive: false, reverse };
            let x = &x[..split.iter().product()];
            let [serial, threaded] =
                [&Threads::serial(), &two].map(|threads| op.scan(threads, x, split).expect("enough memory"));
            assert_eq!(serial, threaded, "{split:?}");
            let [_, n, inner] = split;
            let last = |c: usize| (0..n).map(|i| f64::from(x[i * inner + c])).sum::<f64>();
            let end = if reverse { 0 } else { (n - 1) * inner };
            for c in 0..inner {
                assert!((f64::from(serial[end + c]) - last(c)).abs() <= 1e-4 * last(c), "{split:?}");
            }
        }
    }

    #[test]
    fn bad_axes_are_refused_and_integers_wrap() {
        let op = Cumulative { function: Accumulation::Sum, exclusive: false, reverse: false };
        let x = || Some(tensor(&[u32::MAX - 55, 100], &[2]));
        for axis in [tensor(&[1i64], &[]), tensor(&[0i64, 0], &[2]), tensor(&[0f32], &[])] {
            assert!(run(&op, &[x(), Some(axis)]).is_err());
        }
        let y = run(&op, &[x(), Some(tensor(&[0i64], &[1]))]).expect("runs");
        assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), [i64::from(u32::MAX) - 55, 44]);
    }
}
