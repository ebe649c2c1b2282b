//! Softmax, log-softmax and log-sum-exp along the middle axis of `[outer, n, inner]`.
//!
//! The maximum is subtracted first, so that no finite input overflows. A row that contains NaN or +∞, or only −∞, gives
//! NaN, as in onnxruntime.

mod function;
mod rows;
mod short;

pub use function::Function;
pub(crate) use rows::exponentiate as exponentiate_rows;

use crate::float_types::Real;
use crate::isa::Isa;
use crate::lane_loops::{fold, load, per_isa, LANES};
use crate::rewrite::Rewrite;
use crate::scratch::Scratch;
use crate::threads::Threads;
use rows::BLOCK;

/// Elements per task, at least.
const TASK: usize = 1 << 14;
/// Elements per vector of exponentials.
const W: usize = 16;

/// Computes softmax or its logarithm along the middle axis of `[outer, n, inner]`.
pub fn softmax<R: Real>(function: Function, isa: Isa, threads: &Threads, x: Rewrite<R>, [outer, n, inner]: [usize; 3]) {
    assert_eq!(x.len(), outer * n * inner, "the input fills its shape");
    if x.is_empty() {
        return;
    }
    if inner == 1 {
        x.for_each_chunk(threads, TASK.div_ceil(n) * n, |_, mut rows| match R::singles(&mut rows) {
            Some(rows) if n <= short::MOST => short::softmax(isa, function, n, rows),
            Some(rows) => rows::softmax(isa, function, n, rows),
            None => softmax_rows(isa, function, n, rows),
        });
    } else if n * inner > TASK {
        let mut x = x;
        for block in 0..outer {
            softmax_columns(function, isa, threads, x.part(block * n * inner, n * inner), inner);
        }
    } else {
        let together = TASK / (n * inner) * n * inner;
        x.for_each_chunk(threads, together, |_, mut blocks| {
            for block in 0..blocks.len() / (n * inner) {
                let x = blocks.part(block * n * inner, n * inner);
                softmax_columns(function, isa, &Threads::serial(), x, inner);
            }
        });
    }
}

per_isa! {
    /// [`rows::exponentiate`] for any element type.
    pub(crate) fn exponentiate_any<R: Real>(factor: R, rows: &mut [R], sums: &mut [R]) where FMA up to (R::WIDEST) {
        let n = (rows.len() / sums.len().max(1)).max(1);
        for (row, sum) in rows.chunks_exact_mut(n).zip(sums) {
            for x in row.iter_mut() {
                *x = *x * factor;
            }
            let max = fold(row, R::NEG_INFINITY, R::larger, R::larger);
            *sum = exponentiate::<R, FMA>(Rewrite::in_place(row), max);
        }
    }
}

/// Writes `ln Σ eˣ` along the middle axis of `x` `[outer, n, inner]` to `out` `[outer, inner]`; −∞ if there are no
/// elements.
pub fn log_sum_exp<R: Real>(isa: Isa, threads: &Threads, x: &[R], [outer, n, inner]: [usize; 3], out: &mut [R]) {
    assert_eq!(x.len(), outer * n * inner, "the input fills its shape");
    assert_eq!(out.len(), outer * inner, "the output fills its shape");
    if n == 0 || out.is_empty() {
        out.fill(R::NEG_INFINITY);
    } else if inner == 1 {
        let rows = TASK.div_ceil(n);
        threads.for_each_chunk(out, rows, |i, out| log_sum_exp_rows(isa, &x[i * rows * n..], n, out));
    } else {
        for (x, out) in x.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner)) {
            let stats = column_stats(isa, threads, x, inner);
            for (c, out) in out.iter_mut().enumerate() {
                let Stats { max, sum } = &stats[c / LANES];
                let (max, sum) = (max[c % LANES], sum[c % LANES]);
                *out = if is_finite(max) { max + sum.ln() } else { max };
            }
        }
    }
}

per_isa! {
    fn softmax_rows<R: Real>(function: Function, n: usize, rows: Rewrite<'_, R>) where FMA up to (R::WIDEST) {
        let mut rows = rows;
        let mut start = 0;
        while start < rows.len() {
            let mut row = rows.part(start, n);
            let max = fold(row.source(), R::NEG_INFINITY, R::larger, R::larger);
            if function == Function::LogSoftmax {
                let log = sum_exp::<R, FMA>(row.source(), max).ln();
                row.map(|v| v - max - log);
            } else {
                let factor = R::ONE / exponentiate::<R, FMA>(row.part(0, n), max);
                for v in row.target() {
                    *v = *v * factor;
                }
            }
            start += n;
        }
    }
}

