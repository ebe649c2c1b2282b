//! Elements in another order: transposition, regrouping of pixels and channels, reversal of sequences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::recurrent_inputs::lengths_within;
use crate::axes;
use crate::bail;
use crate::error::{Error, Result};
use crate::extent::{fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// `Y[i₀, i₁, …] = X[j₀, j₁, …]` with `j[permutation[a]] = i[a]`: dimension `a` of `Y` is dimension `permutation[a]` of
/// `X`.
///
/// Source: [ONNX Transpose](https://onnx.ai/onnx/operators/onnx__Transpose.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transpose {
    /// The order of the axes; absent means reversed.
    pub permutation: Option<Vec<usize>>,
}

impl Transpose {
    pub(crate) fn order(&self, rank: usize) -> Result<Vec<usize>> {
        let Some(permutation) = &self.permutation else { return Ok((0..rank).rev().collect()) };
        let signed: Vec<i64> = permutation.iter().map(|&axis| i64::try_from(axis).unwrap_or(i64::MAX)).collect();
        if axes::mask(&signed, rank)?.contains(&false) {
            bail!("{permutation:?} is not a permutation of {rank} axes");
        }
        Ok(permutation.clone())
    }
}

impl Operator for Transpose {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let shape = match (&x.shape, &self.permutation) {
            (Some(shape), _) => Some(self.order(shape.len())?.iter().map(|&axis| shape[axis].clone()).collect()),
            (None, Some(permutation)) => Some(vec![None; self.order(permutation.len())?.len()]),
            (None, None) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

/// `Y [N, C/b², H·b, W·b]` from `X [N, C, H, W]`: each block of `b²` channels becomes a square of pixels.
/// `Y[n, c, h·b + i, w·b + j] = X[n, k, h, w]` with `k = (i·b + j)·C/b² + c`, or, with `channels_first`,
/// `k = (c·b + i)·b + j`. Source: [ONNX DepthToSpace](https://onnx.ai/onnx/operators/onnx__DepthToSpace.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DepthToSpace {
    /// `b`.
    pub block_size: usize,
    /// Whether the channels that become the pixels of one channel are adjacent (ONNX's mode `CRD`).
    pub channels_first: bool,
}

impl Operator for DepthToSpace {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, n, [c, h, w]) = image(inputs)?;
        let block = checked_block(self.block_size)?;
        if let Some(c) = c.filter(|c| c % (block * block) != 0) {
            bail!("{c} channels are not a multiple of the block's {} pixels", block * block);
        }
        let grown = |dim: Option<usize>| dim.and_then(|dim| dim.checked_mul(block)).map(Dim::Size);
        let shape = vec![n, c.map(|c| Dim::Size(c / (block * block))), grown(h), grown(w)];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn shares(&self, _: usize) -> bool {
        true // if no element moves: for blocks or images of one pixel
    }
}

impl DepthToSpace {
    /// The regrouping of an image of these dimensions.
    pub(crate) fn regrouped(&self, dims: &[usize]) -> Result<Regrouped> {
        let b = checked_block(self.block_size)?;
        let &[n, c, h, w] = dims else { bail!("expected [N, C, H, W], found {dims:?}") };
        let channels = c / (b * b);
        if channels * b * b != c {
            bail!("{c} channels are not a multiple of the block's {} pixels", b * b);
        }
        let (split, order) = if self.channels_first {
            ([n, channels, b, b, h, w], [0, 1, 4, 2, 5, 3])
        } else {
            ([n, b, b, channels, h, w], [0, 3, 4, 1, 5, 2])
        };
        Ok(Regrouped { split, order, dims: [n, channels, h * b, w * b] })
    }
}

/// `Y [N, C·b², H/b, W/b]` from `X [N, C, H, W]`: each square of pixels becomes a block of channels.
/// `Y[n, k, h, w] = X[n, c, h·b + i, w·b + j]` with `k = (i·b + j)·C + c`, or, with `channels_first`,
/// `k = (c·b + i)·b + j`. Source: [ONNX SpaceToDepth](https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpaceToDepth {
    /// `b`.
    pub block_size: usize,
    /// Whether the channels made from the pixels of one channel are adjacent (ONNX's mode `CRD`).
    pub channels_first: bool,
}

