//! Attention: a product, a kernel that makes weights of scores, a product.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Gpu, Grid, Symbol};

use super::gemm::{Matrices, Product};
use super::launch::{count, kind, launch, room, width, Params};
use super::OnGpu;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::attention::{mask_strides, Attention, AttentionGuard, AttentionScores, Layout, Strides};
use crate::value::{Array, Value};

/// The twin of `AttentionRows`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
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

/// The twin of `JoinedKeys`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
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

// SAFETY: as `attention.cu` has them; `Attention::layout` and `mask_strides` have found that the inputs have the elements that
// these sizes and strides say, and the rest is made of these sizes.
unsafe impl Params for RowsParams {}
// SAFETY: as above.
unsafe impl Params for JoinParams {}

/// The scores that are in memory at a time, if those of one head of keys are not more; few in tests, which so take them in
/// parts.
const SCORES: usize = if cfg!(test) { 64 } else { 1 << 28 };
/// As far as a window of keys reaches; positions are nearer.
const FAR: usize = 1 << 60;

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
        let y = room(gpu, &y_dims, dtype)?;
        let all = [dims.batch, dims.heads, dims.queries, dims.keys];
        let kept = if call.outputs > 3 { Some(room(gpu, &all, dtype)?) } else { None };
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
    /// What all rows of scores have in common.
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
        if let Some(mask) = call.optional_tensor(3)? {
            let (steps, keys) = mask_strides(mask.dims(), dims)?;
            count(mask.len())?;
            params.mask = mask.address()?;
            params.mask_kind = if mask.dtype() == DType::Bool { 2 } else { 1 };
            params.mask_keys = count(keys)?;
            params.mask_step = unsigned(steps)?;
        }
        if let Some(nonpad) = call.optional_tensor(6)? {
            if nonpad.dims() != [dims.batch] {
                bail!("nonpad_kv_seqlen has a number for each of {} batches, found {:?}", dims.batch, nonpad.dims());
            }
            params.nonpad = nonpad.address()?;
        }
        Ok(params)
    }
}

fn unsigned([a, b, c]: Strides) -> Result<[u32; 3]> {
    Ok([count(a)?, count(b)?, count(c)?])
}

