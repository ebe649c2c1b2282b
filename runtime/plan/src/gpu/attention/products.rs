//! Attention as a product, a kernel that turns scores into weights, and a product.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};
use candle_plan_kernels::attention::Dims;

use super::{Scoring, Vectors};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gemm::{Matrices, Product};
use crate::gpu::launch::{alloc_uninit, count, kind, launch, Params};
use crate::ops::attention::AttentionScores;
use crate::value::Array;

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

/// Computes Y from Q, K and V. Stores the scores of a stage in a tensor `[N, heads, L, S]`, if there is one.
///
/// # Errors
/// The device fails, or has no room for the scores.
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

/// Consecutive rows of scores: those of all queries for some heads of keys, or of some queries for one head of queries.
struct Part {
    batch: usize,
    /// The heads of keys, counted from the first of the batch.
    heads: Range<usize>,
    /// The heads of queries among those that share a head of keys.
    members: Range<usize>,
    queries: Range<usize>,
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
        let spans = if self.is_even() { [1, dims.batch * dims.kv_heads] } else { [dims.batch, dims.kv_heads] };
        // As many heads of keys as fit at a time, or as many queries of one head.
        let fitting = SCORES / dims.keys.max(1);
        let heads = (fitting / (group * dims.queries)).clamp(1, spans[1]);
        let (members, queries) = match group * dims.queries <= fitting {
            true => (group, dims.queries),
            false => (1, fitting.clamp(1, dims.queries)),
        };
        let scratch = self.scratch(&[heads, members, queries, dims.keys])?;
        let pieces = |all: usize, size: usize| (0..all).step_by(size).map(move |at| at..all.min(at + size));
        for (batch, heads) in (0..spans[0]).flat_map(|batch| pieces(spans[1], heads).map(move |heads| (batch, heads))) {
            for members in pieces(group, members) {
                for queries in pieces(dims.queries, queries) {
                    let (heads, members) = (heads.clone(), members.clone());
                    self.part(&Part { batch, heads, members, queries }, [&scratch[0], &scratch[1]])?;
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
        let wide = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let scores = alloc_uninit(self.gpu, dims, wide)?;
        let weights = if dtype == wide { scores.clone() } else { alloc_uninit(self.gpu, dims, dtype)? };
        Ok([scores, weights])
    }

    /// Computes the outputs of a part.
    fn part(&self, part: &Part, [scores, weights]: [&Array; 2]) -> Result<()> {
        let (dims, group, rows) = (self.dims, self.group(), self.rows(part));
        let of_queries = |i: usize, time: usize| {
            let (tensor, [batch, head, row]) = self.vectors[i];
            let first = part.heads.start * group + part.members.start + time;
            let start = part.batch * batch + first * head + part.queries.start * row;
            Matrices { tensor, start, next: group * head, row: rows.steps[usize::from(i == 3)], transposed: false }
        };
        let of_keys = |i: usize| {
            let (tensor, [batch, head, row]) = self.vectors[i];
            let start = part.batch * batch + part.heads.start * head;
            Matrices { tensor, start, next: head, row, transposed: false }
        };
        let size = rows.m * dims.keys;
        let square = |tensor, time: usize| Matrices {
            tensor,
            start: time * size,
            next: rows.times * size,
            row: dims.keys,
            transposed: false,
        };
        let product = |n: usize, k: usize| Product { batch: part.heads.len(), ..Product::of(rows.m, n, k) };
        for time in 0..rows.times {
            product(dims.keys, dims.depth).run(
                self.gpu,
                of_queries(0, time),
                of_keys(1).columns(),
                square(scores, time),
            )?;
        }
        self.compute_weights(part, [scores, weights])?;
        for time in 0..rows.times {
            product(dims.width, dims.keys).run(self.gpu, square(weights, time), of_keys(2), of_queries(3, time))?;
        }
        Ok(())
    }

    /// Turns the scores of a part into weights.
    fn compute_weights(&self, part: &Part, [scores, weights]: [&Array; 2]) -> Result<()> {
        if scores.is_empty() {
            return Ok(());
        }
        let dims = self.dims;
        let head = (part.batch * dims.kv_heads + part.heads.start) * self.group() + part.members.start;
        let params = RowsParams {
            scores: scores.address()?,
            weights: weights.address()?,
            rows: count(part.heads.len() * part.members.len() * part.queries.len())?,
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