/// Sets `x` to `eˣ⁻ᵐᵃˣ`, and returns the sum.
#[inline(always)]
fn exponentiate<R: Real, const FMA: bool>(mut x: Rewrite<R>, max: R) -> R {
    let mut total = 0.0;
    let mut start = 0;
    while start < x.len() {
        let len = BLOCK.min(x.len() - start);
        let mut lanes = [R::ZERO; W];
        x.part(start, len).map_blocks::<W>(R::NEG_INFINITY, |_, mut block| {
            for (lane, v) in lanes.iter_mut().zip(&mut block) {
                *v = (*v - max).exp_of_nonpositive::<FMA>();
                *lane += *v;
            }
            block
        });
        total += join(lanes).to_f64();
        start += len;
    }
    R::from_f64(total)
}

/// `Σ eˣ⁻ᵐᵃˣ`
#[inline(always)]
fn sum_exp<R: Real, const FMA: bool>(x: &[R], max: R) -> R {
    let mut total = 0.0;
    for x in x.chunks(BLOCK) {
        let mut lanes = [R::ZERO; W];
        for block in x.chunks(W) {
            let block: [R; W] = load(block, R::NEG_INFINITY);
            for k in 0..W {
                lanes[k] += (block[k] - max).exp_of_nonpositive::<FMA>();
            }
        }
        total += join(lanes).to_f64();
    }
    R::from_f64(total)
}

#[inline(always)]
fn join<R: Real>(lanes: [R; W]) -> R {
    fold(&lanes, R::ZERO, |a, b| a + b, |a, b| a + b)
}

per_isa! {
    fn log_sum_exp_rows<R: Real>(x: &[R], n: usize, out: &mut [R]) where FMA up to (R::WIDEST) {
        for (row, out) in x.chunks_exact(n).zip(out) {
            let max = fold(row, R::NEG_INFINITY, nan_or_larger, nan_or_larger);
            *out = if is_finite(max) { max + sum_exp::<R, FMA>(row, max).ln() } else { max };
        }
    }
}

/// The larger value; NaN if either is NaN.
#[inline(always)]
#[allow(clippy::eq_op)] // only a NaN differs from itself
fn nan_or_larger<R: Real>(a: R, b: R) -> R {
    if b > a || b != b {
        b
    } else {
        a
    }
}

#[inline(always)]
fn is_finite<R: Real>(x: R) -> bool {
    x.abs() < -R::NEG_INFINITY
}

/// The maximum of each of [`LANES`] neighboring columns (NaN if an element is NaN), and the sum of `eˣ⁻ᵐᵃˣ`.
struct Stats<R> {
    max: [R; LANES],
    sum: [R; LANES],
}

fn column_stats<R: Real>(isa: Isa, threads: &Threads, x: &[R], inner: usize) -> Scratch<Stats<R>> {
    let start = || Stats { max: [R::NEG_INFINITY; LANES], sum: [R::ZERO; LANES] };
    let mut stats = Scratch::of((0..inner.div_ceil(LANES)).map(|_| start()));
    let tiles = (TASK * inner).div_ceil(x.len() * LANES);
    threads.for_each_chunk(&mut stats, tiles, |i, stats| fill_stats(isa, x, inner, i * tiles * LANES, stats));
    stats
}

per_isa! {
    fn fill_stats<R: Real>(x: &[R], inner: usize, first: usize, stats: &mut [Stats<R>]) where FMA up to (R::WIDEST) {
        let mut first = first;
        for stats in stats {
            let last = inner.min(first + LANES);
            for row in x.chunks_exact(inner) {
                for (max, v) in stats.max.chunks_exact_mut(W).zip(row[first..last].chunks(W)) {
                    let block: [R; W] = load(v, R::NEG_INFINITY);
                    for k in 0..W {
                        max[k] = nan_or_larger(max[k], block[k]);
                    }
                }
            }
            for row in x.chunks_exact(inner) {
                let sums = stats.sum.chunks_exact_mut(W).zip(stats.max.chunks_exact(W));
                for ((sum, max), v) in sums.zip(row[first..last].chunks(W)) {
                    let block: [R; W] = load(v, R::NEG_INFINITY);
                    for k in 0..W {
                        sum[k] += (block[k] - max[k]).exp_of_nonpositive::<FMA>();
                    }
                }
            }
            first += LANES;
        }
    }
}

/// Normalizes one block `x` `[n, inner]` along its columns.
fn softmax_columns<R: Real>(function: Function, isa: Isa, threads: &Threads, x: Rewrite<R>, inner: usize) {
    let mut stats = column_stats(isa, threads, x.source(), inner);
    for sum in stats.iter_mut().flat_map(|stats| &mut stats.sum) {
        *sum = if function == Function::Softmax { R::ONE / *sum } else { sum.ln() };
    }
    let rows = TASK.div_ceil(inner);
    x.for_each_chunk(threads, rows * inner, |_, rows| apply_stats(isa, function, rows, inner, &stats));
}

