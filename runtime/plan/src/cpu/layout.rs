//! CPU kernels: operators that reorder elements.

use candle_plan_kernels::strided::View;
use candle_plan_kernels::threads::Threads;

use super::gather::runs;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::{copy_view, Movable};
use crate::ops::layout::{stays, DepthToSpace, Regrouped, ReverseSequence, SpaceToDepth, Transpose};
use crate::ops::places::Places;
use crate::ops::recurrent_inputs::lengths_within;
use crate::types::Types;
use crate::value::{list, Array, Value};

impl Kernel for Transpose {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let order = self.order(data.arrays[0].rank())?;
        Ok(vec![data.restore(transposed(&data.arrays[0], &order, call.threads)?)?])
    }
}

impl Kernel for DepthToSpace {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        regroup(call, |dims| self.regrouped(dims))
    }
}

impl Kernel for SpaceToDepth {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        regroup(call, |dims| self.regrouped(dims))
    }
}

/// Moves the pixels and channels of input 0 as `regrouped` says for its dimensions.
fn regroup(call: &Call, regrouped: impl FnOnce(&[usize]) -> Result<Regrouped>) -> Result<Vec<Value>> {
    let data = Movable::new(&[call.value(0)?])?;
    let Regrouped { split, order, dims } = regrouped(data.arrays[0].dims())?;
    let moved = transposed(&data.arrays[0].reshape(&split)?, &order, call.threads)?;
    Ok(vec![data.restore(moved.reshape(&dims)?)?])
}

impl Kernel for ReverseSequence {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, lengths) = (&data.arrays[0], call.tensor(1)?.to_i64()?);
        let [first, second] = self.axes(x.dims(), lengths.len())?;
        let lengths = lengths_within(&lengths, if self.time_first { first } else { second })?;
        let reversed = |step: usize, length: usize| if step < length { length - 1 - step } else { step };
        let run: usize = x.dims()[2..].iter().product();
        let start = |i: usize| {
            let (a, b) = (i / second, i % second);
            let (a, b) = if self.time_first { (reversed(a, lengths[b]), b) } else { (a, reversed(b, lengths[a])) };
            (a * second + b) * run
        };
        let starts = list((0..first * second).map(start))?;
        Ok(vec![data.restore(runs(x, x.len(), &Places { starts, run }, x.dims(), call)?)?])
    }
}

/// Permutes the axes of `x`; returns a view if no element moves.
fn transposed(x: &Array, order: &[usize], threads: &Threads) -> Result<Array> {
    let view = View::contiguous(x.dims()).permute(order);
    if stays(x.dims(), order) {
        return x.reshape(&view.dims);
    }
    copy_view(x, &view, threads)
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

    /// `run` detects storage that an op shares without declaring it.
    #[test]
    fn views_are_declared_when_no_element_moves() {
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
