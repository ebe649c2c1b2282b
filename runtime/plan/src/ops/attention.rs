//! Scaled dot-product attention.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::{require_dtype, DType, FLOATS, NUMBERS};
use crate::error::Result;
use crate::extent::{all_fit, at_most, fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::work::{self, Work};

/// The scores in the fourth output of [`Attention`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AttentionScores {
    /// `Q · Kᵀ · scale`
    Product,
    /// The scores after the soft cap.
    Capped,
    /// The scores after the masks.
    Masked,
    /// The weights after softmax.
    Softmax,
}

/// Which weights of [`Attention`] are set to 0 after softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AttentionGuard {
    /// The weights of a query for which the masks leave no key, as ONNX defines.
    Unseeing,
    /// None. A query without a key gives NaN.
    Nothing,
    /// All weights that would be NaN.
    Undefined,
}

/// `Y = softmax(softcap(Q · Kᵀ · scale) + mask) · V`.
///
/// Inputs: Q `[N, heads, L, D]` or `[N, L, heads · D]`; K and V in the same layout with kv_heads heads, each shared by
/// heads / kv_heads heads of Q; mask (optional), which broadcasts to `[N, heads, L, S]` and is added to the scores, or
/// selects them if it is bool; past key and past value (optional) `[N, kv_heads, P, D]`, which come before K and V;
/// nonpad (optional) int64 `[N]`, the number of visible keys. A mask whose last dimension is shorter than S hides the
/// later keys.
///
/// Outputs: Y as Q; present key and value (optional) `[N, kv_heads, S, D]`; scores (optional) `[N, heads, L, S]`.
///
/// Query i has position i + P, or i + nonpad − L with nonpad. Everything except the output is computed in `f32`, or in
/// `f64` for `f64`. Source: [ONNX Attention](https://onnx.ai/onnx/operators/onnx__Attention.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attention {
    /// The number of heads of Q; null if Q has a dimension for them.
    pub heads: Option<usize>,
    /// The number of heads of K and V; null if they have a dimension for them.
    pub kv_heads: Option<usize>,
    /// The factor of the products; null means `1 / √D`.
    pub scale: Option<f64>,
    /// The cap c in `c · tanh(score / c)`; null means no cap.
    pub softcap: Option<f64>,
    /// Whether a query sees only keys up to its position.
    pub is_causal: bool,
    /// The number of keys before its position that a query sees; null means all.
    pub left_window: Option<usize>,
    /// The number of keys after its position that a query sees; null means all.
    pub right_window: Option<usize>,
    /// The weights that are set to 0 after softmax.
    pub guard: AttentionGuard,
    /// The content of the fourth output.
    pub scores: AttentionScores,
}

impl Operator for Attention {
    fn arity(&self) -> Arity {
        Arity { inputs: 3..=7, outputs: 1..=4 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let [q, k, v] = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?];
        for (name, tensor, heads) in [("Q", q, self.heads), ("K", k, self.kv_heads), ("V", v, self.kv_heads)] {
            let expected = if heads.is_some() { 3 } else { 4 };
            if tensor.rank().is_some_and(|rank| rank != expected) {
                bail!("{name} must have {expected} dimensions, found {}", Type::Tensor(tensor.clone()));
            }
        }
        check_dtypes(inputs)?;
        if inputs.optional(4).is_some() != inputs.optional(5).is_some() {
            bail!("past_key and past_value must be given together");
        }
        if inputs.optional(4).is_some() && inputs.optional(6).is_some() {
            bail!("past_key and nonpad_kv_seqlen cannot be given together");
        }
        self.check_types(inputs)?;
        let present = [k, v].map(|new| Type::ranked(new.dtype, 4));
        let outputs = [self.output_type(q, v)].into_iter().chain(present).chain([Type::ranked(q.dtype, 4)]);
        Ok(outputs.take(inputs.outputs).collect())
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let [q, k, y] = [inputs.tensor(0).ok()?, inputs.tensor(1).ok()?, outputs.first()?.tensor().ok()?];
        Work::multiplying(inputs, outputs, work::attention(q, y, [Some(k), inputs.optional_tensor(4).ok()?]))
    }
}

fn check_dtypes(inputs: &Types) -> Result<()> {
    let [q, k, v] = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?].map(|tensor| tensor.dtype);
    require_dtype("Q", q, &FLOATS)?;
    require_dtype("K", k, &[q])?;
    require_dtype("V", v, &FLOATS)?;
    let masks = [&NUMBERS[..], &[DType::Bool]].concat();
    let optional: [(usize, &str, &[DType]); 4] = [
        (3, "the mask", &masks),
        (4, "the past key", &[k]),
        (5, "the past value", &[v]),
        (6, "nonpad_kv_seqlen", &[DType::Int64]),
    ];
    for (i, name, allowed) in optional {
        if let Some(given) = inputs.optional_tensor(i)? {
            require_dtype(name, given.dtype, allowed)?;
        }
    }
    Ok(())
}

