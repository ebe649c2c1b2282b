//! CPU kernels: scaled dot-product attention.

use std::ops::Range;

use candle_plan_kernels::attention::{attention, is_cached, Attends, Dims, Guard, Problem, Stage, Stored, Vectors};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::reduce::Number;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer;
use half::{bf16, f16};

use super::convert::{converted, widened_bytes, Float};
use super::mask::{vectors, MaskInput};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::operands::attention::{Layout, Strides};
use crate::operator::Operator;
use crate::ops::attention::{self, Attention, AttentionGuard, AttentionScores};
use crate::types::{TensorType, Types};
use crate::value::{alloc_uninit, charge, element_count, with_capacity, Array, Value};

impl Kernel for Attention {
    fn reads_grown(&self, input: usize, from_end: usize) -> bool {
        matches!(input, 1 | 2) && from_end == 2 && self.kv_heads.is_none()
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let dtype = inputs.tensor(0).ok()?.dtype;
        let is_uniform = (1..6)
            .filter_map(|i| inputs.optional(i)?.tensor().ok())
            .all(|x| x.dtype == dtype || x.dtype == DType::Bool);
        let joins = inputs.optional(4).is_some() || inputs.outputs > 1;
        let vectors = |i: usize| attention::vectors(inputs.shape(i).ok()??, self.kv_heads).ok();
        let ([_, _, keys, depth], [_, _, _, width]) = (vectors(1)?, vectors(2)?);
        if !is_uniform || joins || !is_cached(keys?, depth?.max(width?)) {
            return None;
        }
        // Narrow queries are widened twice, and the result has another order if it has no axis of heads. Narrow keys and values
        // are widened block by block.
        let y = self.infer(inputs).ok()?.first()?.tensor().ok().map(TensorType::bytes)?;
        Some(widened_bytes(self, inputs, |i| matches!(i, 1 | 2))?.saturating_mul(2).saturating_add(y))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let layout = self.layout(call)?;
        dispatch!("Attention", call.tensor(0)?.dtype(), [f32, f64, f16, bf16], T => self.attend::<T>(call, &layout))
    }
}

/// Y, and the scores if the step outputs them.
type Computed<R> = (Vec<R>, Option<Vec<R>>);

impl Attention {
    fn attend<T: Float + Stored<T::Wide>>(&self, call: &Call, layout: &Layout) -> Result<Vec<Value>>
    where
        T::Wide: Attends,
    {
        let (dims, joined) = (layout.dims, joined(call, layout)?);
        let (y, scores) = self.read_joined::<T>(call, layout, joined.as_ref())?;
        let mut outputs = vec![self.fold_heads(T::narrow(y), dims)?.into()];
        outputs.extend(joined.into_iter().flatten().map(Value::from));
        if let Some(scores) = scores {
            outputs.push(Array::new(T::narrow(scores), &[dims.batch, dims.heads, dims.queries, dims.keys])?.into());
        }
        Ok(outputs)
    }

    /// Computes Y and the scores in the type to compute in. If values have another type than keys, copies of both in the type
    /// to compute in are freed at the end. If they have the same type, the kernel converts them block by block.
    fn read_joined<T: Float + Stored<T::Wide>>(
        &self,
        call: &Call,
        layout: &Layout,
        joined: Option<&[Array; 2]>,
    ) -> Result<Computed<T::Wide>>
    where
        T::Wide: Attends,
    {
        let dims = layout.dims;
        let whole = |size: usize| [dims.kv_heads * dims.keys * size, dims.keys * size, size];
        let (k, v, strides) = match joined {
            Some([k, v]) => (k, v, [whole(dims.depth), whole(dims.width)]),
            None => (call.storage(1)?, call.storage(2)?, [layout.k, layout.v]),
        };
        if v.dtype() == T::DTYPE {
            let [k, v]: [&[T]; 2] = [k.read()?, v.read()?];
            return self.read_rest(call, layout, [vectors(k, strides[0]), vectors(v, strides[1])]);
        }
        let wide = |array| converted(array, <T::Wide as Element>::DTYPE, call.threads);
        let [k, v] = [wide(k)?, wide(v)?];
        let [k, v]: [&[T::Wide]; 2] = [k.read()?, v.read()?];
        self.read_rest(call, layout, [vectors(k, strides[0]), vectors(v, strides[1])])
    }

