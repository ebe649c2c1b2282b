//! The same elements in another order of axes.

use candle_plan_kernels::strided::View;
use candle_plan_kernels::threads::Threads;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gather::runs;
use super::places::Places;
use crate::axes;
use crate::bail;
use crate::device::{on_device, takes_indices};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::movable::{copy_view, Movable};
use crate::types::{Dim, TensorType, Type};
use crate::value::{Array, Value};

/// `Y[i₀, i₁, …] = X[j₀, j₁, …]` with `j[permutation[a]] = i[a]`: dimension `a` of `Y` is `X`'s dimension `permutation[a]`.
///
/// Source: [ONNX Transpose](https://onnx.ai/onnx/operators/onnx__Transpose.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transpose {
    /// The order of axes; absent: reversed.
    pub permutation: Option<Vec<usize>>,
}

impl Transpose {
    pub(crate) fn order(&self, rank: usize) -> Result<Vec<usize>> {
        let Some(permutation) = &self.permutation else { return Ok((0..rank).rev().collect()) };
        let signed: Vec<i64> = permutation.iter().map(|&axis| i64::try_from(axis).unwrap_or(i64::MAX)).collect();
        if axes::mask(&signed, rank)?.contains(&false) {
            bail!("{permutation:?} does not order {rank} axes");
        }
        Ok(permutation.clone())
    }
}

impl Kernel for Transpose {
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

    on_device!("copy");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let order = self.order(data.arrays[0].rank())?;
        Ok(vec![data.restore(transposed(&data.arrays[0], &order, call.threads)?)?])
    }
}

/// `Y [N, C/b², H·b, W·b]` from `X [N, C, H, W]`: each block of `b²` channels becomes a square of pixels,
/// `Y[n, c, h·b + i, w·b + j] = X[n, k, h, w]` with `k = (i·b + j)·C/b² + c`, or `k = (c·b + i)·b + j` where
/// `channels_first`. Source: [ONNX DepthToSpace](https://onnx.ai/onnx/operators/onnx__DepthToSpace.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DepthToSpace {
    /// `b`.
    pub block_size: usize,
    /// Whether a channel's pixels are neighbours (ONNX's mode `CRD`).
    pub channels_first: bool,
}

impl Kernel for DepthToSpace {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let block = checked_block(self.block_size)?;
        let (n, [c, h, w]) = image_dims(x)?;
        if let Some(c) = c.filter(|c| c % (block * block) != 0) {
            bail!("{c} channels are not a multiple of the block's {} pixels", block * block);
        }
        let grown = |dim: Option<usize>| dim.and_then(|dim| dim.checked_mul(block)).map(Dim::Size);
        let shape = vec![n, c.map(|c| Dim::Size(c / (block * block))), grown(h), grown(w)];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn shares(&self, _: usize) -> bool {
        true // where no element moves: blocks of one pixel, images of one
    }

    on_device!("copy");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let Regrouped { split, order, dims } = self.regrouped(data.arrays[0].dims())?;
        let moved = transposed(&data.arrays[0].reshape(&split)?, &order, call.threads)?;
        Ok(vec![data.restore(moved.reshape(&dims)?)?])
    }
}

impl DepthToSpace {
    /// How an image of these dimensions is regrouped.
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

/// `Y [N, C·b², H/b, W/b]` from `X [N, C, H, W]`: each square of pixels becomes a block of channels,
/// `Y[n, k, h, w] = X[n, c, h·b + i, w·b + j]` with `k = (i·b + j)·C + c`, or `k = (c·b + i)·b + j` where
/// `channels_first`. Source: [ONNX SpaceToDepth](https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpaceToDepth {
    /// `b`.
    pub block_size: usize,
    /// Whether a channel's pixels are neighbours (ONNX's mode `CRD`).
    pub channels_first: bool,
}

impl Kernel for SpaceToDepth {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let block = checked_block(self.block_size)?;
        let (n, [c, h, w]) = image_dims(x)?;
        if let Some(size) = [h, w].into_iter().flatten().find(|size| size % block != 0) {
            bail!("{size} pixels are not a multiple of the block size {block}");
        }
        let cut = |dim: Option<usize>| dim.map(|dim| Dim::Size(dim / block));
        let channels = c.and_then(|c| c.checked_mul(block * block)).map(Dim::Size);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(vec![n, channels, cut(h), cut(w)]) })])
    }

    fn shares(&self, _: usize) -> bool {
        true // where no element moves: blocks of one pixel, images of one
    }

    on_device!("copy");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let Regrouped { split, order, dims } = self.regrouped(data.arrays[0].dims())?;
        let moved = transposed(&data.arrays[0].reshape(&split)?, &order, call.threads)?;
        Ok(vec![data.restore(moved.reshape(&dims)?)?])
    }
}

