//! The sizes and strides of the operands of attention.

use candle_plan_descriptors::attention::Dims;

use crate::bail;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::attention::{check_mask, vectors, Attention};
use crate::value::Array;

/// The strides of a batch, a head and a position.
pub(crate) type Strides = [usize; 3];

/// The sizes of one run, and the strides of the vectors.
pub(crate) struct Layout {
    pub dims: Dims,
    pub q: Strides,
    pub k: Strides,
    pub v: Strides,
    pub past: usize,
}

impl Attention {
    /// The sizes of a run.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub(crate) fn layout(&self, call: &Call) -> Result<Layout> {
        let dims = |i: usize| -> Result<Option<&[usize]>> { Ok(call.optional_tensor(i)?.map(Array::dims)) };
        let required = [call.tensor(0)?.dims(), call.value(1)?.dims()?, call.value(2)?.dims()?];
        self.check(required, [dims(3)?, dims(4)?, dims(5)?, dims(6)?])?;
        let [batch, heads, queries, depth] = sizes(required[0], self.heads)?;
        let [_, kv_heads, new, _] = sizes(required[1], self.kv_heads)?;
        let [_, _, _, width] = sizes(required[2], self.kv_heads)?;
        let of = |i: usize, heads| -> Result<Strides> { Ok(strides(sizes(call.storage(i)?.dims(), heads)?, heads)) };
        let [q_strides, k_strides, v_strides] = [of(0, self.heads)?, of(1, self.kv_heads)?, of(2, self.kv_heads)?];
        let past = dims(4)?.map_or(0, |key| key[2]);
        let Some(keys) = new.checked_add(past) else { bail!("{new} and {past} keys are too many") };
        let masked = dims(3)?.and_then(<[usize]>::last).filter(|_| call.optional(4).is_none() && call.outputs < 2);
        let keys = masked.map_or(keys, |&seen| keys.min(seen.max(1))); // a shorter mask hides the later keys
        let dims = Dims { batch, heads, kv_heads, queries, keys, depth, width };
        Ok(Layout { dims, q: q_strides, k: k_strides, v: v_strides, past })
    }
}

/// `[batches, heads, positions, size of a vector]` of Q, K or V.
fn sizes(dims: &[usize], heads: Option<usize>) -> Result<[usize; 4]> {
    Ok(vectors(dims, heads)?.map(Option::unwrap_or_default))
}

/// The strides of the vectors of Q, K or V.
fn strides([_, own, rows, size]: [usize; 4], heads: Option<usize>) -> Strides {
    match heads {
        None => [own * rows * size, rows * size, size],
        Some(_) => [rows * own * size, size, own * size],
    }
}

/// The strides of a mask of these dimensions over batches, heads and queries, and the number of its keys.
///
/// # Errors
/// The mask does not broadcast to the scores.
pub(crate) fn mask_strides(mask: &[usize], dims: Dims) -> Result<(Strides, usize)> {
    check_mask(mask, [dims.batch, dims.heads, dims.queries].map(Some), Some(dims.keys))?;
    let Some((&keys, outer)) = mask.split_last() else { bail!("a mask must have a dimension of keys") };
    let (mut strides, mut stride) = ([0; 3], keys);
    for (i, &dim) in (3 - outer.len()..3).zip(outer).rev() {
        strides[i] = if dim == 1 { 0 } else { stride };
        stride *= dim;
    }
    Ok((strides, keys))
}
