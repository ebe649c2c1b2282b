//! Softmax of rows of `f32`, one vector at a time.

use super::function::Function;
use crate::isa::Isa;
use crate::rewrite::Rewrite;
use crate::vector::{dispatch_isa, math, Vector};

/// The maximum number of rows that are processed together, and their maximum number of elements.
const MOST: usize = 16;
const TOGETHER: usize = 4096;

/// Elements whose exponentials are summed before they are added to the total, which is `f64`.
pub(super) const BLOCK: usize = 4096;

/// Computes softmax or its logarithm for every `n` elements; `n > 0`.
pub(super) fn softmax(isa: Isa, function: Function, n: usize, rows: Rewrite<f32>) {
    assert_eq!(rows.len() % n, 0, "whole rows");
    dispatch_isa!(isa, (function: Function = function, n: usize = n, rows: Rewrite<f32> = rows), V => all_rows::<V>(function, n, rows));
}

/// Replaces each `x` of `sums.len()` rows with `e^(factor · x − max)`, where `max` is the row's largest `factor · x`
/// and `factor > 0`. Writes the sum of each row to `sums`.
///
/// # Panics
/// The rows are empty, or differ in length.
pub(crate) fn exponentiate(isa: Isa, factor: f32, rows: &mut [f32], sums: &mut [f32]) {
    let n = rows.len() / sums.len().max(1);
    assert!(n > 0 && rows.len() == sums.len() * n, "whole rows");
    dispatch_isa!(isa, (factor: f32 = factor, n: usize = n, rows: &mut [f32] = rows, sums: &mut [f32] = sums), V => {
        let together = (TOGETHER / n).clamp(1, MOST);
        for (rows, sums) in rows.chunks_mut(together * n).zip(sums.chunks_mut(together)) {
            // SAFETY: `rows` holds `sums.len()` rows, which is at most `MOST`.
            unsafe { some_exponentials::<V>(rows.as_mut_ptr(), n, factor, sums) };
        }
    });
}

/// [`exponentiate`] for a few rows. Masked accesses are ordered as in [`some_rows`].
///
/// # Safety
/// `sums.len() · n` elements can be read and written at `x`; `sums.len() ≤ MOST`.
#[inline(always)]
unsafe fn some_exponentials<V: Vector>(x: *mut f32, n: usize, factor: f32, sums: &mut [f32]) {
    let (rest, scale) = (n % V::LANES, V::splat(factor));
    let whole = n - rest;
    let mut tails = [V::splat(f32::NEG_INFINITY); MOST];
    // SAFETY: guaranteed by the caller, for each row.
    unsafe {
        for row in (0..sums.len()).filter(|_| rest > 0) {
            tails[row] = V::load_padded(x.add(row * n + whole), rest, f32::NEG_INFINITY);
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum = largest_of::<V>(x.add(row * n), whole, tails[row]);
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            let (x, max) = (x.add(row * n), V::splat(*sum * factor));
            let shift = |x: V| x * scale - max;
            tails[row] = if rest > 0 { math::exp_of_nonpositive(shift(tails[row])) } else { V::splat(0.0) };
            *sum = exponentials::<V, true>(x, x, whole, shift, tails[row]);
        }
        for row in (0..sums.len()).filter(|_| rest > 0) {
            tails[row].store_first(x.add(row * n + whole), rest);
        }
    }
}

#[inline(always)]
fn all_rows<V: Vector>(function: Function, n: usize, mut rows: Rewrite<f32>) {
    let together = (TOGETHER / n).clamp(1, MOST);
    let count = rows.len() / n;
    let (x, y) = rows.pointers();
    for row in (0..count).step_by(together) {
        // SAFETY: the rows are contiguous.
        unsafe { some_rows::<V>(function, x.add(row * n), y.add(row * n), n, together.min(count - row)) };
    }
}

/// Processes rows together, one stage at a time, so that they do not wait for each other's sums. The tail of each row,
/// after its whole vectors, is read first and written last, because a masked access waits for other accesses near it.
///
/// # Safety
/// `rows · n` elements can be read at `x` and written at `y`, which are equal or do not overlap; `rows ≤ MOST`.
#[inline(always)]
unsafe fn some_rows<V: Vector>(function: Function, x: *const f32, y: *mut f32, n: usize, rows: usize) {
    let rest = n % V::LANES;
    let whole = n - rest;
    let mut tails = [V::splat(f32::NEG_INFINITY); MOST];
    let (mut largest, mut terms) = ([0.0; MOST], [0.0; MOST]);
    // SAFETY: guaranteed by the caller, for each row.
    unsafe {
        for (row, tail) in tails[..rows].iter_mut().enumerate().filter(|_| rest > 0) {
            *tail = V::load_padded(x.add(row * n + whole), rest, f32::NEG_INFINITY);
        }
        for row in 0..rows {
            largest[row] = largest_of::<V>(x.add(row * n), whole, tails[row]);
        }
        for row in 0..rows {
            let max = V::splat(largest[row]);
            let tail = if rest > 0 { math::exp_of_nonpositive(tails[row] - max) } else { V::splat(0.0) };
            terms[row] = term_of::<V>(function, x.add(row * n), y.add(row * n), whole, max, tail);
            tails[row] = if function == Function::Softmax { tail } else { tails[row] };
        }
        for (row, tail) in tails[..rows].iter_mut().enumerate() {
            let (max, term) = (V::splat(largest[row]), V::splat(terms[row]));
            finish::<V>(function, x.add(row * n), y.add(row * n), whole, tail, max, term);
        }
        for (row, tail) in tails[..rows].iter().enumerate().filter(|_| rest > 0) {
            tail.store_first(y.add(row * n + whole), rest);
        }
    }
}