impl SpaceToDepth {
    /// How an image of these dimensions is regrouped.
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

/// An image whose pixels and channels become each other: as a tensor of shape `split`, whose axes are taken in this order,
/// and then as one of shape `dims`.
pub(crate) struct Regrouped {
    pub split: [usize; 6],
    pub order: [usize; 6],
    pub dims: [usize; 4],
}

/// `X` with the first `lengths[b]` steps of each batch member `b` in reverse order. Inputs: `X`, at least two axes, of
/// which one of the first two is the batch and the other one time; `lengths: int64 [batch]`.
///
/// Source: [ONNX ReverseSequence](https://onnx.ai/onnx/operators/onnx__ReverseSequence.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReverseSequence {
    /// Whether the first axis is time, and the second one the batch.
    pub time_first: bool,
}

impl Kernel for ReverseSequence {
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
        Ok(vec![Type::Tensor(x.clone())])
    }

    on_device!("gather" if |self, operands| takes_indices(operands, 1));

    fn fault(&self) -> &'static str {
        "a length is beyond the axis"
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, lengths) = (&data.arrays[0], axes::dims(&call.tensor(1)?.to_i64()?)?);
        let [first, second] = self.axes(x.dims(), lengths.len())?;
        let (steps, batch) = if self.time_first { (first, second) } else { (second, first) };
        if lengths.iter().any(|&length| length > steps) {
            bail!("lengths {lengths:?} do not fit a batch of {batch} with {steps} steps");
        }
        let reversed = |step: usize, length: usize| if step < length { length - 1 - step } else { step };
        let run: usize = x.dims()[2..].iter().product();
        let start = |i: usize| {
            let (a, b) = (i / second, i % second);
            let (a, b) = if self.time_first { (reversed(a, lengths[b]), b) } else { (a, reversed(b, lengths[a])) };
            (a * second + b) * run
        };
        let starts = (0..first * second).map(start).collect();
        Ok(vec![data.restore(runs(x, x.len(), &Places { starts, run }, x.dims(), call)?)?])
    }
}

impl ReverseSequence {
    /// The sizes of the first two axes, for as many lengths.
    pub(crate) fn axes(&self, dims: &[usize], lengths: usize) -> Result<[usize; 2]> {
        let &[first, second, ..] = dims else { bail!("expected two axes or more, found {dims:?}") };
        let batch = if self.time_first { second } else { first };
        if lengths != batch {
            bail!("{lengths} lengths do not fit a batch of {batch}");
        }
        Ok([first, second])
    }
}

/// The axes of `x` in another order; a view where no element moves.
fn transposed(x: &Array, order: &[usize], threads: &Threads) -> Result<Array> {
    let view = View::contiguous(x.dims()).permute(order);
    if stays(x.dims(), order) {
        return x.reshape(&view.dims);
    }
    copy_view(x, &view, threads)
}

/// Whether no element of a tensor of shape `dims` moves when its axes are taken in this order.
pub(crate) fn stays(dims: &[usize], order: &[usize]) -> bool {
    dims.contains(&0) || order.iter().filter(|&&axis| dims[axis] != 1).is_sorted()
}

fn checked_block(block_size: usize) -> Result<usize> {
    if !(1..=1 << 16).contains(&block_size) {
        bail!("block size {block_size} is not between 1 and 65536");
    }
    Ok(block_size)
}

