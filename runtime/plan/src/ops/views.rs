//! Other dimensions for the same elements: no element moves.

use candle_plan_kernels::broadcast::Dims;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::device::{Needs, on_device};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::movable::reshape;
use crate::types::{Dim, Shape, TensorType, Type};
use crate::value::{Value, MAX_RANK};

/// `Y = X` under the dimensions of input 1, `shape: int64 [rank]`. A `-1` there takes what the other dimensions leave;
/// a `0` is `X`'s own dimension at that place, or zero where `allow_zero`.
///
/// Source: [ONNX Reshape](https://onnx.ai/onnx/operators/onnx__Reshape.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reshape {
    /// Whether a 0 in the shape means a dimension of size 0.
    pub allow_zero: bool,
}

impl Kernel for Reshape {
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

    on_device!(View);

    fn needs(&self, input: usize) -> Needs {
        needs(input)
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        Ok(Some(axes::read_lists(constants)))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let dims = target(value.dims()?, &axes::list(call, 1)?, self.allow_zero)?;
        Ok(vec![reshape(value, &dims)?])
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
    fn split(&self, rank: usize) -> Result<usize> {
        match usize::try_from(self.axis) {
            Ok(axis) if axis == rank => Ok(axis),
            _ => axes::resolve(self.axis, rank),
        }
    }
}

impl Kernel for Flatten {
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

    on_device!(View);

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let (rows, columns) = value.dims()?.split_at(self.split(value.dims()?.len())?);
        Ok(vec![reshape(value, &[rows.iter().product(), columns.iter().product()])?])
    }
}

/// `Y = X` without some dimensions of size 1: those in `axes`, or those in input 1, `axes: int64 [n]`, or, when neither is
/// there, all. Source: [ONNX Squeeze](https://onnx.ai/onnx/operators/onnx__Squeeze.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Squeeze {
    /// The dimensions to drop; a negative one counts from the end.
    pub axes: Option<Vec<i64>>,
}

impl Kernel for Squeeze {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let shape = match (&self.axes, &x.shape, inputs.optional_tensor(1)?) {
            (Some(_), _, Some(_)) => bail!("axes are given twice, as attribute and as input"),
            (Some(axes), Some(shape), None) => Some(squeezed(shape, axes, |dim| !matches!(dim, Some(Dim::Size(2..) | Dim::Size(0))))?),
            (None, Some(shape), Some(axes)) => shape_of_rank(axes::length(axes)?.and_then(|n| shape.len().checked_sub(n))),
            (None, Some(_), None) => x.sizes().map(|dims| dims.into_iter().filter(|&d| d != 1).map(|d| Some(Dim::Size(d))).collect()),
            (_, None, _) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!(View);

    fn needs(&self, input: usize) -> Needs {
        needs(input)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let dims = value.dims()?;
        let dims = match (&self.axes, call.optional_tensor(1)?) {
            (Some(axes), _) => squeezed(dims, axes, |&dim| dim == 1)?,
            (None, Some(axes)) => squeezed(dims, &axes::numbers(axes)?, |&dim| dim == 1)?,
            (None, None) => dims.iter().copied().filter(|&dim| dim != 1).collect(),
        };
        Ok(vec![reshape(value, &dims)?])
    }
}

/// `Y = X` with dimensions of size 1 put in, at the places of `Y` in `axes`, or in input 1, `axes: int64 [n]`. Source:
/// [ONNX Unsqueeze](https://onnx.ai/onnx/operators/onnx__Unsqueeze.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unsqueeze {
    /// The new dimensions' places in the result; a negative one counts from the end.
    pub axes: Option<Vec<i64>>,
}

impl Kernel for Unsqueeze {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let shape = match (&self.axes, &x.shape, inputs.optional_tensor(1)?) {
            (Some(_), _, Some(_)) => bail!("axes are given twice, as attribute and as input"),
            (None, _, None) => bail!("axes are given neither as attribute nor as input"),
            (Some(axes), Some(shape), None) => Some(unsqueezed(shape, axes, Some(Dim::Size(1)))?),
            (None, Some(shape), Some(axes)) => shape_of_rank(axes::length(axes)?.and_then(|n| shape.len().checked_add(n))),
            (_, None, _) => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!(View);

    fn needs(&self, input: usize) -> Needs {
        needs(input)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let dims = match &self.axes {
            Some(axes) => unsqueezed(value.dims()?, axes, 1)?,
            None => unsqueezed(value.dims()?, &axes::numbers(call.tensor(1)?)?, 1)?,
        };
        Ok(vec![reshape(value, &dims)?])
    }
}

/// The second input of a view holds its axes or its shape.
fn needs(input: usize) -> Needs {
    if input == 0 {
        Needs::Elements
    } else {
        Needs::Numbers
    }
}

/// A shape of which only the rank is known, if that.
pub(super) fn shape_of_rank(rank: Option<usize>) -> Option<Shape> {
    // No tensor has so many dimensions: a shape input that long fails when the step runs.
    rank.filter(|&rank| rank <= MAX_RANK).map(|rank| vec![None; rank])
}

fn product(dims: &[Option<Dim>]) -> Option<Dim> {
    match dims {
        [] => Some(Dim::Size(1)),
        [only] => only.clone(),
        [first, rest @ ..] => match (first, product(rest)?) {
            (Some(Dim::Size(a)), Dim::Size(b)) => a.checked_mul(b).map(Dim::Size),
            _ => None,
        },
    }
}

fn target(dims: &[usize], shape: &[i64], allow_zero: bool) -> Result<Dims> {
    let undetermined = || Error::op(format!("{dims:?} does not determine {shape:?}"));
    let mut open = None;
    let mut sizes = Dims::new();
    for (axis, &size) in shape.iter().enumerate() {
        sizes.push(match (size, dims.get(axis)) {
            (-1, _) if open.replace(axis).is_some() => return Err(undetermined()),
            (-1, _) => 1,
            (0, Some(&dim)) if !allow_zero => dim,
            (0, None) if !allow_zero => bail!("the 0 at {axis} of {shape:?} names no dimension of {dims:?}"),
            _ => usize::try_from(size).map_err(|_| Error::op(format!("{shape:?} is not a shape")))?,
        });
    }
    if let Some(axis) = open {
        let known = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size)).unwrap_or(usize::MAX);
        let count: usize = dims.iter().product();
        sizes[axis] = if known != 0 && count.is_multiple_of(known) { count / known } else { return Err(undetermined()) };
    }
    Ok(sizes)
}

