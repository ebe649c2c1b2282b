//! CPU kernels: softmax, log-softmax and hardmax.

use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::rewrite::Rewrite;
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::softmax::{softmax, Function};
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};

use super::bounds::is_short;
use super::convert::{is_wide, widened_bytes};
use super::rewrite::rewrite;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::softmax::{Softmax, SoftmaxFunction};
use crate::types::Types;
use crate::value::Value;

impl Kernel for Softmax {
    fn takes(&self, input: usize, dtype: DType) -> bool {
        input == 0 && is_wide(dtype)
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let [outer, _, inner] = self.split(&inputs.sizes(0).ok()??).ok()?;
        let columns = if self.function == SoftmaxFunction::Hardmax { outer.saturating_mul(inner) } else { inner };
        is_short(columns).then(|| widened_bytes(self, inputs, |_| false))?
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let [_, n, inner] = self.split(x.dims())?;
        let row = n * inner;
        let y = dispatch!("Softmax", x.dtype(), [f32, f64, f16, bf16], T => {
            rewrite::<T>(call, 0, row, |threads, x| {
                let outer = x.len().checked_div(row).unwrap_or(0);
                self.compute(threads, x, [outer, n, inner]);
            })
        })?;
        Ok(vec![y.into()])
    }
}

impl Softmax {
    fn compute<R: Real>(&self, threads: &Threads, x: Rewrite<R>, dims: [usize; 3]) {
        match self.function {
            SoftmaxFunction::Softmax => softmax(Function::Softmax, Isa::get(), threads, x, dims),
            SoftmaxFunction::LogSoftmax => softmax(Function::LogSoftmax, Isa::get(), threads, x, dims),
            SoftmaxFunction::Hardmax => hardmax(x, dims),
        }
    }
}

fn hardmax<R: Real>(mut x: Rewrite<R>, [outer, n, inner]: [usize; 3]) {
    if x.source().is_empty() {
        return;
    }
    let mut largest = Scratch::filled(0usize, outer * inner);
    for (column, largest) in largest.iter_mut().enumerate() {
        let at = |k: usize| x.source()[(column / inner * n + k) * inner + column % inner];
        *largest = (1..n).fold(0, |best, k| if at(k) > at(best) { k } else { best });
    }
    x.fill(R::from_f64(0.0));
    for (column, &k) in largest.iter().enumerate() {
        x.set((column / inner * n + k) * inner + column % inner, R::from_f64(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::testing::{run, tensor};

    fn op(function: SoftmaxFunction, axis: i64, coerce_2d: bool) -> Softmax {
        Softmax { function, axis, coerce_2d }
    }

    #[test]
    fn rows_are_normalized_along_the_axis() {
        let x: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 11) / 3.0).collect();
        for (axis, coerce_2d, split) in [
            (0, false, [1, 2, 12]),
            (1, false, [2, 3, 4]),
            (-1, false, [6, 4, 1]),
            (1, true, [2, 12, 1]),
            (-2, true, [2, 12, 1]),
            (0, true, [1, 24, 1]),
            (3, true, [24, 1, 1]),
        ] {
            let [_, n, inner] = split;
            let members = |i: usize| (0..n).map(move |k| (i / (n * inner) * n + k) * inner + i % inner);
            let sum = |i: usize| members(i).map(|j| x[j].exp()).sum::<f64>();
            let first = |i: usize| {
                members(i).fold(None, |best: Option<usize>, j| match best {
                    Some(b) if x[b] >= x[j] => Some(b),
                    _ => Some(j),
                })
            };
            for (function, expected) in [
                (SoftmaxFunction::Softmax, (0..24).map(|i| x[i].exp() / sum(i)).collect::<Vec<f64>>()),
                (SoftmaxFunction::LogSoftmax, (0..24).map(|i| x[i] - sum(i).ln()).collect()),
                (SoftmaxFunction::Hardmax, (0..24).map(|i| f64::from(u8::from(first(i) == Some(i)))).collect()),
            ] {
                let op = op(function, axis, coerce_2d);
                let halves: Vec<f16> = x.iter().map(|&v| f16::from_f64(v)).collect();
                let singles: Vec<f32> = x.iter().map(|&v| v as f32).collect();
                for (input, tolerance) in [
                    (tensor(&x, &[2, 3, 4]), 1e-12),
                    (tensor(&singles, &[2, 3, 4]), 2e-6),
                    (tensor(&halves, &[2, 3, 4]), 5e-3),
                ] {
                    let y = run(&op, &[Some(input)]).expect("runs");
                    let y: Vec<f64> = y.tensor().expect("a tensor").to_f64().expect("floats");
                    for (y, expected) in y.iter().zip(&expected) {
                        assert!((y - expected).abs() <= tolerance, "{op:?}: {y} {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn mismatched_inputs_are_refused() {
        for (axis, coerce_2d, input) in [
            (2, false, tensor(&[1f32], &[1, 1])),
            (3, true, tensor(&[1f32], &[1, 1])),
            (0, false, tensor(&[1f32], &[])),
            (0, false, tensor(&[1i32], &[1])),
        ] {
            assert!(run(&op(SoftmaxFunction::Softmax, axis, coerce_2d), &[Some(input)]).is_err());
        }
        let empty = run(&op(SoftmaxFunction::Hardmax, 0, false), &[Some(tensor::<f32>(&[], &[0, 3]))]).expect("runs");
        assert_eq!(empty.tensor().expect("a tensor").dtype(), DType::Float32);
    }
}