/// An image's type: the batch dimension, and the sizes of `[C, H, W]`.
fn image_dims(x: &TensorType) -> Result<(Option<Dim>, [Option<usize>; 3])> {
    match x.shape.as_deref() {
        None => Ok((None, [None; 3])),
        Some([n, _, _, _]) => Ok((n.clone(), [x.size(1), x.size(2), x.size(3)])),
        Some(_) => Err(Error::op(format!("expected [N, C, H, W], found {}", Type::Tensor(x.clone())))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn blocks_and_pixels() {
        let depth: Vec<u8> = (0..16).collect();
        let x = tensor(&depth, &[1, 8, 1, 2]);
        let cases = [
            (false, [0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]),
            (true, [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]),
        ];
        for (channels_first, expected) in cases {
            let y =
                run(&DepthToSpace { block_size: 2, channels_first }, &[Some(x.clone())]).expect("8 = 2 · 4 channels");
            let y = y.tensor().expect("a tensor");
            assert_eq!((y.dims(), y.read::<u8>().expect("uint8")), (&[1, 2, 2, 4][..], &expected[..]));
            let back =
                run(&SpaceToDepth { block_size: 2, channels_first }, &[Some(y.clone().into())]).expect("even sizes");
            assert_eq!(back.tensor().expect("a tensor").read::<u8>().expect("uint8"), depth);
        }
        assert!(run(&DepthToSpace { block_size: 3, channels_first: true }, &[Some(x.clone())]).is_err());
        assert!(run(&SpaceToDepth { block_size: 2, channels_first: false }, &[Some(x.clone())]).is_err());
        assert!(run(&SpaceToDepth { block_size: 0, channels_first: false }, &[Some(x)]).is_err());
    }

    /// What is shared without being declared so, `run` finds.
    #[test]
    fn blocks_that_move_no_element_share_it() {
        let x = |dims: &[usize]| tensor(&[1f32, 2., 3., 4.], dims);
        for (block_size, deep, wide) in [(1, [1, 2, 2, 1], [1, 2, 2, 1]), (2, [1, 4, 1, 1], [1, 1, 2, 2])] {
            for channels_first in [false, true] {
                let y = run(&DepthToSpace { block_size, channels_first }, &[Some(x(&deep))]).expect("whole blocks");
                let back = run(&SpaceToDepth { block_size, channels_first }, &[Some(x(&wide))]).expect("whole blocks");
                for (found, dims) in [(y, wide), (back, deep)] {
                    let found = found.tensor().expect("a tensor");
                    assert_eq!((found.dims(), found.read::<f32>().unwrap()), (&dims[..], &[1f32, 2., 3., 4.][..]));
                }
            }
        }
    }

    #[test]
    fn reverses_the_beginning_of_sequences() {
        let x = tensor(&[0u16, 1, 2, 3, 4, 5], &[2, 3]);
        let reverse = |time_first, lengths: &[i64]| {
            let y = run(&ReverseSequence { time_first }, &[Some(x.clone()), Some(tensor(lengths, &[lengths.len()]))])
                .ok()?;
            let data = y.tensor().expect("a tensor").read::<u16>().expect("uint16").to_vec();
            Some(data)
        };
        assert_eq!(reverse(false, &[3, 2]), Some(vec![2, 1, 0, 4, 3, 5]));
        assert_eq!(reverse(true, &[2, 1, 0]), Some(vec![3, 1, 2, 0, 4, 5]));
        assert_eq!(reverse(true, &[2, 3, 0]), None);
        assert_eq!(reverse(false, &[1]), None);
    }

    #[test]
    fn transposes() {
        let x = tensor(&[0i64, 1, 2, 3, 4, 5], &[1, 2, 3]);
        let cases: [(Option<Vec<usize>>, &[usize], [i64; 6]); 4] = [
            (None, &[3, 2, 1], [0, 3, 1, 4, 2, 5]),
            (Some(vec![2, 0, 1]), &[3, 1, 2], [0, 3, 1, 4, 2, 5]),
            (Some(vec![1, 0, 2]), &[2, 1, 3], [0, 1, 2, 3, 4, 5]),
            (Some(vec![0, 1, 2]), &[1, 2, 3], [0, 1, 2, 3, 4, 5]),
        ];
        for (permutation, dims, expected) in cases {
            let y = run(&Transpose { permutation: permutation.clone() }, &[Some(x.clone())]).expect("a permutation");
            let y = y.tensor().expect("a tensor");
            assert_eq!((y.dims(), y.read::<i64>().expect("int64")), (dims, &expected[..]), "{permutation:?}");
        }
        for bad in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 3], vec![0, 1, 2, 3]] {
            assert!(run(&Transpose { permutation: Some(bad) }, &[Some(x.clone())]).is_err());
        }
    }
}