fn squeezed<D: Clone>(dims: &[D], axes: &[i64], may_be_one: impl Fn(&D) -> bool) -> Result<Vec<D>> {
    let drop = axes::mask(axes, dims.len())?;
    if let Some(axis) = (0..dims.len()).find(|&axis| drop[axis] && !may_be_one(&dims[axis])) {
        bail!("axis {axis} cannot be dropped: its size is not 1");
    }
    Ok(dims.iter().zip(&drop).filter(|(_, &drop)| !drop).map(|(dim, _)| dim.clone()).collect())
}

fn unsqueezed<D: Clone>(dims: &[D], axes: &[i64], one: D) -> Result<Vec<D>> {
    let new = axes::mask(axes, dims.len() + axes.len())?;
    let mut old = dims.iter();
    Ok(new.iter().map(|&new| if new { one.clone() } else { old.next().unwrap_or(&one).clone() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn dims_of(kernel: &dyn Kernel, dims: &[usize], second: Option<&[i64]>) -> Option<Vec<usize>> {
        let x = tensor(&vec![1.5f32; dims.iter().product()], dims);
        let mut inputs = vec![Some(x)];
        inputs.extend(second.map(|values| Some(tensor(values, &[values.len()]))));
        run(kernel, &inputs).ok().map(|value| value.dims().expect("a tensor").to_vec())
    }

    #[test]
    fn reshapes() {
        let cases: [(&[usize], &[i64], bool, Option<&[usize]>); 12] = [
            (&[2, 3, 4], &[4, 6], false, Some(&[4, 6])),
            (&[2, 3, 4], &[0, -1], false, Some(&[2, 12])),
            (&[2, 3, 4], &[-1, 0, 2], false, Some(&[4, 3, 2])),
            (&[2, 3, 4], &[24, 1, 1, 1], false, Some(&[24, 1, 1, 1])),
            (&[], &[1, 1], false, Some(&[1, 1])),
            (&[1], &[], false, Some(&[])),
            (&[0, 3], &[3, 0], true, Some(&[3, 0])),
            (&[0, 3], &[0, -1], false, None),
            (&[2, 3], &[-1, -1], false, None),
            (&[2, 3], &[4], false, None),
            (&[2, 3], &[2, 3, 0], false, None),
            (&[2, 3], &[i64::MAX, i64::MAX, 4], false, None),
        ];
        for (dims, shape, allow_zero, expected) in cases {
            assert_eq!(dims_of(&Reshape { allow_zero }, dims, Some(shape)).as_deref(), expected, "{dims:?} as {shape:?}");
        }
    }

    #[test]
    fn flattens() {
        for (axis, expected) in [(0, Some([1, 24])), (1, Some([2, 12])), (3, Some([24, 1])), (-1, Some([6, 4])), (4, None), (-4, None)] {
            assert_eq!(dims_of(&Flatten { axis }, &[2, 3, 4], None), expected.map(Vec::from), "axis {axis}");
        }
        assert_eq!(dims_of(&Flatten { axis: 0 }, &[], None), Some(vec![1, 1]));
    }

    #[test]
    fn squeezes_and_unsqueezes() {
        let squeeze = |axes: Option<&[i64]>| Squeeze { axes: axes.map(<[i64]>::to_vec) };
        assert_eq!(dims_of(&squeeze(Some(&[0, -1])), &[1, 3, 1, 1], None), Some(vec![3, 1]));
        assert_eq!(dims_of(&squeeze(None), &[1, 3, 1, 0], None), Some(vec![3, 0]));
        assert_eq!(dims_of(&squeeze(None), &[1, 3, 1], Some(&[2])), Some(vec![1, 3]));
        assert_eq!(dims_of(&squeeze(Some(&[1])), &[1, 3, 1], None), None);
        assert_eq!(dims_of(&squeeze(Some(&[0, -3])), &[1, 3, 1], None), None);
        let unsqueeze = |axes: Option<&[i64]>| Unsqueeze { axes: axes.map(<[i64]>::to_vec) };
        assert_eq!(dims_of(&unsqueeze(Some(&[-1, 0])), &[2, 3], None), Some(vec![1, 2, 3, 1]));
        assert_eq!(dims_of(&unsqueeze(None), &[2, 3], Some(&[1, 2])), Some(vec![2, 1, 1, 3]));
        assert_eq!(dims_of(&unsqueeze(Some(&[3])), &[2, 3], None), None);
        assert_eq!(dims_of(&unsqueeze(Some(&[1, 1])), &[2, 3], None), None);
    }
}
