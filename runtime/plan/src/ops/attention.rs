//! Scaled dot-product attention.

use candle_plan_kernels::attention::Dims;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::float::{require_dtype, FLOATS, NUMBERS};
use crate::kernel::Call;
use crate::operator::{Arity, Operator};
use crate::types::Types;
use crate::types::{Dim, TensorType, Type};
use crate::work::{self, Work};

/// Which scores the fourth output of [`Attention`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AttentionScores {
    /// `Q · Kᵀ · scale`
    Product,
    /// After the soft cap.
    Capped,
    /// After the masks.
    Masked,
    /// After softmax.
    Softmax,
}

/// Which weights of [`Attention`] are 0 though softmax does not say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AttentionGuard {
    /// Those of a query to which the masks leave no key, as ONNX has it.
    Unseeing,
    /// None: a query that sees no key gives NaN.
    Nothing,
    /// All that would be NaN.
    Undefined,
}

/// `Y = softmax(softcap(Q · Kᵀ · scale) + mask) · V`. Q `[N, heads, L, D]` or `[N, L, heads · D]`; K, V alike with
/// kv_heads heads, each shared by heads / kv_heads heads of Q; mask (optional) broadcasts to `[N, heads, L, S]`, added,
/// or chosen where bool; its last dimension may be shorter than S: later keys are not seen; past key and past value
/// (optional) `[N, kv_heads, P, D]` come before K and V; nonpad (optional) int64 `[N]`, the number of keys that are
/// seen. Y as Q; present key and value (optional) `[N, kv_heads, S, D]`; scores (optional) `[N, heads, L, S]`.
///
/// Query i stands at position i + P, or, with nonpad, i + nonpad − L. All but the output is computed in `f32`, in `f64` for
/// `f64`. Source: [ONNX Attention](https://onnx.ai/onnx/operators/onnx__Attention.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attention {
    /// The heads of Q; null where Q has a dimension for them.
    pub heads: Option<usize>,
    /// The heads of K and V; null where they have a dimension for them.
    pub kv_heads: Option<usize>,
    /// The factor of the products; null for `1 / √D`.
    pub scale: Option<f64>,
    /// `c · tanh(score / c)` for a cap c; null for none.
    pub softcap: Option<f64>,
    /// Whether a query sees no key after its position.
    pub is_causal: bool,
    /// How many keys before its position a query sees; null for all.
    pub left_window: Option<usize>,
    /// How many keys after its position a query sees; null for all.
    pub right_window: Option<usize>,
    /// Which weights are 0 though softmax does not say so.
    pub guard: AttentionGuard,
    /// What the output of scores holds.
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
            bail!("past key and past value are given together");
        }
        if inputs.optional(4).is_some() && inputs.optional(6).is_some() {
            bail!("a past and nonpad_kv_seqlen do not go together");
        }
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

    /// The sizes of a run.
    ///
    /// # Errors
    /// The inputs do not fit one another.
    pub(crate) fn layout(&self, call: &Call) -> Result<Layout> {
        let [q, k, v] = [call.tensor(0)?.dims(), call.tensor(1)?.dims(), call.tensor(2)?.dims()];
        let ([batch, heads, queries, depth], q_strides) = split(q, self.heads)?;
        let ([k_batch, kv_heads, new, k_depth], k_strides) = split(k, self.kv_heads)?;
        let ([v_batch, v_heads, values, width], v_strides) = split(v, self.kv_heads)?;
        let fits = [k_batch, v_batch] == [batch, batch] && v_heads == kv_heads && values == new && k_depth == depth;
        if !fits || heads.checked_rem(kv_heads).is_some_and(|rest| rest != 0) || (kv_heads == 0 && heads != 0) {
            bail!("Q {q:?}, K {k:?} and V {v:?} do not fit one another");
        }
        let mut past = 0;
        if let (Some(key), Some(value)) = (call.optional_tensor(4)?, call.optional_tensor(5)?) {
            past = key.dims().get(2).copied().unwrap_or(0);
            if key.dims() != [batch, kv_heads, past, depth] || value.dims() != [batch, kv_heads, past, width] {
                bail!("a past of {:?} and {:?} does not fit K {k:?} and V {v:?}", key.dims(), value.dims());
            }
        }
        let Some(keys) = new.checked_add(past) else { bail!("{new} and {past} keys are too many") };
        let dims = Dims { batch, heads, kv_heads, queries, keys, depth, width };
        Ok(Layout { dims, q: q_strides, k: k_strides, v: v_strides, past })
    }
}

/// The distances from one batch, head and position to the next.
pub(crate) type Strides = [usize; 3];

/// The sizes of one run, and where the vectors stand.
pub(crate) struct Layout {
    pub dims: Dims,
    pub q: Strides,
    pub k: Strides,
    pub v: Strides,
    pub past: usize,
}

/// `[batches, heads, positions, size of a vector]` of Q, K or V, and where the vectors stand.
pub(crate) fn split(dims: &[usize], heads: Option<usize>) -> Result<([usize; 4], Strides)> {
    match (dims, heads) {
        (&[batch, heads, rows, size], None) => {
            Ok(([batch, heads, rows, size], [heads * rows * size, rows * size, size]))
        }
        (&[batch, rows, hidden], Some(heads)) if hidden.checked_rem(heads) == Some(0) => {
            let size = hidden / heads;
            Ok(([batch, heads, rows, size], [rows * hidden, size, hidden]))
        }
        (_, None) => bail!("a tensor of 4 dimensions is expected, found {dims:?}"),
        (_, Some(heads)) => bail!("{dims:?} does not hold {heads} heads"),
    }
}

/// The strides over batches, heads and queries of a mask of these dimensions, and the keys that it has an element for.
///
/// # Errors
/// It does not broadcast to the scores.
pub(crate) fn mask_strides(mask: &[usize], dims: Dims) -> Result<(Strides, usize)> {
    let to = [dims.batch, dims.heads, dims.queries];
    let refused = || format!("a mask of {mask:?} does not broadcast to {to:?} and {} keys", dims.keys);
    let Some((&keys, outer)) = mask.split_last().filter(|(&keys, rest)| keys <= dims.keys && rest.len() <= 3) else {
        bail!("{}", refused());
    };
    let (mut strides, mut stride) = ([0; 3], keys);
    for (i, &dim) in (3 - outer.len()..3).zip(outer).rev() {
        if dim != to[i] && dim != 1 {
            bail!("{}", refused());
        }
        strides[i] = if dim == 1 { 0 } else { stride };
        stride *= dim;
    }
    Ok((strides, keys))
}