impl Operator for SpaceToDepth {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, n, [c, h, w]) = image(inputs)?;
        let block = checked_block(self.block_size)?;
        if let Some(size) = [h, w].into_iter().flatten().find(|size| size % block != 0) {
            bail!("{size} pixels are not a multiple of the block size {block}");
        }
        let cut = |dim: Option<usize>| dim.map(|dim| Dim::Size(dim / block));
        let channels = c.and_then(|c| c.checked_mul(block * block)).map(Dim::Size);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(vec![n, channels, cut(h), cut(w)]) })])
    }

    fn shares(&self, _: usize) -> bool {
        true // if no element moves: for blocks or images of one pixel
    }
}

impl SpaceToDepth {
    /// The regrouping of an image of these dimensions.
    pub(crate) fn regrouped(&self, dims: &[usize]) -> Result<Regrouped> {
        let b = checked_block(self.block_size)?;
        let &[n, c, h, w] = dims else { bail!("expected [N, C, H, W], found {dims:?}") };
        if h % b != 0 || w % b != 0 {
            bail!("{h}×{w} pixels are not a multiple of the block size {b}");
        }
        let order = if self.channels_first { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
        Ok(Regrouped { split: [n, c, h / b, b, w / b, b], order, dims: [n, c * b * b, h / b, w / b] })
    }
}

/// A regrouping of pixels and channels: the image is viewed as a tensor of shape `split`, its axes are transposed to
/// `order`, and the result is viewed as a tensor of shape `dims`.
pub(crate) struct Regrouped {
    pub split: [usize; 6],
    pub order: [usize; 6],
    pub dims: [usize; 4],
}

/// `X` with the first `lengths[b]` steps of each batch member `b` in reverse order. Inputs: `X`, whose first two axes
/// are the batch and time, or time and the batch; `lengths: int64 [batch]`.
///
/// Source: [ONNX ReverseSequence](https://onnx.ai/onnx/operators/onnx__ReverseSequence.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReverseSequence {
    /// Whether the first axis is time, and the second one the batch.
    pub time_first: bool,
}

impl Operator for ReverseSequence {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.rank().is_some_and(|rank| rank < 2) || inputs.tensor(1)?.rank().is_some_and(|rank| rank != 1) {
            bail!(
                "expected a tensor of rank 2 or more and a list of lengths, found {} and {}",
                inputs.get(0)?,
                inputs.get(1)?
            );
        }
        if let (Some(dims), Some(lengths)) = (&x.shape, inputs.tensor(1)?.size(0)) {
            let [first, second] = self.axes(dims, lengths)?;
            let steps = if self.time_first { first } else { second };
            if let Some((lengths, steps)) = inputs.checked(1).zip(steps.known()) {
                lengths_within(&lengths.to_i64()?, steps)?;
            }
        }
        Ok(vec![Type::Tensor(x.clone())])
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }
}

impl ReverseSequence {
    /// The sizes of the first two axes. The batch must have size `lengths`.
    pub(crate) fn axes<D: Extent + Clone>(&self, dims: &[D], lengths: usize) -> Result<[D; 2]> {
        let [first, second, ..] = dims else { bail!("X has shape {}; it must have two axes or more", text(dims)) };
        let batch = if self.time_first { second } else { first };
        if !fits(batch, &lengths) {
            bail!("{lengths} lengths do not fit X of shape {}: there must be one for each batch member", text(dims));
        }
        Ok([first.clone(), second.clone()])
    }
}

/// Whether a transposition of a tensor of shape `dims` to `order` moves no element.
pub(crate) fn stays(dims: &[usize], order: &[usize]) -> bool {
    dims.contains(&0) || order.iter().filter(|&&axis| dims[axis] != 1).is_sorted()
}

fn checked_block(block_size: usize) -> Result<usize> {
    if !(1..=1 << 16).contains(&block_size) {
        bail!("block size {block_size} is not between 1 and 65536");
    }
    Ok(block_size)
}

/// Input 0, an image, with its batch dimension and its sizes `[C, H, W]`.
fn image<'a>(inputs: &'a Types<'a>) -> Result<(&'a TensorType, Option<Dim>, [Option<usize>; 3])> {
    let x = inputs.tensor(0)?;
    match x.shape.as_deref() {
        None => Ok((x, None, [None; 3])),
        Some([n, _, _, _]) => Ok((x, n.clone(), [x.size(1), x.size(2), x.size(3)])),
        Some(_) => Err(Error::op(format!("expected [N, C, H, W], found {}", Type::Tensor(x.clone())))),
    }
}
