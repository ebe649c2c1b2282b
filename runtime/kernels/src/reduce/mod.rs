//! Reductions of the middle axis of `[outer, n, inner]`. A reduction over several groups of axes consists of several of
//! these.
//!
//! A block of elements has partial results in lanes (see [`crate::lane_loops`]). Blocks are added to a wider total: a sum of
//! a million `f32` is within 1e-6 of the exact one.

use std::marker::PhantomData;

pub use candle_plan_descriptors::number::Number;
pub use candle_plan_descriptors::reduce::Extremum;

use crate::isa::{Isa, Level};
use crate::lane_loops::{fold, per_isa, LANES};
use crate::scratch::Scratch;
use crate::threads::Threads;

/// A sum or product. The total is `f64` for floating-point types, and a wrapping 64-bit integer for integer types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Σ x
    Sum,
    /// Σ |x|
    SumAbs,
    /// Σ x²
    SumSquare,
    /// Π x
    Product,
}

/// Element types with an order.
pub trait Ordered: bytemuck::Pod + Send + Sync + PartialOrd {
    /// −∞, or the smallest integer.
    const LEAST: Self;
    /// ∞, or the largest integer.
    const GREATEST: Self;
    /// The widest level that kernels of the type are compiled for; lower for types that few models use, to save code.
    const WIDEST: Level;

    /// Writes the extremum along the middle axis of `x` `[outer, n, inner]` to `out` `[outer, inner]`. NaN if any
    /// element is NaN.
    fn extremum(which: Extremum, isa: Isa, threads: &Threads, x: &[Self], dims: [usize; 3], out: &mut [Self]);
}

/// Element types with sums.
pub trait Summed: Ordered + Number {
    /// The type of sums and products.
    type Total: Summed<Total = Self::Total>;

    /// Folds the middle axis of `x` `[outer, n, inner]` into `out` `[outer, inner]`.
    fn fold(fold: Fold, isa: Isa, threads: &Threads, x: &[Self], dims: [usize; 3], out: &mut [Self::Total]);

    /// The mean of `count` elements with the sum `total`; 0 if there are no elements. Integers truncate.
    fn mean(total: Self::Total, count: usize) -> Self;

    /// Converts a total to an element; integers wrap.
    fn from_total(total: Self::Total) -> Self;
}

/// A fold over elements of one type.
trait Rule {
    type In: Copy + Send + Sync;
    /// The type of partial results within a block.
    type Lane: Copy;
    type Total: Copy + Send + Sync;
    /// The widest level that the fold is compiled for.
    const WIDEST: Level;
    const START: Self::Lane;
    fn step(lane: Self::Lane, value: Self::In) -> Self::Lane;
    fn join(a: Self::Lane, b: Self::Lane) -> Self::Lane;
    fn total(lane: Self::Lane) -> Self::Total;
    fn add(a: Self::Total, b: Self::Total) -> Self::Total;
}

/// Elements along the reduced axis whose partial results stay in lanes before they are added to the total.
const BLOCK: usize = 4096;
/// Rows of a column fold between two additions to the totals.
const ROWS: usize = 64;
/// Elements that are worth a separate task.
const TASK: usize = 1 << 16;

fn reduce<R: Rule>(isa: Isa, threads: &Threads, x: &[R::In], [outer, n, inner]: [usize; 3], out: &mut [R::Total]) {
    assert_eq!(x.len(), outer * n * inner, "the input fills its shape");
    assert_eq!(out.len(), outer * inner, "the output fills its shape");
    if n == 0 || out.is_empty() {
        out.fill(R::total(R::START));
    } else if inner > 1 {
        reduce_columns::<R>(isa, threads, x, n, inner, out);
    } else if n > TASK && outer < threads.count() {
        for (row, total) in x.chunks_exact(n).zip(out) {
            let mut parts = Scratch::filled(R::total(R::START), n.div_ceil(TASK));
            threads.for_each_chunk(&mut parts, 1, |i, part| {
                let task = task_of(row, i);
                fold_rows::<R>(isa, task, task.len(), part);
            });
            *total = parts.iter().copied().fold(R::total(R::START), R::add);
        }
    } else {
        let rows = (TASK / n).max(1);
        threads.for_each_chunk(out, rows, |i, out| {
            fold_rows::<R>(isa, &x[i * rows * n..], n, out);
        });
    }
}

fn task_of<T>(row: &[T], i: usize) -> &[T] {
    &row[i * TASK..row.len().min((i + 1) * TASK)]
}

per_isa! {
    fn fold_rows<R: Rule>(x: &[R::In], n: usize, out: &mut [R::Total]) where FMA up to (R::WIDEST) {
        // Loops instead of iterator methods: a closure in a method is compiled without the instruction set's features.
        for (row, total) in x.chunks_exact(n).zip(out) {
            *total = R::total(R::START);
            for task in row.chunks(TASK) {
                let mut part = R::total(R::START);
                for block in task.chunks(BLOCK) {
                    part = R::add(part, R::total(fold(block, R::START, R::step, R::join)));
                }
                *total = R::add(*total, part);
            }
        }
    }
}

