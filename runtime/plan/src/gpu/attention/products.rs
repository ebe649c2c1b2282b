//! Attention as a product, a kernel that turns scores into weights, and a product.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::attention::Dims;
use candle_plan_device::{Gpu, Grid, Symbol};

use super::scoring::{Scoring, Vectors};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gemm::{Matrices, Product};
use crate::gpu::launch::{alloc_uninit, count, kind, launch, Params};
use crate::ops::attention::AttentionScores;
use crate::value::{list, Array};

/// The parameters of the softmax of scores. The sizes are those of `Scoring`, and the tensors are allocated with these
/// sizes.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(AttentionRows in "attention.cu")]
struct RowsParams {
    scoring: Scoring,
    scores: u64,
    weights: u64,
    kept: u64,
    rows: u32,
    first: u32,
    stage: u32,
    padding: u32,
}

/// The largest number of scores in memory at a time, unless one query has more. Small in tests, so that they use parts.
const SCORES: usize = if cfg!(test) { 2900 } else { 1 << 26 };

/// Returns the dtype of scores.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::Float64 => DType::Float64,
        _ => DType::Float32,
    }
}

/// Returns an upper bound on the bytes of the scores and the weights, for the numbers of batches, heads, queries and keys.
pub(super) fn scratch_bytes(sizes: [usize; 4], dtype: DType) -> usize {
    let scores = sizes.iter().copied().fold(1, usize::saturating_mul).min(SCORES.max(sizes[3]));
    let tensors = if dtype == wide(dtype) { &[dtype][..] } else { &[wide(dtype), dtype] };
    let width: usize = tensors.iter().filter_map(|dtype| dtype.width().ok()).sum();
    scores.saturating_mul(width)
}

/// Computes Y from Q, K and V. Stores the scores of a stage in a tensor `[N, heads, L, S]`, if there is one.
///
/// # Errors
/// The device fails, or lacks memory for the scores.
pub(super) fn run(
    gpu: &Gpu,
    dims: Dims,
    vectors: [Vectors; 4],
    scoring: Scoring,
    kept: Option<(&Array, AttentionScores)>,
) -> Result<()> {
    let params = RowsParams {
        scoring,
        kept: kept.map_or(Ok(0), |(kept, _)| kept.address())?,
        stage: kept.map_or(4, |(_, stage)| match stage {
            AttentionScores::Product => 0,
            AttentionScores::Capped => 1,
            AttentionScores::Masked => 2,
            AttentionScores::Softmax => 3,
        }),
        ..RowsParams::zeroed()
    };
    Heads { gpu, dims, vectors, params }.run()
}

/// The heads of keys and values, with the heads of queries that share each of them.
struct Heads<'a> {
    gpu: &'a Gpu,
    dims: Dims,
    /// Q, K, V and Y.
    vectors: [Vectors<'a>; 4],
    params: RowsParams,
}

/// Consecutive rows of scores: those of all queries for some heads of keys, or of some queries for one head of queries. If
/// there are several batches, they have all heads.
struct Part {
    batches: Range<usize>,
    /// The heads of keys, counted from the first of the batch.
    heads: Range<usize>,
    /// The heads of queries among those that share a head of keys.
    members: Range<usize>,
    queries: Range<usize>,
}

/// Heads of keys with equal strides: consecutive ones of a batch, or the same one of consecutive batches.
struct Run {
    batch: usize,
    head: usize,
    count: usize,
    is_over_batches: bool,
    /// The place of the first one among the heads of the part, and the distance to the next one.
    place: usize,
    apart: usize,
}

impl Part {
    /// Returns the heads in as few runs as possible.
    ///
    /// # Errors
    /// There is not enough memory for the list.
    fn runs(&self) -> Result<Vec<Run>> {
        let (batches, heads) = (self.batches.len(), self.heads.len());
        let of_batch = |i: usize| {
            let (batch, head) = (self.batches.start + i, self.heads.start);
            Run { batch, head, count: heads, is_over_batches: false, place: i * heads, apart: 1 }
        };
        let of_head = |i: usize| {
            let (batch, head) = (self.batches.start, self.heads.start + i);
            Run { batch, head, count: batches, is_over_batches: true, place: i, apart: heads }
        };
        match batches <= heads {
            true => list((0..batches).map(of_batch)),
            false => list((0..heads).map(of_head)),
        }
    }
}

/// The queries of each head of keys: `times` products of `m` rows, with these strides between products in Q and Y.
struct Rows {
    times: usize,
    m: usize,
    steps: [usize; 2],
}

