//! GPU kernels: attention: a product, a kernel that turns scores into weights, and a product.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};
use candle_plan_kernels::attention::Dims;

use super::gemm::{Matrices, Product};
use super::launch::{alloc_uninit, count, kind, launch, width, Params};
use super::OnGpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::gpu_kernel;
use crate::kernel::{Call, Constants};
use crate::ops::attention::{mask_strides, Attention, AttentionGuard, AttentionScores, Layout, Strides};
use crate::value::{Array, Value};

/// The parameters of the softmax of scores. `Attention::layout` and `mask_strides` check that the inputs have the
/// elements that these sizes and strides require, and the other tensors are allocated with these sizes.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(AttentionRows in "attention.cu")]
struct RowsParams {
    scores: u64,
    weights: u64,
    kept: u64,
    mask: u64,
    nonpad: u64,
    scale: f64,
    cap: f64,
    left: i64,
    right: i64,
    rows: u32,
    first: u32,
    heads: u32,
    queries: u32,
    keys: u32,
    past: u32,
    mask_kind: u32,
    mask_keys: u32,
    mask_step: [u32; 3],
    stage: u32,
    guard: u32,
    is_capped: u32,
}

/// The parameters of the joining of past and new keys, or values. The sizes are those of `RowsParams`.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(JoinedKeys in "attention.cu")]
struct JoinParams {
    past: u64,
    fresh: u64,
    joined: u64,
    count: u32,
    heads: u32,
    old: u32,
    rows: u32,
    size: u32,
    step: [u32; 3],
}

/// The largest number of scores in memory at a time, unless one query has more. Small in tests, so that they use parts.
const SCORES: usize = if cfg!(test) { 2900 } else { 1 << 26 };

/// The largest window of keys; positions are smaller.
const FAR: usize = 1 << 60;

gpu_kernel!(Attention: "attention" if |self, operands| has_kernel(operands));

impl OnGpu for Attention {
    fn run(&self, gpu: &Gpu, call: &mut Call) -> Result<Vec<Value>> {
        let layout = self.layout(call)?;
        let joined = joined(gpu, call, &layout)?;
        let dims = layout.dims;
        let y_dims = match self.heads {
            None => vec![dims.batch, dims.heads, dims.queries, dims.width],
            Some(_) => vec![dims.batch, dims.queries, dims.heads * dims.width],
        };
        let dtype = call.tensor(0)?.dtype();
        let y = alloc_uninit(gpu, &y_dims, dtype)?;
        let all = [dims.batch, dims.heads, dims.queries, dims.keys];
        let kept = if call.outputs > 3 { Some(alloc_uninit(gpu, &all, dtype)?) } else { None };
        let whole = |size: usize| [dims.kv_heads * dims.keys * size, dims.keys * size, size];
        let (k, v) = match &joined {
            Some([k, v]) => ((k, whole(dims.depth)), (v, whole(dims.width))),
            None => ((call.tensor(1)?, layout.k), (call.tensor(2)?, layout.v)),
        };
        let row = match self.heads {
            None => [dims.heads * dims.queries * dims.width, dims.queries * dims.width, dims.width],
            Some(_) => [dims.queries * dims.heads * dims.width, dims.width, dims.heads * dims.width],
        };
        let params = self.params(call, &layout, kept.as_ref())?;
        let vectors = [(call.tensor(0)?, layout.q), k, v, (&y, row)];
        Heads { gpu, layout: &layout, vectors, params }.run()?;
        let mut outputs = vec![y.into()];
        outputs.extend(joined.into_iter().flatten().map(Value::from));
        outputs.extend(kept.map(Value::from));
        Ok(outputs)
    }
}