fn reduce_columns<R: Rule>(isa: Isa, threads: &Threads, x: &[R::In], n: usize, inner: usize, out: &mut [R::Total]) {
    // If one row is too narrow, several adjacent rows fill the lanes.
    let side_by_side = (LANES / inner).min(n);
    if n * inner >= TASK || (out.len() / inner < threads.count() && inner >= 2 * LANES) {
        for (x, out) in x.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner)) {
            let width = (TASK / n).max(1).next_multiple_of(LANES);
            threads.for_each_chunk(out, width, |i, out| fold_columns::<R>(isa, x, inner, i * width, side_by_side, out));
        }
    } else {
        let group = (TASK / (n * inner)).max(1);
        threads.for_each_chunk(out, group * inner, |i, out| {
            let x = x[i * group * n * inner..].chunks_exact(n * inner);
            for (x, out) in x.zip(out.chunks_exact_mut(inner)) {
                fold_columns::<R>(isa, x, inner, 0, side_by_side, out);
            }
        });
    }
}

/// Folds columns `first .. first + out.len()` of the rows `x` `[n, inner]`. If `side_by_side` is more than 1, that many
/// rows are read as one; then `first` is 0, and `out` is a whole row.
fn fold_columns<R: Rule>(isa: Isa, x: &[R::In], inner: usize, first: usize, side_by_side: usize, out: &mut [R::Total]) {
    if side_by_side <= 1 {
        return fold_whole_columns::<R>(isa, x, inner, first, out);
    }
    let width = side_by_side * inner;
    let mut totals = [R::total(R::START); LANES];
    fold_whole_columns::<R>(isa, x, width, 0, &mut totals[..width]);
    for (column, total) in out.iter_mut().enumerate() {
        let parts = totals[column..width].iter().step_by(inner).copied();
        *total = parts.reduce(R::add).unwrap_or(R::total(R::START));
    }
}

per_isa! {
    /// Folds columns `first .. first + out.len()` of the rows `x`, `inner` elements each. The last row may be
    /// incomplete.
    fn fold_whole_columns<R: Rule>(
        x: &[R::In], inner: usize, first: usize, out: &mut [R::Total],
    ) where FMA up to (R::WIDEST) {
        for (i, out) in out.chunks_mut(LANES).enumerate() {
            let first = first + i * LANES;
            out.fill(R::total(R::START));
            for rows in x.chunks(ROWS * inner) {
                match <&mut [R::Total; LANES]>::try_from(&mut *out) {
                    Ok(out) if rows.len() % inner == 0 => fold_tile::<R, LANES>(rows, inner, first, out),
                    _ => fold_part::<R>(rows, inner, first, out),
                }
            }
        }
    }
}

/// Folds one tile of columns over up to [`ROWS`] rows; the lanes stay in registers.
#[inline(always)]
fn fold_tile<R: Rule, const W: usize>(rows: &[R::In], inner: usize, first: usize, out: &mut [R::Total; W]) {
    let mut lanes = [R::START; W];
    for row in rows.chunks_exact(inner) {
        for (lane, &value) in lanes.iter_mut().zip(&row[first..first + W]) {
            *lane = R::step(*lane, value);
        }
    }
    for (total, lane) in out.iter_mut().zip(lanes) {
        *total = R::add(*total, R::total(lane));
    }
}

#[inline(always)]
fn fold_part<R: Rule>(rows: &[R::In], inner: usize, first: usize, out: &mut [R::Total]) {
    let mut lanes = [R::START; LANES];
    for row in rows.chunks(inner) {
        let end = row.len().min(first + out.len());
        for (lane, &value) in lanes.iter_mut().zip(&row[first..end]) {
            *lane = R::step(*lane, value);
        }
    }
    for (total, lane) in out.iter_mut().zip(lanes) {
        *total = R::add(*total, R::total(lane));
    }
}

macro_rules! sum_rule {
    ($rule:ident<$number:ident, $lane:ident, $total:ident>, up to $widest:expr, $start:expr, |$v:ident| $lift:expr, $combine:expr) => {
        struct $rule;
        impl Rule for $rule {
            type In = $number;
            type Lane = $lane;
            type Total = $total;
            const WIDEST: Level = $widest;
            const START: $lane = $start;
            #[inline(always)]
            fn step(lane: $lane, $v: $number) -> $lane {
                $combine(lane, $lift)
            }
            #[inline(always)]
            fn join(a: $lane, b: $lane) -> $lane {
                $combine(a, b)
            }
            #[inline(always)]
            fn total(lane: $lane) -> $total {
                $total::from(lane)
            }
            #[inline(always)]
            fn add(a: $total, b: $total) -> $total {
                $combine(a, b)
            }
        }
    };
}

