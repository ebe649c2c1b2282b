//! Softmax of rows of `f32`, vector by vector.

use super::{Form, BLOCK};
use crate::isa::Isa;
use crate::rewrite::Rewrite;
use crate::vector::{dispatch_isa, math, Vector};

/// The most rows that are treated together, and how many elements these have at most.
const MOST: usize = 16;
const TOGETHER: usize = 4096;

/// Softmax or its logarithm of every `n` elements, `n > 0`.
pub(super) fn softmax(isa: Isa, form: Form, n: usize, rows: Rewrite<f32>) {
    assert_eq!(rows.len() % n, 0, "whole rows");
    dispatch_isa!(isa, (form: Form = form, n: usize = n, rows: Rewrite<f32> = rows), V => all_rows::<V>(form, n, rows));
}

/// `e^(factor · x − max)` in place of each `x` of `sums.len()` rows, where `max` is the row's largest `factor · x` and
/// `factor > 0`; what they sum up to, in `sums`.
///
/// # Panics
/// The rows are empty or not of one length.
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

/// [`exponentiate`] of a few rows; masked accesses as in [`some_rows`].
///
/// # Safety
/// `sums.len() · n` elements can be read and written at `x`; `sums.len() ≤ MOST`.
#[inline(always)]
unsafe fn some_exponentials<V: Vector>(x: *mut f32, n: usize, factor: f32, sums: &mut [f32]) {
    let (rest, scale) = (n % V::LANES, V::splat(factor));
    let whole = n - rest;
    let mut tails = [V::splat(f32::NEG_INFINITY); MOST];
    // SAFETY: row by row, the caller's promise.
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
fn all_rows<V: Vector>(form: Form, n: usize, mut rows: Rewrite<f32>) {
    let together = (TOGETHER / n).clamp(1, MOST);
    let count = rows.len() / n;
    let (x, y) = rows.pointers();
    for row in (0..count).step_by(together) {
        // SAFETY: the rows lie one after the other.
        unsafe { some_rows::<V>(form, x.add(row * n), y.add(row * n), n, together.min(count - row)) };
    }
}

/// Rows go through each stage one after the other, so that they do not wait for each other's sums. What follows a row's
/// whole vectors is read first and written last: a masked access waits for others that are near it.
///
/// # Safety
/// `rows · n` elements can be read at `x` and written at `y`, which are equal or do not overlap; `rows ≤ MOST`.
#[inline(always)]
unsafe fn some_rows<V: Vector>(form: Form, x: *const f32, y: *mut f32, n: usize, rows: usize) {
    let rest = n % V::LANES;
    let whole = n - rest;
    let mut tails = [V::splat(f32::NEG_INFINITY); MOST];
    let (mut largest, mut terms) = ([0.0; MOST], [0.0; MOST]);
    // SAFETY: row by row, the caller's promise.
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
            terms[row] = term_of::<V>(form, x.add(row * n), y.add(row * n), whole, max, tail);
            tails[row] = if form == Form::Softmax { tail } else { tails[row] };
        }
        for (row, tail) in tails[..rows].iter_mut().enumerate() {
            let (max, term) = (V::splat(largest[row]), V::splat(terms[row]));
            finish::<V>(form, x.add(row * n), y.add(row * n), whole, tail, max, term);
        }
        for (row, tail) in tails[..rows].iter().enumerate().filter(|_| rest > 0) {
            tail.store_first(y.add(row * n + whole), rest);
        }
    }
}

/// What the exponentials of a row are multiplied by, or what is subtracted beside the largest element; given the
/// exponentials of the tail. For softmax, those of `n` elements are in `y` then.
///
/// # Safety
/// As [`exponentials`].
#[inline(always)]
unsafe fn term_of<V: Vector>(form: Form, x: *const f32, y: *mut f32, n: usize, max: V, tail: V) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        match form {
            Form::Softmax => 1.0 / exponentials::<V, true>(x, y, n, |x| x - max, tail),
            Form::LogSoftmax => exponentials::<V, false>(x, y, n, |x| x - max, tail).ln(),
        }
    }
}

/// The results of `n` elements, in `y`, and of the tail.
///
/// # Safety
/// As [`rewrite`].
#[inline(always)]
unsafe fn finish<V: Vector>(form: Form, x: *const f32, y: *mut f32, n: usize, tail: &mut V, max: V, term: V) {
    // SAFETY: the caller's promise.
    unsafe {
        match form {
            Form::Softmax => rewrite::<V>(y, y, n, tail, |e| e * term),
            Form::LogSoftmax => rewrite::<V>(x, y, n, tail, |x| x - max - term),
        }
    }
}

/// The largest element of `n` and a tail; NaN counts for nothing.
///
/// # Safety
/// `n` elements, whole vectors, can be read at `x`.
#[inline(always)]
unsafe fn largest_of<V: Vector>(x: *const f32, n: usize, tail: V) -> f32 {
    let mut most = [tail.greater(V::splat(f32::NEG_INFINITY)); 4];
    for i in (0..n).step_by(4 * V::LANES) {
        for (k, most) in most.iter_mut().enumerate() {
            // The last vector again where there are less than four.
            let at = (i + k * V::LANES).min(n - V::LANES);
            // SAFETY: the load lies below `n`.
            *most = unsafe { V::load(x.add(at)) }.greater(*most);
        }
    }
    let [a, b, c, d] = most;
    a.greater(b).greater(c.greater(d)).largest()
}

/// The sum of the exponentials of `n` elements, shifted to be at most 0, and of the elements of `tail`. The
/// exponentials are written to `y` where `KEEP`.
///
/// # Safety
/// `n` elements, whole vectors, can be read at `x` and written at `y`.
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
        // SAFETY: the caller's promise.
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
    // SAFETY: the caller's promise.
    unsafe {
        let e = math::exp_of_nonpositive(shift(V::load(x)));
        if KEEP {
            e.store(y);
        }
        e
    }
}

/// `y[i] = function(x[i])` of `n` elements and a tail.
///
/// # Safety
/// `n` elements, whole vectors, can be read at `x` and written at `y`, which are equal or do not overlap.
#[inline(always)]
unsafe fn rewrite<V: Vector>(x: *const f32, y: *mut f32, n: usize, tail: &mut V, function: impl Fn(V) -> V) {
    *tail = function(*tail);
    for i in (0..n).step_by(V::LANES) {
        // SAFETY: the caller's promise.
        unsafe { function(V::load(x.add(i))).store(y.add(i)) };
    }
}
