//! Attention in one pass over the keys, which stores no scores.

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::attention::Dims;
use candle_plan_device::{Gpu, Grid, Mirror, Symbol};

use super::scoring::{Scoring, Vectors};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::launch::{count, launch, Params};

/// The vectors of a tensor. The tensor has the elements that the sizes and strides require.
#[derive(Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(HeadVectors in "flash_attention.cu")]
struct HeadVectors {
    address: u64,
    batch: u64,
    head: u64,
    row: u32,
    is_aligned: u32,
}

/// The parameters of the kernel. `Attention::layout` checks that the inputs have the elements that the sizes and strides
/// require, and the output is allocated with these sizes.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(FlashAttention in "flash_attention.cu")]
struct FlashParams {
    scoring: Scoring,
    q: HeadVectors,
    k: HeadVectors,
    v: HeadVectors,
    y: HeadVectors,
    blocks: u32,
    group: u32,
    depth: u32,
    width: u32,
    share: f32,
    padding: u32,
}

/// The queries of a block; equals `TILE` in `flash_attention.cu`.
const TILE: usize = 64;
/// The largest size of values.
const WIDEST: usize = 128;
/// The smallest number of queries: a block computes a whole tile of scores, even for one query.
const FEWEST: usize = 16;

/// Up to this number of keys, the kernel is used for any number of blocks. Each block processes all keys, one tile after
/// the other, and products of matrices use more multiprocessors if there are fewer blocks than `BUSY`.
const SHORT: usize = 256;
/// The number of blocks that keep a GPU busy.
const BUSY: usize = 64;

/// Whether the kernel computes such an attention, and should be faster than products of matrices.
pub(super) fn fits(dtype: DType, dims: Dims) -> bool {
    let fits = dtype == DType::Float32 && dims.queries >= FEWEST && dims.keys > 0 && dims.width <= WIDEST;
    fits && (dims.keys <= SHORT || blocks(dims) >= BUSY)
}

/// Returns the number of tiles of queries.
fn blocks(dims: Dims) -> usize {
    dims.batch * dims.heads * dims.queries.div_ceil(TILE)
}

/// Computes Y from Q, K and V.
///
/// # Errors
/// There are too many queries, or the device fails.
pub(super) fn run(gpu: &Gpu, dims: Dims, vectors: [Vectors; 4], scoring: Scoring) -> Result<()> {
    let blocks = blocks(dims);
    if blocks == 0 || dims.width == 0 {
        return Ok(());
    }
    let [q, k, v, y] = vectors;
    let params = FlashParams {
        scoring,
        q: HeadVectors::of(q)?,
        k: HeadVectors::of(k)?,
        v: HeadVectors::of(v)?,
        y: HeadVectors::of(y)?,
        blocks: count(blocks)?,
        group: count(dims.heads / dims.kv_heads)?,
        depth: count(dims.depth)?,
        width: count(dims.width)?,
        share: share(dims.keys),
        padding: 0,
    };
    let name = if dims.width <= TILE { "flash_64" } else { "flash_128" };
    launch(gpu, Symbol { module: "flash_attention", name, kind: "" }, Grid::blocks(params.blocks), &params)
}

impl HeadVectors {
    /// Describes the vectors of a tensor.
    fn of((tensor, [batch, head, row]): Vectors) -> Result<HeadVectors> {
        let address = tensor.address()?;
        let is_aligned = address % 16 == 0 && [batch, head, row].iter().all(|stride| stride % 4 == 0);
        let [batch, head] = [batch, head].map(|stride| stride as u64);
        Ok(HeadVectors { address, batch, head, row: count(row)?, is_aligned: is_aligned.into() })
    }
}

/// Returns the largest power of two that is at most `1 / keys`.
fn share(keys: usize) -> f32 {
    1.0 / keys.next_power_of_two() as f32
}
