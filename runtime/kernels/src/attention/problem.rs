//! An attention to compute: its sizes, operands and element type.

use std::ops::Range;

pub use candle_plan_descriptors::attention::Dims;

use super::elements::{Attends, Rows, Stored, Strided};
use crate::buffer;
use crate::gemm::PackedB;
use crate::isa::Isa;
use crate::threads::Threads;

/// Scores per tile.
const TILE: usize = 1 << 16;
/// The maximum queries per tile: one bit each.
pub(super) const MOST: usize = u64::BITS as usize;
/// Up to this number of queries, packing keys and values costs more than it saves.
const FEW: usize = 4;
/// The most elements that complete a panel of packed keys or values.
const PADDING: usize = 64;

/// The number of queries per tile. It depends on the sizes alone, so the number of threads changes no bit.
pub(super) fn tile(dims: &Dims) -> usize {
    (TILE / dims.keys.max(1)).clamp(1, MOST).min(dims.queries)
}

/// Whether the buffers of each thread fit a cache: the scores of a tile of queries, and the packed keys or values of a
/// head, of `size` elements each.
pub fn is_cached(keys: usize, size: usize) -> bool {
    let packed = keys.saturating_add(PADDING).saturating_mul(size.saturating_add(PADDING));
    buffer::is_cached::<f64>(keys.max(TILE)) && buffer::is_cached::<f32>(packed)
}

/// The vectors of every batch, head and position. Vector `(b, h, i)` starts at `b · batch + h · head + i · row`.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'a, R> {
    /// The elements.
    pub data: &'a [R],
    /// The stride of batches.
    pub batch: usize,
    /// The stride of heads.
    pub head: usize,
    /// The stride of positions.
    pub row: usize,
}

/// The mask. Element `(b, h, i, j)` is at `b · batch + h · head + i · row + j`.
#[derive(Debug, Clone, Copy)]
pub enum Mask<'a, R> {
    /// No mask.
    None,
    /// A bias to add to the scores.
    Added(Vectors<'a, R>),
    /// A boolean mask: scores are kept where it is not 0.
    Chosen(Vectors<'a, u8>),
}

/// The stage at which the scores are returned to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `Q · Kᵀ · scale`
    Product,
    /// After the soft cap.
    Capped,
    /// After the mask.
    Masked,
    /// After softmax.
    Softmax,
}

/// The cases in which weights are set to 0 instead of the softmax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Queries for which the masks leave no key.
    Unseeing,
    /// None: a query without a key gives NaN.
    Nothing,
    /// All weights that would be NaN.
    Undefined,
}

/// The operands of an attention that computes in `R`. Keys and values have elements of type `S`.
pub struct Problem<'a, R, S = R> {
    /// The sizes.
    pub dims: Dims,
    /// Queries of `depth` elements.
    pub q: Vectors<'a, R>,
    /// Keys of `depth` elements.
    pub k: Vectors<'a, S>,
    /// Values of `width` elements.
    pub v: Vectors<'a, S>,
    /// The factor of the products.
    pub scale: R,
    /// Soft cap: `cap · tanh(score / cap)`, if set.
    pub softcap: Option<R>,
    /// The mask.
    pub mask: Mask<'a, R>,
    /// The keys that query `i` of batch `b` attends to. The mask has an element for each of them.
    pub visible: &'a (dyn Fn(usize, usize) -> Range<usize> + Sync),
    /// The cases in which weights are set to 0.
    pub guard: Guard,
}

/// The transposed keys and the values of one batch and head, packed.
pub(super) struct Packed {
    pub keys: PackedB,
    pub values: PackedB,
}

impl<R: Attends, S: Stored<R>> Problem<'_, R, S> {
    /// The first `count` keys of one batch and head.
    pub(super) fn keys(&self, batch: usize, kv_head: usize, count: usize) -> Rows<'_, S> {
        Rows { data: self.k.of(batch, kv_head), stride: self.k.row, size: self.dims.depth, count }
    }

    /// The first `count` values of one batch and head.
    pub(super) fn values(&self, batch: usize, kv_head: usize, count: usize) -> Rows<'_, S> {
        Rows { data: self.v.of(batch, kv_head), stride: self.v.row, size: self.dims.width, count }
    }

    /// Packs the keys and values of one batch and head; `None` if packing is not worth it.
    pub(super) fn pack(&self, isa: Isa, threads: &Threads, kv: usize) -> Option<Packed> {
        let Dims { kv_heads, heads, queries, keys, depth, width, .. } = self.dims;
        if queries * heads / kv_heads <= FEW || keys == 0 {
            return None;
        }
        let [k, v] = [self.k, self.v].map(|vectors| vectors.of(kv / kv_heads, kv % kv_heads));
        let keys_t = Strided { data: k, row: 1, column: self.k.row };
        let values = Strided { data: v, row: self.v.row, column: 1 };
        let (keys, values) =
            S::pack(isa, threads, depth, keys, &keys_t).zip(S::pack(isa, threads, keys, width, &values))?;
        Some(Packed { keys, values })
    }
}

impl<'a, R: Copy> Vectors<'a, R> {
    /// Returns the vectors of one batch and head.
    pub(super) fn of(&self, batch: usize, head: usize) -> &'a [R] {
        &self.data[batch * self.batch + head * self.head..]
    }
}