    /// Computes Y and the scores from keys and values. Copies of the queries and the mask in the type to compute in are freed
    /// at the end.
    fn read_rest<R: Attends + Element, S: Stored<R>>(
        &self,
        call: &Call,
        layout: &Layout,
        [k, v]: [Vectors<S>; 2],
    ) -> Result<Computed<R>> {
        let dims = layout.dims;
        let q = converted(call.tensor(0)?, R::DTYPE, call.threads)?;
        let mask = call.optional_tensor(3)?.map(|mask| mask_elements::<R>(mask, call.threads)).transpose()?;
        let mask = MaskInput::new(mask.as_ref(), dims)?;
        let nonpad = nonpad(call)?;
        let problem = Problem {
            dims,
            q: vectors(q.read()?, layout.q),
            k,
            v,
            scale: Number::from_f64(self.scale.unwrap_or_else(|| 1.0 / (dims.depth as f64).sqrt())),
            softcap: self.softcap.map(Number::from_f64),
            mask: mask.as_kernel_mask(),
            visible: &|batch, query| {
                let seen = self.visible(layout, nonpad.as_ref().map(|nonpad| nonpad[batch]), query);
                seen.start..seen.end.min(mask.keys)
            },
            guard: self.guard(),
        };
        self.compute(call, &problem)
    }

    /// Computes Y `[N, heads, L, D]`, and the scores if the step outputs them.
    fn compute<R: Attends + Element, S: Stored<R>>(&self, call: &Call, problem: &Problem<R, S>) -> Result<Computed<R>> {
        let Dims { batch, heads, queries, keys, width, .. } = problem.dims;
        let y = alloc_uninit(&[batch, heads, queries, width])?;
        let run = |y: &mut [R], kept: Option<(Stage, &mut [R])>| attention(Isa::get(), call.threads, problem, y, kept);
        if call.outputs <= 3 {
            return Ok((y.overwrite(|y| run(y, None)), None));
        }
        let scores = alloc_uninit(&[batch, heads, queries, keys])?;
        let stage = match self.scores {
            AttentionScores::Product => Stage::Product,
            AttentionScores::Capped => Stage::Capped,
            AttentionScores::Masked => Stage::Masked,
            AttentionScores::Softmax => Stage::Softmax,
        };
        let (y, scores) = y.overwrite_both(scores, |y, scores| run(y, Some((stage, scores))));
        Ok((y, Some(scores)))
    }

    fn guard(&self) -> Guard {
        match self.guard {
            AttentionGuard::Unseeing => Guard::Unseeing,
            AttentionGuard::Nothing => Guard::Nothing,
            AttentionGuard::Undefined => Guard::Undefined,
        }
    }

    /// Returns the range of keys that a query sees; the mask may hide some of them.
    fn visible(&self, layout: &Layout, nonpad: Option<i64>, query: usize) -> Range<usize> {
        let Dims { queries, keys, .. } = layout.dims;
        let offset = nonpad.map_or(layout.past as i128, |nonpad| i128::from(nonpad) - queries as i128);
        let position = query as i128 + offset;
        let after = self.is_causal.then_some(0).into_iter().chain(self.right_window).min();
        let ends = [after.map(|after| position + after as i128 + 1), nonpad.map(i128::from)];
        let end = ends.into_iter().flatten().fold(keys as i128, i128::min);
        let start = self.left_window.map_or(0, |left| position - left as i128);
        let inside = |at: i128| usize::try_from(at.max(0)).map_or(keys, |at| at.min(keys));
        inside(start)..inside(end)
    }

    /// Makes Y from `[N, heads, L, D]`: unchanged, or as `[N, L, heads · D]`.
    fn fold_heads<T: Element>(&self, y: Vec<T>, dims: Dims) -> Result<Array> {
        let Dims { batch, heads, queries, width, .. } = dims;
        if self.heads.is_none() {
            return Array::new(y, &[batch, heads, queries, width]);
        }
        let mut folded = with_capacity(y.len())?;
        for (b, l) in (0..batch).flat_map(|b| (0..queries).map(move |l| (b, l))) {
            for h in 0..heads {
                folded.extend_from_slice(&y[((b * heads + h) * queries + l) * width..][..width]);
            }
        }
        Array::new(folded, &[batch, queries, heads * width])
    }
}

/// Converts the mask to the type of the computation. A boolean mask stays boolean.
fn mask_elements<R: Element>(mask: &Array, threads: &Threads) -> Result<Array> {
    if mask.dtype() == DType::Bool {
        return Ok(mask.clone());
    }
    converted(mask, R::DTYPE, threads)
}

/// Returns the number of keys that are not padding, for each batch.
fn nonpad(call: &Call) -> Result<Option<Vec<i64>>> {
    call.optional_tensor(6)?.map(Array::to_i64).transpose()
}

