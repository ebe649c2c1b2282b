//! Repetition of elements along axes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::error::{Error, Result};
use crate::extent::{fits, text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};

/// Broadcasts `X` with a tensor of the shape in input 1, `shape: int64 [n]`. Dimensions are aligned at the end, and
/// those of size 1 are repeated; a 1 in `shape` keeps the dimension of `X`.
///
/// Source: [ONNX Expand](https://onnx.ai/onnx/operators/onnx__Expand.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expand {}

impl Operator for Expand {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn is_foldable(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, shape) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let rank = x.rank().zip(axes::length(shape)?).map(|(a, b)| a.max(b));
        let expanded = match (&x.shape, axes::constant_dims(inputs, 1)?) {
            (Some(dims), Some(shape)) => Some(expanded_shape(dims, &shape)?),
            _ => shape_of_rank(rank),
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: expanded })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

/// Repeats `X` along each axis: `Y[i] = X[i mod dims]`. Input 1, `repeats: int64 [rank]`, holds the number of repeats.
///
/// Source: [ONNX Tile](https://onnx.ai/onnx/operators/onnx__Tile.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tile {}

impl Operator for Tile {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, repeats) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let given = axes::length(repeats)?;
        check_repeats(given, x.rank())?;
        let tiled = match (&x.shape, axes::constant_dims(inputs, 1)?) {
            (Some(dims), Some(repeats)) => Some(tiled_shape(dims, &repeats)?),
            _ => shape_of_rank(x.rank().or(given)),
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: tiled })])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

/// The shape of a tensor of shape `dims` that is repeated along each axis.
fn tiled_shape(dims: &Shape, repeats: &[usize]) -> Result<Shape> {
    check_repeats(Some(repeats.len()), Some(dims.len()))?;
    let tiled = |(dim, &repeat): (&Option<Dim>, &usize)| match (dim.known(), repeat) {
        (Some(size), repeat) => Ok(Some(Dim::Size(repeated(size, repeat)?))),
        (None, 0) => Ok(Some(Dim::Size(0))),
        (None, repeat) => Ok(dim.clone().filter(|_| repeat == 1)),
    };
    dims.iter().zip(repeats).map(tiled).collect()
}

/// The size of a dimension of size `dim` that is repeated.
pub(crate) fn repeated(dim: usize, repeat: usize) -> Result<usize> {
    dim.checked_mul(repeat).ok_or_else(|| Error::op(format!("{repeat} times {dim} elements are too many")))
}

/// Checks that there is a number of repeats for each dimension.
pub(crate) fn check_repeats(repeats: Option<usize>, rank: Option<usize>) -> Result<()> {
    match (repeats, rank) {
        (Some(repeats), Some(rank)) if repeats != rank => {
            bail!("{repeats} repeats do not fit {rank} axes")
        }
        _ => Ok(()),
    }
}

/// The broadcast shape of a tensor of shape `dims` with one of shape `shape`.
pub(crate) fn expanded_shape(dims: &Shape, shape: &[usize]) -> Result<Shape> {
    check_expansion(dims, shape)?;
    let rank = dims.len().max(shape.len());
    let size = |axis: usize| {
        let own = (axis + dims.len()).checked_sub(rank).map_or(Some(Dim::Size(1)), |own| dims[own].clone());
        let wanted = (axis + shape.len()).checked_sub(rank).map_or(1, |other| shape[other]);
        if wanted == 1 {
            own
        } else {
            Some(Dim::Size(wanted))
        }
    };
    Ok((0..rank).map(size).collect())
}

/// Checks that the dimensions broadcast with `shape`.
pub(crate) fn check_expansion(dims: &[impl Extent], shape: &[usize]) -> Result<()> {
    let mut aligned = dims.iter().rev().zip(shape.iter().rev());
    if !aligned.all(|(dim, wanted)| *wanted == 1 || fits(dim, &1) || fits(dim, wanted)) {
        bail!("{} does not broadcast to {}", text(dims), text(shape));
    }
    Ok(())
}
