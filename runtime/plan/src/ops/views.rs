//! New dimensions for the same elements: no element moves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::operator::{Arity, Kind, Needs, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};
use crate::value::MAX_RANK;

/// `Y = X` with the dimensions in input 1, `shape: int64 [rank]`. A `-1` stands for the size that the other dimensions
/// leave. A `0` stands for the dimension of `X` at the same position, or, with `allow_zero`, for zero.
///
/// Source: [ONNX Reshape](https://onnx.ai/onnx/operators/onnx__Reshape.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reshape {
    /// Whether a 0 in the shape means a dimension of size 0.
    pub allow_zero: bool,
}

impl Operator for Reshape {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let shape = shape_of_rank(axes::length(inputs.tensor(1)?)?);
        Ok(vec![Type::Tensor(TensorType { dtype: inputs.tensor(0)?.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn needs(&self, input: usize) -> Needs {
        needs(input)
    }

    fn kind() -> Kind {
        Kind::View
    }
}

/// `Y [Π X[..axis], Π X[axis..]] = X`. Source: [ONNX Flatten](https://onnx.ai/onnx/operators/onnx__Flatten.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flatten {
    /// The first axis of the second dimension, from 0 to the rank; a negative one counts from the end.
    pub axis: i64,
}

impl Flatten {
    pub(crate) fn split(&self, rank: usize) -> Result<usize> {
        match usize::try_from(self.axis) {
            Ok(axis) if axis == rank => Ok(axis),
            _ => axes::resolve(self.axis, rank),
        }
    }
}

impl Operator for Flatten {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let Some(shape) = &x.shape else { return Ok(vec![Type::ranked(x.dtype, 2)]) };
        let (rows, columns) = shape.split_at(self.split(shape.len())?);
        let shape = Some(vec![product(rows), product(columns)]);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn kind() -> Kind {
        Kind::View
    }
}

/// `Y = X` without some dimensions of size 1: those in `axes`, or those in input 1, `axes: int64 [n]`, or, if both are
/// absent, all. Source: [ONNX Squeeze](https://onnx.ai/onnx/operators/onnx__Squeeze.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Squeeze {
    /// The dimensions to drop; a negative one counts from the end.
    pub axes: Option<Vec<i64>>,
}

impl Operator for Squeeze {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let shape = match (&self.axes, &x.shape, inputs.optional_tensor(1)?) {
            (Some(_), _, Some(_)) => bail!("axes are given twice, as attribute and as input"),
            (Some(axes), Some(shape), None) => {
                Some(squeezed(shape, axes, |dim| !matches!(dim, Some(Dim::Size(2..) | Dim::Size(0))))?)
            }
            (None, Some(shape), Some(axes)) => {
                let count = axes::length(axes)?;
                check_dropped(count.unwrap_or(0), shape.len())?;
                shape_of_rank(count.map(|count| shape.len() - count))
            }
            (None, Some(_), None) => {
                x.sizes().map(|dims| dims.into_iter().filter(|&d| d != 1).map(|d| Some(Dim::Size(d))).collect())
            }
            (_, None, _) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn needs(&self, input: usize) -> Needs {
        needs(input)
    }

    fn kind() -> Kind {
        Kind::View
    }
}

/// `Y = X` with new dimensions of size 1, at the positions in `Y` that `axes`, or input 1, `axes: int64 [n]`, gives.
/// Source: [ONNX Unsqueeze](https://onnx.ai/onnx/operators/onnx__Unsqueeze.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unsqueeze {
    /// The positions of the new dimensions in the result; a negative one counts from the end.
    pub axes: Option<Vec<i64>>,
}

impl Operator for Unsqueeze {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let shape = match (&self.axes, &x.shape, inputs.optional_tensor(1)?) {
            (Some(_), _, Some(_)) => bail!("axes are given twice, as attribute and as input"),
            (None, _, None) => bail!("axes are given neither as attribute nor as input"),
            (Some(axes), Some(shape), None) => Some(unsqueezed(shape, axes, Some(Dim::Size(1)))?),
            (None, Some(shape), Some(axes)) => {
                shape_of_rank(axes::length(axes)?.and_then(|n| shape.len().checked_add(n)))
            }
            (_, None, _) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn needs(&self, input: usize) -> Needs {
        needs(input)
    }

    fn kind() -> Kind {
        Kind::View
    }
}

/// The type of use of a view's input: the second one holds axes or a shape.
fn needs(input: usize) -> Needs {
    if input == 0 {
        Needs::Elements
    } else {
        Needs::Numbers
    }
}

/// A shape of which only the rank is known; `None` if the rank is unknown.
pub(crate) fn shape_of_rank(rank: Option<usize>) -> Option<Shape> {
    // No tensor has more dimensions. If the shape input is longer, the step fails when it runs.
    rank.filter(|&rank| rank <= MAX_RANK).map(|rank| vec![None; rank])
}

pub(crate) fn product(dims: &[Option<Dim>]) -> Option<Dim> {
    match dims {
        [] => Some(Dim::Size(1)),
        [only] => only.clone(),
        [first, rest @ ..] => match (first, product(rest)?) {
            (Some(Dim::Size(a)), Dim::Size(b)) => a.checked_mul(b).map(Dim::Size),
            _ => None,
        },
    }
}

fn check_dropped(count: usize, rank: usize) -> Result<()> {
    if count > rank {
        bail!("a tensor of rank {rank} has no {count} axes to drop");
    }
    Ok(())
}

pub(crate) fn squeezed<D: Clone>(dims: &[D], axes: &[i64], may_be_one: impl Fn(&D) -> bool) -> Result<Vec<D>> {
    check_dropped(axes.len(), dims.len())?;
    let drop = axes::mask(axes, dims.len())?;
    if let Some(axis) = (0..dims.len()).find(|&axis| drop[axis] && !may_be_one(&dims[axis])) {
        bail!("axis {axis} cannot be dropped: its size is not 1");
    }
    Ok(dims.iter().zip(&drop).filter(|(_, &drop)| !drop).map(|(dim, _)| dim.clone()).collect())
}

pub(crate) fn unsqueezed<D: Clone>(dims: &[D], axes: &[i64], one: D) -> Result<Vec<D>> {
    let new = axes::mask(axes, dims.len() + axes.len())?;
    let mut old = dims.iter();
    Ok(new.iter().map(|&new| if new { one.clone() } else { old.next().unwrap_or(&one).clone() }).collect())
}