/// Returns all keys and values, `[N, kv_heads, S, D]`, if there is a past or they are outputs.
fn joined(call: &Call, layout: &Layout) -> Result<Option<[Array; 2]>> {
    if call.optional(4).is_none() && call.outputs < 2 {
        return Ok(None);
    }
    let Dims { batch, kv_heads, keys, depth, width, .. } = layout.dims;
    let join = |past: usize, new: usize, strides: Strides, size: usize| {
        let (past, new) = (call.optional_tensor(past)?, call.storage(new)?);
        dispatch!("Attention", new.dtype(), [f32, f64, f16, bf16], T => {
            join::<T>(past, layout.past, new, strides, [batch, kv_heads, keys, size])
        })
    };
    Ok(Some([join(4, 1, layout.k, depth)?, join(5, 2, layout.v, width)?]))
}

/// Concatenates the `old` past vectors of each head with the new ones.
fn join<T: Element>(
    past: Option<&Array>,
    old: usize,
    new: &Array,
    strides: Strides,
    dims: [usize; 4],
) -> Result<Array> {
    let [batch, heads, rows, size] = dims;
    let count = element_count(&dims)?;
    if buffer::is_cached::<T>(count) {
        charge(&dims, size_of::<T>())?; // a kernel with several results counts small ones too
    }
    let mut joined = with_capacity(count)?;
    let new = new.read::<T>()?;
    let past = past.map(Array::read::<T>).transpose()?;
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        if let Some(past) = &past {
            joined.extend_from_slice(&past[(b * heads + h) * old * size..][..old * size]);
        }
        for row in 0..rows - old {
            joined.extend_from_slice(&new[b * strides[0] + h * strides[1] + row * strides[2]..][..size]);
        }
    }
    Array::new(joined, &dims)
}

