//! New dimensions for the same elements: no element moves.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::axes;
use crate::bail;
use crate::error::{Error, Result};
use crate::extent::{count, fits, text, Extent};
use crate::operator::{Arity, Needs, Operator, OperatorKind};
use crate::types::{Dim, Shape, TensorType, Type, Types};
use crate::value::MAX_RANK;

/// The methods of an operator that returns a view of its first input. Its other inputs are numbers.
macro_rules! view_of_first_input {
    () => {
        fn shares(&self, input: usize) -> bool {
            input == 0
        }

        fn needs(&self, input: usize) -> Needs {
            Needs::numbers_after_first(input)
        }

        fn kind() -> OperatorKind {
            OperatorKind::View
        }

        fn is_foldable(&self) -> bool {
            true
        }
    };
}

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
        let x = inputs.tensor(0)?;
        let rank = axes::length(inputs.tensor(1)?)?;
        let shape = match (&x.shape, axes::constant_list(inputs, 1)?) {
            (Some(dims), Some(shape)) => Some(self.viewed_shape(dims, &shape)?),
            _ => shape_of_rank(rank),
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    view_of_first_input!();
}

impl Reshape {
    /// The sizes of a tensor of shape `dims` under `shape`, as far as they are known.
    pub(crate) fn target(&self, dims: &[impl Extent], shape: &[i64]) -> Result<SmallVec<[Option<usize>; 6]>> {
        let undetermined = || Error::op(format!("{} does not determine {shape:?}", text(dims)));
        let (mut open, mut sizes) = (None, SmallVec::new());
        for (axis, &size) in shape.iter().enumerate() {
            sizes.push(match (size, dims.get(axis)) {
                (-1, _) if open.replace(axis).is_some() => return Err(undetermined()),
                (-1, _) => Some(1),
                (0, Some(dim)) if !self.allow_zero => dim.known(),
                (0, None) if !self.allow_zero => {
                    bail!("the 0 at {axis} of {shape:?} names no dimension of {}", text(dims))
                }
                _ => Some(usize::try_from(size).map_err(|_| Error::op(format!("{shape:?} is not a shape")))?),
            });
        }
        match (open, count(dims).zip(count(&sizes))) {
            (Some(axis), Some((count, others))) if others != 0 && count.is_multiple_of(others) => {
                sizes[axis] = Some(count / others);
            }
            (Some(_), Some(_)) => return Err(undetermined()),
            (Some(axis), None) => sizes[axis] = None,
            (None, Some((before, after))) if before != after => bail!("cannot view {} as {}", text(dims), text(&sizes)),
            (None, _) => {}
        }
        Ok(sizes)
    }

    /// The shape of a tensor of shape `dims` under `shape`.
    fn viewed_shape(&self, dims: &Shape, shape: &[i64]) -> Result<Shape> {
        let sizes = self.target(dims, shape)?.into_iter().enumerate();
        let kept = |axis: usize| dims.get(axis).filter(|_| shape[axis] == 0).cloned().flatten();
        Ok(sizes.map(|(axis, size)| size.map(Dim::Size).or_else(|| kept(axis))).collect())
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

    view_of_first_input!();
}

/// `Y = X` without some dimensions of size 1. `axes` lists these dimensions, or otherwise input 1, `axes: int64 [n]`. If
/// both are absent, the op drops all dimensions of size 1. Source: [ONNX Squeeze](https://onnx.ai/onnx/operators/onnx__Squeeze.html).
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
        let shape = match (known_axes(self.axes.as_deref(), inputs)?, &x.shape, inputs.optional_tensor(1)?) {
            (Some(axes), Some(shape), _) => Some(squeezed(shape, &axes)?),
            (None, Some(shape), Some(axes)) => {
                let count = axes::length(axes)?;
                check_dropped(count.unwrap_or(0), shape.len())?;
                if count.is_some_and(|count| count > shape.iter().filter(|dim| fits(*dim, &1)).count()) {
                    bail!("X of shape {} has too few axes of size 1 to drop", text(shape));
                }
                shape_of_rank(count.map(|count| shape.len() - count))
            }
            (None, Some(_), None) => {
                x.sizes().map(|dims| dims.into_iter().filter(|&d| d != 1).map(|d| Some(Dim::Size(d))).collect())
            }
            (_, None, _) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    view_of_first_input!();
}

/// `Y = X` with new dimensions of size 1. `axes`, or otherwise input 1, `axes: int64 [n]`, gives their positions in `Y`.
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
        let shape = match (known_axes(self.axes.as_deref(), inputs)?, &x.shape, inputs.optional_tensor(1)?) {
            (None, _, None) => bail!("axes are given neither as attribute nor as input"),
            (Some(axes), Some(shape), _) => Some(unsqueezed(shape, &axes, Some(Dim::Size(1)))?),
            (None, Some(shape), Some(axes)) => {
                shape_of_rank(axes::length(axes)?.and_then(|n| shape.len().checked_add(n)))
            }
            (_, None, _) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    view_of_first_input!();
}

/// Returns the axes of an attribute, or of input 1 if this is a constant.
///
/// # Errors
/// Both exist, or the input is not a list of integers.
fn known_axes<'a>(attribute: Option<&'a [i64]>, inputs: &Types) -> Result<Option<Cow<'a, [i64]>>> {
    match (attribute, inputs.optional(1)) {
        (Some(_), Some(_)) => bail!("axes are given twice, as attribute and as input"),
        (Some(axes), None) => Ok(Some(Cow::Borrowed(axes))),
        (None, _) => Ok(axes::constant_list(inputs, 1)?.map(Cow::Owned)),
    }
}

/// A shape of unknown sizes; `None` if the rank is unknown too.
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

pub(crate) fn squeezed<D: Extent + Clone>(dims: &[D], axes: &[i64]) -> Result<Vec<D>> {
    check_dropped(axes.len(), dims.len())?;
    let drop = axes::mask(axes, dims.len())?;
    if let Some(axis) = (0..dims.len()).find(|&axis| drop[axis] && !fits(&dims[axis], &1)) {
        bail!("axis {axis} cannot be dropped: its size is not 1");
    }
    Ok(dims.iter().zip(&drop).filter(|(_, &drop)| !drop).map(|(dim, _)| dim.clone()).collect())
}

pub(crate) fn unsqueezed<D: Clone>(dims: &[D], axes: &[i64], one: D) -> Result<Vec<D>> {
    let new = axes::mask(axes, dims.len() + axes.len())?;
    let mut old = dims.iter();
    Ok(new.iter().map(|&new| if new { one.clone() } else { old.next().unwrap_or(&one).clone() }).collect())
}