impl Attention {
    /// Fills the parameters that all rows of scores share.
    fn params(&self, call: &Call, layout: &Layout, kept: Option<&Array>) -> Result<RowsParams> {
        let dims = layout.dims;
        let window = |keys: Option<usize>| keys.map_or(-1, |keys| keys.min(FAR) as i64);
        let right = if self.is_causal { Some(0) } else { self.right_window };
        let mut params = RowsParams {
            kept: kept.map_or(Ok(0), Array::address)?,
            scale: self.scale.unwrap_or_else(|| 1.0 / (dims.depth as f64).sqrt()),
            cap: self.softcap.unwrap_or(0.0),
            left: window(self.left_window),
            right: window(right),
            heads: count(dims.heads)?,
            queries: count(dims.queries)?,
            keys: count(dims.keys)?,
            past: count(layout.past)?,
            mask_keys: count(dims.keys)?,
            stage: kept.map_or(4, |_| match self.scores {
                AttentionScores::Product => 0,
                AttentionScores::Capped => 1,
                AttentionScores::Masked => 2,
                AttentionScores::Softmax => 3,
            }),
            guard: match self.guard {
                AttentionGuard::Unseeing => 0,
                AttentionGuard::Nothing => 1,
                AttentionGuard::Undefined => 2,
            },
            is_capped: self.softcap.is_some().into(),
            ..RowsParams::zeroed()
        };
        masked(call, dims, &mut params)?;
        Ok(params)
    }
}

/// Adds the parameters that determine which keys a query sees.
fn masked(call: &Call, dims: Dims, params: &mut RowsParams) -> Result<()> {
    if let Some(mask) = call.optional_tensor(3)? {
        let (steps, keys) = mask_strides(mask.dims(), dims)?;
        count(mask.len())?;
        params.mask = mask.address()?;
        params.mask_kind = if mask.dtype() == DType::Bool { 2 } else { 1 };
        params.mask_keys = count(keys)?;
        params.mask_step = unsigned(steps)?;
    }
    if let Some(nonpad) = call.optional_tensor(6)? {
        params.nonpad = nonpad.address()?;
    }
    Ok(())
}

fn unsigned([a, b, c]: Strides) -> Result<[u32; 3]> {
    Ok([count(a)?, count(b)?, count(c)?])
}

/// Returns all keys and values, `[N, kv_heads, S, D]`, if there is a past or they are outputs.
fn joined(gpu: &Gpu, call: &Call, layout: &Layout) -> Result<Option<[Array; 2]>> {
    if call.optional(4).is_none() && call.outputs < 2 {
        return Ok(None);
    }
    let dims = layout.dims;
    let join = |past: usize, fresh: usize, strides: Strides, size: usize| {
        let (past, fresh) = (call.optional_tensor(past)?, call.tensor(fresh)?);
        let joined = alloc_uninit(gpu, &[dims.batch, dims.kv_heads, dims.keys, size], fresh.dtype())?;
        let params = JoinParams {
            past: past.map_or(Ok(0), Array::address)?,
            fresh: fresh.address()?,
            joined: joined.address()?,
            count: count(joined.len())?,
            heads: count(dims.kv_heads)?,
            old: count(layout.past)?,
            rows: count(dims.keys)?,
            size: count(size)?,
            step: unsigned(strides)?,
        };
        let symbol = Symbol { module: "attention", name: "join", kind: width(fresh.dtype())? };
        launch(gpu, symbol, Grid::over(params.count), &params)?;
        Ok::<_, crate::error::Error>(joined)
    };
    Ok(Some([join(4, 1, layout.k, dims.depth)?, join(5, 2, layout.v, dims.width)?]))
}

/// The heads of keys and values, with the heads of queries that share each of them.
struct Heads<'a> {
    gpu: &'a Gpu,
    layout: &'a Layout,
    /// Q, K, V and Y, with the strides of their vectors.
    vectors: [(&'a Array, Strides); 4],
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
        let dims = self.layout.dims;
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
        self.layout.dims.heads / self.layout.dims.kv_heads
    }

    /// Whether consecutive heads have equal strides across all batches.
    fn is_even(&self) -> bool {
        let Dims { batch, heads, kv_heads, .. } = self.layout.dims;
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
        let (dims, group, rows) = (self.layout.dims, self.group(), self.rows(part));
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
        let dims = self.layout.dims;
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

/// Whether the device has a kernel: V, and a numeric mask, must have Q's type.
fn has_kernel(operands: &Constants) -> bool {
    let [q, v, mask] = [0, 2, 3].map(|i| operands.dtype(i));
    let has_mask = operands.types.get(3).copied().flatten().is_some();
    q.is_some() && v == q && (!has_mask || mask == Some(DType::Bool) || mask == q)
}