#[cfg(test)]
impl Attention {
    /// Attention in which every query sees every key, scaled by 1/√(head size).
    pub(crate) const PLAIN: Attention = Attention {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::convert::read_as;
    use crate::dtype::Bool;
    use crate::testing::{run, run_outputs, tensor};
    use candle_plan_memory::buffer;

    fn values(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i * 7919 % 101) as f32 / 50.0 - 1.0).collect()
    }

    fn floats(dims: &[usize]) -> Option<Value> {
        Some(tensor(&values(dims.iter().product()), dims))
    }

    fn found(value: &Value) -> Vec<f32> {
        value.tensor().and_then(|array| read_as(array, &Threads::serial())).expect("floats")
    }

    #[test]
    fn heads_may_be_folded_into_vectors() {
        let folded = Attention { heads: Some(4), kv_heads: Some(2), ..Attention::PLAIN };
        let (q, k) = (values(2 * 3 * 4 * 8), values(2 * 5 * 2 * 8));
        // [N, L, heads, D] → [N, heads, L, D]
        let unfold = |x: &[f32], rows: usize, heads: usize| -> Vec<f32> {
            let at = |i: usize| {
                let (n, h, l, d) = (i / (heads * rows * 8), i / (rows * 8) % heads, i / 8 % rows, i % 8);
                x[((n * rows + l) * heads + h) * 8 + d]
            };
            (0..x.len()).map(at).collect()
        };
        let y = run(
            &folded,
            &[Some(tensor(&q, &[2, 3, 32])), Some(tensor(&k, &[2, 5, 16])), Some(tensor(&k, &[2, 5, 16]))],
        );
        let q4 = Some(tensor(&unfold(&q, 3, 4), &[2, 4, 3, 8]));
        let k4 = Some(tensor(&unfold(&k, 5, 2), &[2, 2, 5, 8]));
        let y4 = run(&Attention::PLAIN, &[q4, k4.clone(), k4]);
        assert_eq!(unfold(&found(&y.expect("runs")), 3, 4), found(&y4.expect("runs")));
    }

    #[test]
    fn past_keys_precede_new_keys() {
        let op = Attention { is_causal: true, ..Attention::PLAIN };
        let all = values(2 * 5 * 4);
        let part = |from: usize, to: usize| -> Vec<f32> {
            (0..2).flat_map(|h| all[(h * 5 + from) * 4..(h * 5 + to) * 4].to_vec()).collect()
        };
        let (old, new) = (part(0, 3), part(3, 5));
        let (old, new) = (Some(tensor(&old, &[1, 2, 3, 4])), Some(tensor(&new, &[1, 2, 2, 4])));
        let inputs = [floats(&[1, 2, 2, 4]), new.clone(), new, None, old.clone(), old];
        let with_past = run_outputs(&op, &inputs, 3).expect("runs");
        assert_eq!(found(&with_past[1]), all);
        assert_eq!(found(&with_past[2]), all);
        let all = Some(tensor(&all, &[1, 2, 5, 4]));
        let five = Some(tensor(&[5i64], &[1]));
        let without = run(&op, &[floats(&[1, 2, 2, 4]), all.clone(), all, None, None, None, five]).expect("runs");
        assert_eq!(found(&with_past[0]), found(&without));
    }

    #[test]
    fn hidden_keys_do_not_count() {
        let inf = f32::NEG_INFINITY;
        let (t, f) = (Bool::from(true), Bool::from(false));
        let added = Some(tensor(&[0.0, inf, 0.0, inf, inf, inf], &[2, 3]));
        let chosen = Some(tensor(&[t, f, t, f, f, f], &[2, 3]));
        let short = Some(tensor(&[0.0f32, 0.0], &[1, 2]));
        let causal = Attention { is_causal: true, ..Attention::PLAIN };
        let window = Attention { left_window: Some(0), right_window: Some(1), ..Attention::PLAIN };
        let two = || Some(tensor(&[2i64], &[1]));
        let one = || Some(tensor(&[1i64], &[1]));
        for (op, mask, nonpad, seen) in [
            (&Attention::PLAIN, None, None, [&[0, 1, 2][..], &[0, 1, 2]]),
            (&Attention::PLAIN, added, None, [&[0, 2], &[]]),
            (&Attention::PLAIN, chosen, None, [&[0, 2], &[]]),
            (&Attention::PLAIN, short, None, [&[0, 1], &[0, 1]]),
            (&Attention::PLAIN, None, two(), [&[0, 1], &[0, 1]]),
            (&causal, None, None, [&[0], &[0, 1]]),
            (&causal, None, one(), [&[], &[0]]),
            (&window, None, None, [&[0, 1], &[1, 2]]),
            (&window, None, two(), [&[0, 1], &[1]]),
        ] {
            let value = |key: usize| [1.0, 10.0, 100.0][key];
            let v = Some(tensor(&[1.0f32, 10.0, 100.0], &[1, 1, 3, 1]));
            // With equal keys, every visible key has the same weight.
            let k = Some(tensor(&[1.0f32; 6], &[1, 1, 3, 2]));
            let y = run(op, &[floats(&[1, 1, 2, 2]), k, v, mask, None, None, nonpad]).expect("runs");
            let mean = |keys: &[usize]| keys.iter().map(|&k| value(k)).sum::<f32>() / keys.len().max(1) as f32;
            for (found, expected) in found(&y).iter().zip(seen.map(mean)) {
                assert!((found - expected).abs() < 1e-4, "{op:?} {seen:?}: {found} {expected}");
            }
        }
    }

    #[test]
    fn mismatched_inputs_are_refused() {
        let q = || floats(&[1, 2, 3, 4]);
        let cases: [(&[usize], &[usize], Option<Value>); 5] = [
            (&[1, 2, 5, 3], &[1, 2, 5, 4], None),
            (&[1, 2, 5, 4], &[1, 2, 6, 4], None),
            (&[2, 2, 5, 4], &[2, 2, 5, 4], None),
            (&[1, 3, 5, 4], &[1, 3, 5, 4], None),
            (&[1, 2, 5, 4], &[1, 2, 5, 4], floats(&[2, 5])),
        ];
        for (k, v, mask) in cases {
            assert!(run(&Attention::PLAIN, &[q(), floats(k), floats(v), mask]).is_err(), "{k:?} {v:?}");
        }
        assert!(run(&Attention::PLAIN, &[floats(&[1, 3, 8]), floats(&[1, 3, 8]), floats(&[1, 3, 8])]).is_err());
    }

    #[test]
    fn outputs_beyond_the_memory_limit_are_refused() {
        // Y needs 1.1 MB; joined keys and values need 2.2 MB each.
        let half = || floats(&[1, 1, 64, 4_375]);
        for (mib, outputs, is_refused) in [(1, 1, true), (64, 1, false), (3, 3, true), (128, 3, false), (128, 4, false)]
        {
            let past = || half().filter(|_| outputs > 1);
            let inputs = [half(), half(), half(), None, past(), past()];
            let found = buffer::within(mib << 20, || run_outputs(&Attention::PLAIN, &inputs, outputs));
            assert_eq!(found.is_err(), is_refused, "{mib} MiB for {outputs} outputs");
        }
    }
}