/// Returns the factor of a row's exponentials (softmax), or the logarithm to subtract besides the maximum
/// (log-softmax). `tail` holds the exponentials of the tail. For softmax, writes the exponentials of `n` elements to
/// `y`.
///
/// # Safety
/// As for [`exponentials`].
#[inline(always)]
unsafe fn term_of<V: Vector>(function: Function, x: *const f32, y: *mut f32, n: usize, max: V, tail: V) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match function {
            Function::Softmax => 1.0 / exponentials::<V, true>(x, y, n, |x| x - max, tail),
            Function::LogSoftmax => exponentials::<V, false>(x, y, n, |x| x - max, tail).ln(),
        }
    }
}

/// Computes the results of `n` elements in `y`, and of the tail.
///
/// # Safety
/// As for [`rewrite`].
#[inline(always)]
unsafe fn finish<V: Vector>(function: Function, x: *const f32, y: *mut f32, n: usize, tail: &mut V, max: V, term: V) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match function {
            Function::Softmax => rewrite::<V>(y, y, n, tail, |e| e * term),
            Function::LogSoftmax => rewrite::<V>(x, y, n, tail, |x| x - max - term),
        }
    }
}

/// Returns the maximum of `n` elements and a tail; ignores NaN.
///
/// # Safety
/// `n` elements, a whole number of vectors, can be read at `x`.
#[inline(always)]
unsafe fn largest_of<V: Vector>(x: *const f32, n: usize, tail: V) -> f32 {
    let mut most = [tail.greater(V::splat(f32::NEG_INFINITY)); 4];
    for i in (0..n).step_by(4 * V::LANES) {
        for (k, most) in most.iter_mut().enumerate() {
            // Repeats the last vector if fewer than four are left.
            let at = (i + k * V::LANES).min(n - V::LANES);
            // SAFETY: the load is below `n`.
            *most = unsafe { V::load(x.add(at)) }.greater(*most);
        }
    }
    let [a, b, c, d] = most;
    a.greater(b).greater(c.greater(d)).largest()
}

/// Returns the sum of the exponentials of `n` elements, which `shift` makes at most 0, and of the elements of `tail`.
/// Writes the exponentials to `y` if `KEEP`.
///
/// # Safety
/// `n` elements, a whole number of vectors, can be read at `x` and written at `y`.
#[inline(always)]
unsafe fn exponentials<V: Vector, const KEEP: bool>(
    x: *const f32,
    y: *mut f32,
    n: usize,
    shift: impl Fn(V) -> V + Copy,
    tail: V,
) -> f32 {
    let zero = V::splat(0.0);
    let mut sums = [tail, zero, zero, zero];
    let mut total = 0.0;
    let mut i = 0;
    loop {
        let end = n.min(i + BLOCK);
        // SAFETY: guaranteed by the caller.
        unsafe {
            while i + 4 * V::LANES <= end {
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum = *sum + exponential::<V, KEEP>(x.add(i + k * V::LANES), y.add(i + k * V::LANES), shift);
                }
                i += 4 * V::LANES;
            }
            while i < end {
                sums[0] = sums[0] + exponential::<V, KEEP>(x.add(i), y.add(i), shift);
                i += V::LANES;
            }
        }
        let [a, b, c, d] = sums;
        total += f64::from(((a + b) + (c + d)).sum());
        if i >= n {
            return total as f32;
        }
        sums = [zero; 4];
    }
}

/// # Safety
/// A vector can be read at `x` and written at `y`.
#[inline(always)]
unsafe fn exponential<V: Vector, const KEEP: bool>(x: *const f32, y: *mut f32, shift: impl Fn(V) -> V) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let e = math::exp_of_nonpositive(shift(V::load(x)));
        if KEEP {
            e.store(y);
        }
        e
    }
}

/// `y[i] = function(x[i])` for `n` elements and a tail.
///
/// # Safety
/// `n` elements, a whole number of vectors, can be read at `x` and written at `y`, which are equal or do not overlap.
#[inline(always)]
unsafe fn rewrite<V: Vector>(x: *const f32, y: *mut f32, n: usize, tail: &mut V, function: impl Fn(V) -> V) {
    *tail = function(*tail);
    for i in (0..n).step_by(V::LANES) {
        // SAFETY: guaranteed by the caller.
        unsafe { function(V::load(x.add(i))).store(y.add(i)) };
    }
}
