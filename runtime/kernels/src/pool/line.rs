//! The windows of a line, a block of them in parallel.

use super::rule::Rule;
use super::window::{Window, BLOCK};
use crate::lane_loops::{load, store};

/// Reduces the windows of a line into `y`. Window `i` has weight `row_count` × `counts[i]`.
#[inline(always)]
pub(super) fn reduce_line<R: Rule>(
    rule: R,
    line: &[R::Partial],
    columns: &Window,
    row_count: f32,
    counts: &[f32],
    y: &mut [R::Element],
) {
    let mut start = 0;
    while start < y.len() {
        let at = start.min(y.len().saturating_sub(BLOCK));
        let line = &line[at * columns.stride..];
        let totals = match (columns.stride, columns.kernel, columns.dilation) {
            (2, 2, 1) => reduce_pairs::<R, false>(line),
            (2, 3, 1) => reduce_pairs::<R, true>(line),
            (1, ..) => reduce_windows::<R, 1>(line, columns),
            (2, ..) => reduce_windows::<R, 2>(line, columns),
            _ => reduce_distant_windows::<R>(line, columns),
        };
        let mut results = [rule.finish(R::START, 1.0); BLOCK];
        let counts: [f32; BLOCK] = load(&counts[at..], 1.0);
        for lane in 0..BLOCK {
            results[lane] = rule.finish(totals[lane], row_count * counts[lane]);
        }
        store(results, &mut y[at..]);
        start += BLOCK;
    }
}

/// Reduces the first [`BLOCK`] windows of a line. Each consists of a pair of neighbors, and of the next element if
/// `NEXT` is set.
#[inline(always)]
fn reduce_pairs<R: Rule, const NEXT: bool>(line: &[R::Partial]) -> [R::Partial; BLOCK] {
    let pairs = &line[..2 * BLOCK];
    let (mut even, mut odd) = ([R::START; BLOCK], [R::START; BLOCK]);
    for lane in 0..BLOCK {
        even[lane] = pairs[2 * lane];
        odd[lane] = pairs[2 * lane + 1];
    }
    let mut totals = [R::START; BLOCK];
    for lane in 0..BLOCK {
        totals[lane] = R::join(R::join(R::START, even[lane]), odd[lane]);
    }
    if NEXT {
        let next = &line[1..][..2 * BLOCK];
        for lane in 0..BLOCK {
            totals[lane] = R::join(totals[lane], next[2 * lane + 1]);
        }
    }
    totals
}

/// Reduces the first [`BLOCK`] windows of a line, with stride `S`.
#[inline(always)]
fn reduce_windows<R: Rule, const S: usize>(line: &[R::Partial], columns: &Window) -> [R::Partial; BLOCK] {
    let mut totals = [R::START; BLOCK];
    for k in 0..columns.kernel {
        let taps = &line[k * columns.dilation..][..S * BLOCK];
        for lane in 0..BLOCK {
            totals[lane] = R::join(totals[lane], taps[S * lane]);
        }
    }
    totals
}

#[inline(always)]
fn reduce_distant_windows<R: Rule>(line: &[R::Partial], columns: &Window) -> [R::Partial; BLOCK] {
    let mut totals = [R::START; BLOCK];
    for lane in 0..BLOCK {
        for k in 0..columns.kernel {
            totals[lane] = R::join(totals[lane], line[lane * columns.stride + k * columns.dilation]);
        }
    }
    totals
}
