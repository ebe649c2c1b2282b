//! Elements repeated along axes.

use candle_plan_kernels::strided::View;
use candle_plan_kernels::threads::Threads;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::device::{Needs, on_device};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::movable::{copy_view, Movable};
use crate::types::{TensorType, Type};
use crate::value::Value;

/// `X` broadcast with a tensor of the shape in input 1, `shape: int64 [n]`: dimensions are aligned at the end, and those of
/// size 1 repeated; a 1 in `shape` leaves `X`'s dimension as it is.
///
/// Source: [ONNX Expand](https://onnx.ai/onnx/operators/onnx__Expand.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expand {}

impl Kernel for Expand {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, shape) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let rank = x.rank().zip(axes::length(shape)?).map(|(a, b)| a.max(b));
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: shape_of_rank(rank) })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!("copy");

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let shape = axes::dims(&axes::numbers(call.tensor(1)?)?)?;
        Ok(vec![expanded(call.value(0)?, &shape, call.threads)?])
    }
}

/// A tensor broadcast with one of shape `shape`.
pub(super) fn expanded(value: &Value, shape: &[usize], threads: &Threads) -> Result<Value> {
    let view = broadcast(value.dims()?, shape)?;
    if view.dims == value.dims()? {
        return Ok(value.clone());
    }
    let data = Movable::new(&[value])?;
    data.restore(copy_view(&data.arrays[0], &view, threads)?)
}

/// `X` repeated `r` times along each axis, with `r` from input 1, `repeats: int64 [rank]`: `Y[i] = X[i mod dims]`.
///
/// Source: [ONNX Tile](https://onnx.ai/onnx/operators/onnx__Tile.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tile {}

impl Kernel for Tile {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, repeats) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let rank = x.rank().or(axes::length(repeats)?);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: shape_of_rank(rank) })])
    }

    on_device!("copy");

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (view, dims) = self.tiles(data.arrays[0].dims(), call)?;
        let tiled = copy_view(&data.arrays[0], &view, call.threads)?;
        Ok(vec![data.restore(tiled.reshape(&dims)?)?])
    }
}

impl Tile {
    /// The view of a tensor of shape `dims` that repeats it, and the dimensions of what it shows.
    pub(crate) fn tiles(&self, dims: &[usize], call: &Call) -> Result<(View, Vec<usize>)> {
        let repeats = axes::dims(&axes::numbers(call.tensor(1)?)?)?;
        if repeats.len() != dims.len() {
            bail!("{repeats:?} does not give one number of repeats for each dimension of {dims:?}");
        }
        // Each dimension as a pair: the repeats, which stand still in the source, around the elements.
        let inner = View::contiguous(dims);
        let pairs = repeats.iter().zip(dims).flat_map(|(&repeat, &dim)| [repeat, dim]).collect();
        let strides = inner.strides.iter().flat_map(|&stride| [0, stride]).collect();
        let grown = |(&dim, &repeat): (&usize, &usize)| {
            dim.checked_mul(repeat).ok_or_else(|| Error::op(format!("{repeat} times {dim} elements are too many")))
        };
        let grown = dims.iter().zip(&repeats).map(grown).collect::<Result<_>>()?;
        Ok((View { offset: 0, dims: pairs, strides }, grown))
    }
}

/// The view of a tensor of shape `dims` that has its broadcast shape with `shape`.
pub(crate) fn broadcast(dims: &[usize], shape: &[usize]) -> Result<View> {
    let rank = dims.len().max(shape.len());
    let source = View::contiguous(dims);
    let mut view = View { offset: 0, dims: Vec::with_capacity(rank), strides: Vec::with_capacity(rank) };
    for axis in 0..rank {
        let own = (axis + dims.len()).checked_sub(rank);
        let (dim, stride) = own.map_or((1, 0), |own| (dims[own], source.strides[own]));
        let wanted = (axis + shape.len()).checked_sub(rank).map_or(1, |other| shape[other]);
        let (dim, stride) = match (dim, wanted) {
            (dim, wanted) if dim == wanted || wanted == 1 => (dim, stride),
            (1, wanted) => (wanted, 0),
            _ => bail!("{dims:?} does not broadcast to {shape:?}"),
        };
        view.dims.push(dim);
        view.strides.push(stride);
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn check(kernel: &dyn Kernel, dims: &[usize], sizes: &[i64], expected: Option<(&[usize], &[i32])>) {
        let count = dims.iter().product::<usize>() as i32;
        let x = tensor(&(0..count).collect::<Vec<_>>(), dims);
        let y = run(kernel, &[Some(x), Some(tensor(sizes, &[sizes.len()]))]).ok();
        let y = y.as_ref().map(|y| y.tensor().expect("a tensor"));
        let found = y.map(|y| (y.dims().to_vec(), y.read::<i32>().expect("int32").to_vec()));
        assert_eq!(found, expected.map(|(dims, data)| (dims.to_vec(), data.to_vec())), "{kernel:?} {dims:?} {sizes:?}");
    }

    #[test]
    fn expands() {
        check(&Expand {}, &[2, 1], &[3], Some((&[2, 3], &[0, 0, 0, 1, 1, 1])));
        check(&Expand {}, &[3], &[2, 1], Some((&[2, 3], &[0, 1, 2, 0, 1, 2])));
        check(&Expand {}, &[2, 1], &[1, 2, 1], Some((&[1, 2, 1], &[0, 1])));
        check(&Expand {}, &[2], &[2], Some((&[2], &[0, 1])));
        check(&Expand {}, &[], &[2, 2], Some((&[2, 2], &[0, 0, 0, 0])));
        check(&Expand {}, &[1], &[0], Some((&[0], &[])));
        check(&Expand {}, &[2], &[3], None);
        check(&Expand {}, &[1], &[-1], None);
        check(&Expand {}, &[1], &[i64::MAX], None);
        check(&Expand {}, &[1, 1, 1], &[1 << 40, 1 << 40, 1 << 40], None);
    }

    #[test]
    fn tiles() {
        check(&Tile {}, &[2, 2], &[1, 2], Some((&[2, 4], &[0, 1, 0, 1, 2, 3, 2, 3])));
        check(&Tile {}, &[1, 2], &[3, 1], Some((&[3, 2], &[0, 1, 0, 1, 0, 1])));
        check(&Tile {}, &[2], &[0], Some((&[0], &[])));
        check(&Tile {}, &[], &[], Some((&[], &[0])));
        check(&Tile {}, &[2], &[1, 1], None);
        check(&Tile {}, &[2], &[i64::MAX], None);
    }
}
