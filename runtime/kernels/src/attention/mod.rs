//! Scaled dot-product attention: `softmax(Q · Kᵀ · scale + mask) · V` for each batch and head.
//!
//! Rows of queries are processed in tiles, so only one tile of scores is in memory at a time. Keys and values of 16 bits
//! are converted block by block.

mod elements;
mod head;
mod problem;
mod rows;
mod split;
#[cfg(test)]
mod tests;

pub use elements::{Attends, Rows, Stored, Strided};
pub use problem::{is_cached, Dims, Guard, Mask, Problem, Stage, Vectors};

use crate::isa::Isa;
use crate::threads::Threads;
use split::{by_heads, by_queries, heads_together, TASK};

/// Computes the outputs `[batch, heads, queries, width]`, and the scores `[batch, heads, queries, keys]` if requested.
///
/// # Panics
/// The slices are too short for the sizes.
pub fn attention<R: Attends, S: Stored<R>>(
    isa: Isa,
    threads: &Threads,
    problem: &Problem<R, S>,
    out: &mut [R],
    scores: Option<(Stage, &mut [R])>,
) {
    let dims = problem.dims;
    let queries = dims.batch * dims.heads * dims.queries;
    assert_eq!(out.len(), queries * dims.width, "the output fills its shape");
    if queries == 0 {
        return;
    }
    let serial = Threads::serial();
    let threads = if queries.saturating_mul(dims.query_work()) < 2 * TASK { &serial } else { threads };
    match (scores, heads_together(&dims, threads.count())) {
        (None, Some(together)) => by_heads(isa, threads, problem, together, out),
        (None, None) => by_queries(isa, threads, problem, out, None),
        (Some((stage, scores)), _) => {
            assert_eq!(scores.len(), queries * dims.keys, "the scores fill their shape");
            by_queries(isa, threads, problem, out, Some((stage, scores)));
        }
    }
}