impl Heads<'_> {
    fn run(&self) -> Result<()> {
        let dims = self.dims;
        let rows = dims.batch * dims.heads * dims.queries;
        count(rows)?;
        if rows == 0 {
            return Ok(());
        }
        let group = self.group();
        // As many heads of keys as fit at a time, or as many queries of one head.
        let fitting = SCORES / dims.keys.max(1);
        let heads = (fitting / (group * dims.queries)).max(1);
        let (members, queries) = match group * dims.queries <= fitting {
            true => (group, dims.queries),
            false => (1, fitting.clamp(1, dims.queries)),
        };
        let all = dims.batch * dims.kv_heads;
        let spans = if self.is_even() { [1, all] } else { [dims.batch, dims.kv_heads] };
        let [batches, heads] = if all <= heads { spans } else { [1, heads.min(spans[1])] };
        let scratch = self.scratch(&[batches * heads, members, queries, dims.keys])?;
        let pieces = |all: usize, size: usize| (0..all).step_by(size).map(move |at| at..all.min(at + size));
        for batches in pieces(spans[0], batches) {
            for heads in pieces(spans[1], heads) {
                for members in pieces(group, members) {
                    for queries in pieces(dims.queries, queries) {
                        let (batches, heads, members) = (batches.clone(), heads.clone(), members.clone());
                        self.part(&Part { batches, heads, members, queries }, [&scratch[0], &scratch[1]])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns how many heads of queries share one head of keys.
    fn group(&self) -> usize {
        self.dims.heads / self.dims.kv_heads
    }

    /// Whether consecutive heads have equal strides across all batches.
    fn is_even(&self) -> bool {
        let Dims { batch, heads, kv_heads, .. } = self.dims;
        let heads = [heads, kv_heads, kv_heads, heads];
        batch == 1 || self.vectors.iter().zip(heads).all(|((_, [batch, head, _]), heads)| *batch == head * heads)
    }

    /// Allocates the scores and the weights, which may be the same tensor.
    fn scratch(&self, dims: &[usize]) -> Result<[Array; 2]> {
        let dtype = self.vectors[0].0.dtype();
        let scores = alloc_uninit(self.gpu, dims, wide(dtype))?;
        let weights = if dtype == wide(dtype) { scores.clone() } else { alloc_uninit(self.gpu, dims, dtype)? };
        Ok([scores, weights])
    }

    /// Computes the outputs of a part.
    fn part(&self, part: &Part, [scores, weights]: [&Array; 2]) -> Result<()> {
        let (dims, rows, runs) = (self.dims, self.rows(part), part.runs()?);
        let products = || runs.iter().flat_map(|run| (0..rows.times).map(move |time| (run, time)));
        let size = rows.m * dims.keys;
        let square = |tensor, run: &Run, time: usize| Matrices {
            tensor,
            start: (run.place * rows.times + time) * size,
            next: run.apart * rows.times * size,
            row: dims.keys,
            transposed: false,
        };
        for (run, time) in products() {
            let (q, k) = (self.queries(0, part, run, time), self.keys(1, run).columns());
            let product = Product { batch: run.count, ..Product::of(rows.m, dims.keys, dims.depth) };
            product.run(self.gpu, Matrices { row: rows.steps[0], ..q }, k, square(scores, run, time))?;
        }
        self.compute_weights(part, [scores, weights])?;
        for (run, time) in products() {
            let (v, y) = (self.keys(2, run), self.queries(3, part, run, time));
            let product = Product { batch: run.count, ..Product::of(rows.m, dims.width, dims.keys) };
            product.run(self.gpu, square(weights, run, time), v, Matrices { row: rows.steps[1], ..y })?;
        }
        Ok(())
    }

    /// Returns the place in Q or Y of a part's queries: of head `member` among those that share each head of keys.
    fn queries(&self, i: usize, part: &Part, run: &Run, member: usize) -> Matrices<'_> {
        let (tensor, [batch, head, row]) = self.vectors[i];
        let first = run.head * self.group() + part.members.start + member;
        let start = run.batch * batch + first * head + part.queries.start * row;
        let next = if run.is_over_batches { batch } else { self.group() * head };
        Matrices { tensor, start, next, row, transposed: false }
    }

    /// Returns the place of a run's vectors in K or V.
    fn keys(&self, i: usize, run: &Run) -> Matrices<'_> {
        let (tensor, [batch, head, row]) = self.vectors[i];
        let start = run.batch * batch + run.head * head;
        let next = if run.is_over_batches { batch } else { head };
        Matrices { tensor, start, next, row, transposed: false }
    }

    /// Turns the scores of a part into weights.
    fn compute_weights(&self, part: &Part, [scores, weights]: [&Array; 2]) -> Result<()> {
        if scores.is_empty() {
            return Ok(());
        }
        let dims = self.dims;
        let head = (part.batches.start * dims.kv_heads + part.heads.start) * self.group() + part.members.start;
        let heads = part.batches.len() * part.heads.len();
        let params = RowsParams {
            scores: scores.address()?,
            weights: weights.address()?,
            rows: count(heads * part.members.len() * part.queries.len())?,
            first: count(head * dims.queries + part.queries.start)?,
            ..self.params
        };
        let symbol = Symbol { module: "attention", name: "rows", kind: kind(weights.dtype())? };
        launch(self.gpu, symbol, Grid::blocks(params.rows), &params)
    }

    /// Returns the rows of queries that share a head of keys, as one product if their strides are equal.
    fn rows(&self, part: &Part) -> Rows {
        let (members, queries) = (part.members.len(), part.queries.len());
        let [[_, q_head, q_row], [_, y_head, y_row]] = [self.vectors[0].1, self.vectors[3].1];
        if queries == 1 {
            return Rows { times: 1, m: members, steps: [q_head, y_head] };
        }
        let is_even = members == 1 || [q_head, y_head] == [queries * q_row, queries * y_row];
        let (times, m) = if is_even { (1, members * queries) } else { (members, queries) };
        Rows { times, m, steps: [q_row, y_row] }
    }
}