impl Attention {
    fn output_type(&self, q: &TensorType, v: &TensorType) -> Type {
        let width = v.rank().and_then(|rank| v.size(rank - 1));
        let last = match (self.heads, self.kv_heads) {
            (Some(heads), Some(kv_heads)) => width.and_then(|width| width.checked_div(kv_heads)?.checked_mul(heads)),
            _ => width,
        };
        let shape = q.shape.clone().map(|mut shape| {
            shape.pop();
            shape.push(last.map(Dim::Size));
            shape
        });
        Type::Tensor(TensorType { dtype: q.dtype, shape })
    }

    /// Checks that Q, K and V fit each other, and that the mask, the past and nonpad_kv_seqlen fit them.
    pub(crate) fn check<D: Extent>(
        &self,
        [q, k, v]: [&[D]; 3],
        [mask, key, value, nonpad]: [Option<&[D]>; 4],
    ) -> Result<()> {
        let [batch, heads, queries, depth] = vectors(q, self.heads)?;
        let [k_batch, kv_heads, new, k_depth] = vectors(k, self.kv_heads)?;
        let [v_batch, v_heads, values, width] = vectors(v, self.kv_heads)?;
        let shared = heads.zip(kv_heads).is_none_or(|(heads, own)| heads == 0 || heads.checked_rem(own) == Some(0));
        let same = [(k_batch, batch), (v_batch, batch), (v_heads, kv_heads), (values, new), (k_depth, depth)];
        if !shared || !same.iter().all(|(a, b)| fits(a, b)) {
            bail!("Q {}, K {} and V {} do not fit one another", text(q), text(k), text(v));
        }
        let past = key.map_or(Some(0), |key| key.get(2).and_then(Extent::known));
        for (part, size, name) in [(key, depth, "key"), (value, width, "value")] {
            if let Some(part) = part.filter(|part| !all_fit(part, &[batch, kv_heads, past, size])) {
                bail!("a past {name} of shape {} does not fit K {} and V {}", text(part), text(k), text(v));
            }
        }
        if let Some(nonpad) = nonpad.filter(|nonpad| !all_fit(nonpad, &[batch])) {
            bail!("nonpad_kv_seqlen has shape {}; it must have one number for each batch", text(nonpad));
        }
        let keys = new.zip(past).and_then(|(new, past)| new.checked_add(past));
        mask.map_or(Ok(()), |mask| check_mask(mask, [batch, heads, queries], keys))
    }

    /// Runs [`Attention::check`] on types, if the ranks of Q, K, V and the past are known.
    fn check_types(&self, inputs: &Types) -> Result<()> {
        let shape = |i: usize| -> Result<Option<&[Option<Dim>]>> { Ok(inputs.shape(i)?.map(Vec::as_slice)) };
        let has_past = inputs.optional(4).is_some();
        match (shape(0)?, shape(1)?, shape(2)?) {
            (Some(q), Some(k), Some(v)) if !has_past || shape(4)?.is_some() => {
                self.check([q, k, v], [shape(3)?, shape(4)?, shape(5)?, shape(6)?])
            }
            _ => Ok(()),
        }
    }
}

/// `[batches, heads, positions, size of a vector]` of Q, K or V, as far as these are known.
pub(crate) fn vectors<D: Extent>(dims: &[D], heads: Option<usize>) -> Result<[Option<usize>; 4]> {
    match (dims, heads) {
        ([batch, heads, rows, size], None) => Ok([batch, heads, rows, size].map(Extent::known)),
        ([batch, rows, hidden], Some(heads))
            if hidden.known().is_none_or(|hidden| hidden.checked_rem(heads) == Some(0)) =>
        {
            Ok([batch.known(), Some(heads), rows.known(), hidden.known().map(|hidden| hidden / heads)])
        }
        (_, None) => bail!("a tensor of 4 dimensions is expected, found one of shape {}", text(dims)),
        (_, Some(heads)) => bail!("a tensor of shape {} does not hold {heads} heads", text(dims)),
    }
}

/// Checks that a mask broadcasts to `[batch, heads, queries]` and has at most `keys` keys.
pub(crate) fn check_mask<D: Extent>(mask: &[D], to: [Option<usize>; 3], keys: Option<usize>) -> Result<()> {
    let fits_outer = |outer: &[D]| {
        let mut aligned = outer.iter().rev().zip(to.iter().rev());
        outer.len() <= 3 && aligned.all(|(dim, to)| fits(dim, &1) || fits(dim, to))
    };
    match mask.split_last() {
        Some((last, outer)) if at_most(last, &keys) && fits_outer(outer) => Ok(()),
        _ => bail!("a mask of shape {} does not broadcast to {} and {} keys", text(mask), text(&to), text(&[keys])),
    }
}