/// All keys and all values, `[N, kv_heads, S, D]`, where there is a past, or where they are an output.
fn joined(gpu: &Gpu, call: &Call, layout: &Layout) -> Result<Option<[Array; 2]>> {
    if call.optional(4).is_none() && call.outputs < 2 {
        return Ok(None);
    }
    let dims = layout.dims;
    let join = |past: usize, fresh: usize, strides: Strides, size: usize| {
        let (past, fresh) = (call.optional_tensor(past)?, call.tensor(fresh)?);
        let joined = room(gpu, &[dims.batch, dims.kv_heads, dims.keys, size], fresh.dtype())?;
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

/// Heads of keys and values, each with the heads of queries that share it.
struct Heads<'a> {
    gpu: &'a Gpu,
    layout: &'a Layout,
    /// Q, K, V and Y, and where their vectors stand.
    vectors: [(&'a Array, Strides); 4],
    params: RowsParams,
}

/// Rows of queries of each head of keys: `times` products of `m` rows, which stand at these distances in Q and Y.
struct Queries {
    times: usize,
    m: usize,
    rows: [usize; 2],
}

impl Heads<'_> {
    fn run(&self) -> Result<()> {
        let dims = self.layout.dims;
        let rows = dims.batch * dims.heads * dims.queries;
        count(rows)?;
        if rows == 0 {
            return Ok(());
        }
        let group = dims.heads / dims.kv_heads;
        // Whether heads stand at equal distances through all batches.
        let is_even = |(i, (_, [batch, head, _])): (usize, &(&Array, Strides))| {
            *batch == head * if [0, 3].contains(&i) { dims.heads } else { dims.kv_heads }
        };
        let is_whole = dims.batch == 1 || self.vectors.iter().enumerate().all(is_even);
        let spans = if is_whole { [1, dims.batch * dims.kv_heads] } else { [dims.batch, dims.kv_heads] };
        let scores_of_one = (group * dims.queries).saturating_mul(dims.keys);
        let most = (SCORES / scores_of_one.max(1)).clamp(1, spans[1]);
        let part = [most, group, dims.queries, dims.keys];
        let dtype = self.vectors[0].0.dtype();
        let wide = if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let scores = room(self.gpu, &part, wide)?;
        let weights = if dtype == wide { scores.clone() } else { room(self.gpu, &part, dtype)? };
        for batch in 0..spans[0] {
            for first in (0..spans[1]).step_by(most) {
                self.part(batch, first..spans[1].min(first + most), [&scores, &weights])?;
            }
        }
        Ok(())
    }

    /// The outputs for some heads of keys, which are counted from a batch's first.
    fn part(&self, batch: usize, heads: std::ops::Range<usize>, [scores, weights]: [&Array; 2]) -> Result<()> {
        let dims = self.layout.dims;
        let group = dims.heads / dims.kv_heads;
        let queries = self.queries(group);
        let start = |i: usize, group: usize| {
            let [of_batch, head, _] = self.vectors[i].1;
            batch * of_batch + heads.start * group * head
        };
        let of = |i: usize, time: usize| {
            let (tensor, [_, head, _]) = self.vectors[i];
            let (start, row) = (start(i, group) + time * head, queries.rows[usize::from(i == 3)]);
            Matrices { tensor, start, next: group * head, row, transposed: false }
        };
        let shared = |i: usize| {
            let (tensor, [_, head, row]) = self.vectors[i];
            Matrices { tensor, start: start(i, 1), next: head, row, transposed: false }
        };
        let size = dims.queries * dims.keys;
        let square = |tensor, time: usize| {
            Matrices { tensor, start: time * size, next: group * size, row: dims.keys, transposed: false }
        };
        let product = |n: usize, k: usize| Product { batch: heads.len(), ..Product::of(queries.m, n, k) };
        for time in 0..queries.times {
            product(dims.keys, dims.depth).run(self.gpu, of(0, time), shared(1).columns(), square(scores, time))?;
        }
        let first = (batch * dims.kv_heads + heads.start) * group * dims.queries;
        self.weigh(first, heads.len() * group * dims.queries, [scores, weights])?;
        for time in 0..queries.times {
            product(dims.width, dims.keys).run(self.gpu, square(weights, time), shared(2), of(3, time))?;
        }
        Ok(())
    }

    /// Makes weights of rows of scores, the first of which is row `first` of all.
    fn weigh(&self, first: usize, rows: usize, [scores, weights]: [&Array; 2]) -> Result<()> {
        if scores.is_empty() {
            return Ok(());
        }
        let params = RowsParams {
            scores: scores.address()?,
            weights: weights.address()?,
            rows: count(rows)?,
            first: count(first)?,
            ..self.params
        };
        let symbol = Symbol { module: "attention", name: "rows", kind: kind(weights.dtype())? };
        launch(self.gpu, symbol, Grid::blocks(params.rows), &params)
    }

    /// The rows of queries that share a head of keys: in one product where they stand at equal distances.
    fn queries(&self, group: usize) -> Queries {
        let queries = self.layout.dims.queries;
        let [[_, q_head, q_row], [_, y_head, y_row]] = [self.vectors[0].1, self.vectors[3].1];
        if queries == 1 {
            return Queries { times: 1, m: group, rows: [q_head, y_head] };
        }
        let is_even = group == 1 || [q_head, y_head] == [queries * q_row, queries * y_row];
        let (times, m) = if is_even { (1, group * queries) } else { (group, queries) };
        Queries { times, m, rows: [q_row, y_row] }
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::dtype::{Bool, Element};
    use crate::testing::{run_outputs, tensor};

    const PLAIN: Attention = Attention {
        heads: None,
        kv_heads: None,
        scale: None,
        softcap: None,
        is_causal: false,
        left_window: None,
        right_window: None,
        guard: AttentionGuard::Unseeing,
        scores: AttentionScores::Product,
    };

    fn data<T: Element>(dims: &[usize], from: &impl Fn(f32) -> T) -> Option<Value> {
        let numbers = (0..dims.iter().product()).map(|i: usize| from((i * 7919 % 101) as f32 / 50.0 - 1.0));
        Some(tensor(&numbers.collect::<Vec<T>>(), dims))
    }

    fn chosen(dims: &[usize]) -> Option<Value> {
        let numbers = (0..dims.iter().product()).map(|i: usize| Bool::from(i * 7919 % 3 != 1));
        Some(tensor(&numbers.collect::<Vec<Bool>>(), dims))
    }

    /// Two batches, four heads that share two of keys, folded and not, with and without a past.
    fn check<T: Element>(from: impl Fn(f32) -> T) {
        let stages = [
            AttentionScores::Product,
            AttentionScores::Capped,
            AttentionScores::Masked,
            AttentionScores::Softmax,
        ];
        for (i, (folded, past)) in [(false, 0), (true, 0), (false, 2), (true, 3)].into_iter().enumerate() {
            for (queries, new) in [(3, 5), (1, 4), (2, 300)] {
                let dims = |heads: usize, rows: usize, size: usize| match folded {
                    true => vec![2, rows, heads * size],
                    false => vec![2, heads, rows, size],
                };
                let [heads, kv_heads] = [4, 2].map(|heads| folded.then_some(heads));
                let all = new + past;
                let mask = [None, data(&[queries, all], &from), chosen(&[2, 1, queries, all]), chosen(&[4, 1, all - 1])];
                let op = Attention {
                    heads,
                    kv_heads,
                    softcap: (i % 2 == 0).then_some(0.7),
                    is_causal: i == 2,
                    left_window: (i == 1).then_some(2),
                    scale: (i == 3).then_some(0.3),
                    scores: stages[i],
                    ..PLAIN
                };
                let before = |size| data(&[2, 2, past, size], &from).filter(|_| past > 0);
                let (q, k, v) = (dims(4, queries, 6), dims(2, new, 6), dims(2, new, 5));
                let [q, k, v] = [q, k, v].map(|dims| data(&dims, &from));
                for mask in mask {
                    let inputs = [q.clone(), k.clone(), v.clone(), mask, before(6), before(5)];
                    for outputs in [1, 3, 4] {
                        run_outputs(&op, &inputs, outputs).expect("it runs");
                    }
                }
            }
        }
    }

    #[test]
    fn attention_is_that_of_the_processor_in_every_type() {
        check::<f32>(|x| x);
        check::<f64>(f64::from);
        check::<f16>(f16::from_f32);
        check::<bf16>(bf16::from_f32);
    }

    #[test]
    fn guards_and_numbers_of_keys_are_those_of_the_processor() {
        let float = |x: f32| x;
        for guard in [AttentionGuard::Unseeing, AttentionGuard::Nothing, AttentionGuard::Undefined] {
            let op = Attention { guard, is_causal: true, scores: AttentionScores::Softmax, ..PLAIN };
            let inf = f32::NEG_INFINITY;
            let blind = Some(tensor(&[0.0, inf, inf, inf, inf, inf, inf, f32::NAN], &[2, 4]));
            for (mask, nonpad) in [(blind, [4i64, 3]), (None, [1, 0]), (None, [-5, i64::MAX]), (None, [i64::MIN, 2])] {
                let [q, k] = [2, 4].map(|rows| data(&[2, 2, rows, 3], &float));
                let nonpad = Some(tensor(&nonpad, &[2]));
                run_outputs(&op, &[q, k.clone(), k, mask, None, None, nonpad], 4).expect("it runs");
            }
        }
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let float = |x: f32| x;
        for [batch, heads, queries, keys, depth, width] in
            [[0, 2, 2, 2, 2, 2], [1, 0, 2, 2, 2, 2], [1, 2, 0, 2, 2, 2], [1, 2, 2, 0, 2, 2], [1, 2, 2, 2, 2, 0]]
        {
            let [q, k, v] = [[queries, depth], [keys, depth], [keys, width]]
                .map(|[rows, size]| data(&[batch, heads, rows, size], &float));
            run_outputs(&PLAIN, &[q, k, v], 4).expect("it runs");
        }
    }
}