/// The extremum of a type: the maximum if `MAX`, else the minimum.
struct Extreme<T, const MAX: bool>(PhantomData<T>);

impl<T: Ordered, const MAX: bool> Rule for Extreme<T, MAX> {
    type In = T;
    type Lane = T;
    type Total = T;
    const WIDEST: Level = T::WIDEST;
    const START: T = if MAX { T::LEAST } else { T::GREATEST };
    #[inline(always)]
    #[allow(clippy::eq_op)] // only a NaN differs from itself
    fn step(lane: T, v: T) -> T {
        let beats = if MAX { v > lane } else { v < lane };
        if beats || v != v {
            v
        } else {
            lane
        }
    }
    #[inline(always)]
    fn join(a: T, b: T) -> T {
        Self::step(a, b)
    }
    #[inline(always)]
    fn total(lane: T) -> T {
        lane
    }
    #[inline(always)]
    fn add(a: T, b: T) -> T {
        Self::step(a, b)
    }
}

macro_rules! ordered {
    ($($number:ident up to $widest:expr, $least:expr, $greatest:expr;)*) => {
        $(impl Ordered for $number {
            const LEAST: $number = $least;
            const GREATEST: $number = $greatest;
            const WIDEST: Level = $widest;

            fn extremum(which: Extremum, isa: Isa, threads: &Threads, x: &[$number], dims: [usize; 3], out: &mut [$number]) {
                match which {
                    Extremum::Max => reduce::<Extreme<$number, true>>(isa, threads, x, dims, out),
                    Extremum::Min => reduce::<Extreme<$number, false>>(isa, threads, x, dims, out),
                }
            }
        })*
    };
}

ordered! {
    f32 up to Level::Avx512, f32::NEG_INFINITY, f32::INFINITY;
    f64 up to Level::Avx2, f64::NEG_INFINITY, f64::INFINITY;
    i8 up to Level::Avx2, i8::MIN, i8::MAX;
    i32 up to Level::Avx2, i32::MIN, i32::MAX;
    i64 up to Level::Avx2, i64::MIN, i64::MAX;
    u8 up to Level::Avx2, u8::MIN, u8::MAX;
    u32 up to Level::Scalar, u32::MIN, u32::MAX;
    u64 up to Level::Scalar, u64::MIN, u64::MAX;
}

/// `$lane` is the type of sums within a block, and `$total` that of all others. `$rare` is the widest level of all
/// folds except sums.
macro_rules! number {
    (rare up to $rare:expr, $number:ident, $lane:ident, $total:ident, $abs:expr, $plus:expr, $times:expr, $one:expr,
     mean: $mean:expr) => {
        impl Summed for $number {
            type Total = $total;

            fn fold(fold: Fold, isa: Isa, threads: &Threads, x: &[$number], dims: [usize; 3], out: &mut [$total]) {
                sum_rule!(Sum<$number, $lane, $total>, up to $number::WIDEST, 0 as $lane, |v| v as $lane, $plus);
                sum_rule!(SumAbs<$number, $lane, $total>, up to $rare, 0 as $lane, |v| $abs(v as $lane), $plus);
                sum_rule!(SumSquare<$number, $lane, $total>, up to $rare, 0 as $lane, |v| $times(v as $lane, v as $lane), $plus);
                sum_rule!(Product<$number, $total, $total>, up to $rare, $one, |v| v as $total, $times);
                match fold {
                    Fold::Sum => reduce::<Sum>(isa, threads, x, dims, out),
                    Fold::SumAbs => reduce::<SumAbs>(isa, threads, x, dims, out),
                    Fold::SumSquare => reduce::<SumSquare>(isa, threads, x, dims, out),
                    Fold::Product => reduce::<Product>(isa, threads, x, dims, out),
                }
            }

            #[allow(clippy::cast_possible_truncation)]
            fn mean(total: $total, count: usize) -> $number {
                let count = count.max(1) as $total;
                let mean: fn($total, $total) -> $total = $mean;
                mean(total, count) as $number
            }

            #[allow(clippy::cast_possible_truncation)]
            fn from_total(total: $total) -> $number {
                total as $number
            }
        }
    };
}

macro_rules! float {
    ($($number:ident)*) => {
        $(number!(rare up to $number::WIDEST, $number, $number, f64, $number::abs,
            |a, b| a + b, |a, b| a * b, 1.0, mean: |total, count| total / count);)*
    };
}

macro_rules! integer {
    ($($number:ident in $total:ident, $abs:expr;)*) => {
        $(number!(rare up to Level::Scalar, $number, $total, $total, $abs, $total::wrapping_add, $total::wrapping_mul,
            1, mean: |total, count| total.wrapping_div(count));)*
    };
}

float! { f32 f64 }
integer! {
    i32 in i64, i64::wrapping_abs;
    i64 in i64, i64::wrapping_abs;
    u32 in u64, |v| v;
    u64 in u64, |v| v;
}

#[cfg(test)]
mod tests;