per_isa! {
    fn apply_stats<R: Real>(function: Function, rows: Rewrite<'_, R>, inner: usize, stats: &[Stats<R>]) where FMA up to (R::WIDEST) {
        let mut rows = rows;
        let mut start = 0;
        while start < rows.len() {
            let mut column = 0;
            for Stats { max, sum } in stats {
                let mut tile = rows.part(start + column, LANES.min(inner - column));
                match function {
                    Function::Softmax => tile.map_blocks::<W>(R::ZERO, |first, mut block| {
                        for ((v, max), sum) in block.iter_mut().zip(&max[first..]).zip(&sum[first..]) {
                            *v = (*v - *max).exp_of_nonpositive::<FMA>() * *sum;
                        }
                        block
                    }),
                    Function::LogSoftmax => tile.zip_map(max, sum, |v, max, log| v - max - log),
                }
                column += LANES;
            }
            start += inner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [[usize; 3]; 16] = [
        [1, 1, 1],
        [0, 3, 2],
        [2, 0, 3],
        [3, 7, 1],
        [2, 64, 1],
        [5, 128, 1],
        [37, 2, 1],
        [4, 8, 1],
        [1, 1000, 1],
        [2, 20_000, 1],
        [2, 5, 3],
        [3, 21, 64],
        [1, 21, 1000],
        [40, 9, 65],
        [1, 300, 2],
        [1, 2, 20_000],
    ];

    fn values(len: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919) % 1013) as f32 * 0.05 - 30.0).collect()
    }

    /// Log-sum-exp in `f64`.
    fn plain(x: &[f32], [outer, n, inner]: [usize; 3]) -> Vec<f64> {
        let at = |o: usize, k: usize, i: usize| f64::from(x[(o * n + k) * inner + i]);
        let column = |o: usize, i: usize| (0..n).map(|k| at(o, k, i).exp()).sum::<f64>().ln();
        (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| column(o, i)).collect()
    }

    #[test]
    fn every_form_agrees_with_f64_on_every_instruction_set() {
        let two = Threads::new(2).expect("a pool of two threads");
        for dims in SHAPES {
            let x = values(dims.iter().product());
            let logs = plain(&x, dims);
            let log_of = |i: usize| logs[i / (dims[1] * dims[2]) * dims[2] + i % dims[2]];
            for isa in Isa::available() {
                let mut found = vec![0.0; logs.len()];
                log_sum_exp(isa, &two, &x, dims, &mut found);
                for (found, expected) in found.iter().zip(&logs) {
                    assert!(found.is_infinite() || (f64::from(*found) - expected).abs() < 1e-5, "{dims:?} {isa:?}");
                }
                for function in [Function::Softmax, Function::LogSoftmax] {
                    let mut y = x.clone();
                    softmax(function, isa, &Threads::serial(), Rewrite::in_place(&mut y), dims);
                    let mut other = vec![0.0; x.len()];
                    softmax(function, isa, &two, Rewrite::from_to(&x, &mut other), dims);
                    assert_eq!(y, other, "{function:?} {dims:?} {isa:?}: in place or threads change a bit");
                    for (i, found) in y.iter().enumerate() {
                        let log = f64::from(x[i]) - log_of(i);
                        let (expected, tolerance) = match function {
                            Function::Softmax => (log.exp(), 3e-6 * log.exp() + 1e-37),
                            Function::LogSoftmax => (log, 1e-6 * log.abs().max(8.0)),
                        };
                        let found = f64::from(*found);
                        assert!(
                            (found - expected).abs() <= tolerance,
                            "{function:?} {dims:?} {isa:?}: {found} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_without_a_finite_largest_element_is_nan() {
        let inf = f32::INFINITY;
        for row in [[-inf, -inf], [inf, 0.0], [f32::NAN, 1.0]] {
            for dims in [[1, 2, 1], [1, 2, 2]] {
                let x: Vec<f32> = row.iter().flat_map(|&v| vec![v; dims[2]]).collect();
                for isa in Isa::available() {
                    let mut y = x.clone();
                    softmax(Function::Softmax, isa, &Threads::serial(), Rewrite::in_place(&mut y), dims);
                    assert!(y.iter().all(|v| v.is_nan()), "{row:?} {dims:?} {isa:?}: {y:?}");
                }
            }
        }
    }

    #[test]
    fn log_sum_exp_of_infinities() {
        let inf = f32::INFINITY;
        for (row, expected) in [([-inf, -inf], -inf), ([inf, 0.0], inf), ([-inf, 2.0], 2.0)] {
            for dims in [[1, 2, 1], [1, 2, 2]] {
                let x: Vec<f32> = row.iter().flat_map(|&v| vec![v; dims[2]]).collect();
                let mut out = vec![0.0; dims[2]];
                log_sum_exp(Isa::get(), &Threads::serial(), &x, dims, &mut out);
                assert!(out.iter().all(|v| *v == expected), "{row:?} {dims:?}: {out:?}");
            }
        }
    }
}
