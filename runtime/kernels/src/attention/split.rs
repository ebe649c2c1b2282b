//! Splits an attention among threads: by heads if that keeps all threads busy, else by queries.

use super::elements::{Attends, Stored};
use super::head::Head;
use super::problem::{tile, Dims, Problem, Stage};
use crate::buffer::with_capacity;
use crate::isa::Isa;
use crate::threads::Threads;

/// Multiplications that are worth a separate task: about 20 µs.
pub(super) const TASK: usize = 1 << 19;

/// Returns the number of heads per task, if whole heads give enough tasks for the threads. Heads that share keys form
/// one task if possible, so that the keys are packed once.
pub(super) fn heads_together(dims: &Dims, threads: usize) -> Option<usize> {
    let is_even = |tasks: usize| tasks >= 4 * threads || tasks.is_multiple_of(threads);
    let group = dims.heads / dims.kv_heads;
    [group, 1].into_iter().find(|together| is_even(dims.batch * dims.heads / together))
}

/// Returns the number of queries per task: whole tiles, enough for a task.
fn queries_together(dims: &Dims, threads: usize) -> usize {
    let tile = tile(dims);
    let worth = TASK.div_ceil(tile.saturating_mul(dims.query_work()));
    let parts = (4 * threads).div_ceil(dims.heads / dims.kv_heads);
    dims.queries.div_ceil(tile).div_ceil(parts).max(worth).saturating_mul(tile).min(dims.queries)
}

/// Runs tasks of `together` heads.
pub(super) fn by_heads<R: Attends, S: Stored<R>>(
    isa: Isa,
    threads: &Threads,
    problem: &Problem<R, S>,
    together: usize,
    out: &mut [R],
) {
    let dims = problem.dims;
    let (group, size) = (dims.heads / dims.kv_heads, dims.queries * dims.width);
    threads.for_each_chunk(out, together * size, |i, out| {
        let packed = problem.pack(isa, &Threads::serial(), i * together / group);
        for (head, out) in (i * together..).zip(out.chunks_mut(size.max(1))) {
            Head::new(problem, isa, head, packed.as_ref()).run(0..dims.queries, out, None);
        }
    });
}

/// Runs tasks of some queries of a head. Processes heads that share keys one after the other; all threads pack their
/// keys.
pub(super) fn by_queries<R: Attends, S: Stored<R>>(
    isa: Isa,
    threads: &Threads,
    problem: &Problem<R, S>,
    out: &mut [R],
    mut scores: Option<(Stage, &mut [R])>,
) {
    let Dims { batch, heads, kv_heads, queries, keys, width, .. } = problem.dims;
    let (group, span) = (heads / kv_heads, queries_together(&problem.dims, threads.count()));
    for kv in 0..batch * kv_heads {
        let first = kv * group;
        let packed = problem.pack(isa, threads, kv);
        let mut out = &mut out[first * queries * width..];
        let mut scores = scores.as_mut().map(|(stage, scores)| (*stage, &mut scores[first * queries * keys..]));
        let mut parts = with_capacity(group * queries.div_ceil(span));
        for (head, start) in (first..first + group).flat_map(|head| (0..queries).step_by(span).map(move |i| (head, i)))
        {
            let rows = start..queries.min(start + span);
            let out = cut(&mut out, rows.len() * width);
            let scores = scores.as_mut().map(|(stage, scores)| (*stage, cut(scores, rows.len() * keys)));
            parts.push((head, rows, out, scores));
        }
        threads.for_each_chunk(&mut parts, 1, |_, parts| {
            for (head, rows, out, scores) in parts {
                let scores = scores.as_mut().map(|(stage, scores)| (*stage, &mut **scores));
                Head::new(problem, isa, *head, packed.as_ref()).run(rows.clone(), out, scores);
            }
        });
    }
}

/// Splits the first elements off a slice.
fn cut<'a, R>(rest: &mut &'a mut [R], len: usize) -> &'a mut [R] {
    let (first, others) = std::mem::take(rest).split_at_mut(len);
    *rest = others;
    first
}
