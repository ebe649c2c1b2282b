//! Concatenation of tensors along an axis, and splitting.

use candle_plan_descriptors::broadcast::Dims;
use candle_plan_descriptors::strided::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::error::{Error, Result};
use crate::extent::{fits, size_text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};
use crate::value::{list, Array};

/// Concatenates the inputs along `axis`. They are equal in all other dimensions.
///
/// Source: [ONNX Concat](https://onnx.ai/onnx/operators/onnx__Concat.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concat {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Operator for Concat {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let all: Vec<&TensorType> = (0..inputs.len()).map(|i| inputs.tensor(i)).collect::<Result<_>>()?;
        let Some((first, rest)) = all.split_first() else { bail!("there are no inputs") };
        let mut shape = first.shape.clone();
        let axis = shape.as_ref().map(|shape| axes::resolve(self.axis, shape.len())).transpose()?;
        for other in rest {
            if other.dtype != first.dtype {
                bail!("the inputs must have one type, found {} and {}", first.dtype, other.dtype);
            }
            shape = match (shape, &other.shape, axis) {
                (Some(shape), Some(other), Some(axis)) => Some(joined_shape(shape, other, axis)?),
                _ => None,
            };
        }
        Ok(vec![Type::Tensor(TensorType {
            dtype: first.dtype,
            shape: shape.or(first.rank().map(|rank| vec![None; rank])),
        })])
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

/// Splits `X` along `axis` into as many parts as there are outputs. Input 1, `split: int64 [outputs]`, holds their
/// sizes. If it is absent, the parts have equal sizes, except for the last one, which may be smaller.
///
/// Source: [ONNX Split](https://onnx.ai/onnx/operators/onnx__Split.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Operator for Split {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=2, outputs: 1..=usize::MAX }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let axis = x.rank().map(|rank| axes::resolve(self.axis, rank)).transpose()?;
        if let Some(sizes) = inputs.optional_tensor(1)? {
            check_parts(axes::length(sizes)?, inputs.outputs)?;
        }
        let size = axis.and_then(|axis| x.size(axis));
        let sizes = match (axes::constant_list(inputs, 1)?, size) {
            (Some(sizes), size) => Some(given_parts(&sizes, &size, inputs.outputs)?),
            (None, Some(size)) if inputs.optional(1).is_none() => Some(equal_parts(size, inputs.outputs)?),
            _ => None,
        };
        let sizes = sizes.map(|sizes| sizes.into_iter().map(|size| Some(Dim::Size(size))).collect());
        let part = |size: Option<Dim>| {
            let mut shape = x.shape.clone();
            if let Some(dim) = shape.as_mut().zip(axis).and_then(|(shape, axis)| shape.get_mut(axis)) {
                *dim = size;
            }
            Type::Tensor(TensorType { dtype: x.dtype, shape })
        };
        Ok(sizes.unwrap_or_else(|| vec![None; inputs.outputs]).into_iter().map(part).collect())
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

impl Split {
    /// The axis along which a tensor of shape `dims` is split into `count` parts, and their sizes: `sizes`, or equal
    /// ones.
    pub(crate) fn parts(&self, dims: &[usize], sizes: Option<&[i64]>, count: usize) -> Result<(usize, Vec<usize>)> {
        let axis = axes::resolve(self.axis, dims.len())?;
        let sizes = match sizes {
            Some(sizes) => given_parts(sizes, &dims[axis], count)?,
            None => equal_parts(dims[axis], count)?,
        };
        Ok((axis, sizes))
    }
}

/// Returns the given sizes of `count` parts, after checking that they fit an axis of size `size`.
fn given_parts(sizes: &[i64], size: &impl Extent, count: usize) -> Result<Vec<usize>> {
    let sizes = axes::dims(sizes)?;
    check_parts(Some(sizes.len()), count)?;
    check_sum(&sizes, size)?;
    Ok(sizes)
}

/// Checks that the parts of an axis of size `size` make the whole axis.
pub(crate) fn check_sum(sizes: &[usize], size: &impl Extent) -> Result<()> {
    let sum = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
    match sum {
        Some(sum) if fits(&sum, size) => Ok(()),
        _ => bail!("sizes {sizes:?} do not add up to an axis of size {}", size_text(size)),
    }
}

/// Checks that there is a size for each of `count` parts.
fn check_parts(sizes: Option<usize>, count: usize) -> Result<()> {
    match sizes {
        Some(sizes) if sizes != count => bail!("there are {sizes} sizes for {count} parts"),
        _ => Ok(()),
    }
}

/// The axis along which tensors are concatenated, and the dimensions of the result.
///
/// # Errors
/// The tensors differ in another dimension.
pub(crate) fn joined_dims(arrays: &[&Array], axis: i64) -> Result<(usize, Dims)> {
    let Some(first) = arrays.first() else { bail!("there are no inputs") };
    let axis = axes::resolve(axis, first.rank())?;
    let mut dims = Dims::from_slice(first.dims());
    for other in &arrays[1..] {
        let is_same = |(i, (a, b)): (usize, (&usize, &usize))| i == axis || a == b;
        if other.rank() != dims.len() || !dims.iter().zip(other.dims()).enumerate().all(is_same) {
            bail!("{:?} and {:?} differ on an axis other than {axis}", first.dims(), other.dims());
        }
        dims[axis] =
            dims[axis].checked_add(other.dims()[axis]).ok_or_else(|| Error::op("the joined axis is too long"))?;
    }
    Ok((axis, dims))
}

/// The view of `size` rows of an axis of a tensor of shape `dims`; `None` if the rows are contiguous.
pub(crate) fn place_of(dims: &[usize], axis: usize, start: usize, size: usize) -> Option<View> {
    let mut view = View::contiguous(dims);
    view.offset = start * view.strides[axis] as usize;
    view.dims[axis] = size;
    dims[..axis].iter().any(|&dim| dim != 1).then_some(view)
}

fn joined_shape(mut shape: Shape, other: &Shape, axis: usize) -> Result<Shape> {
    if shape.len() != other.len() {
        bail!("tensors of ranks {} and {} cannot be joined", shape.len(), other.len());
    }
    for (i, (dim, other_dim)) in shape.iter_mut().zip(other).enumerate() {
        *dim = match (dim.take(), other_dim) {
            (Some(Dim::Size(a)), Some(Dim::Size(b))) if i == axis => a.checked_add(*b).map(Dim::Size),
            (_, _) if i == axis => None,
            (Some(Dim::Size(a)), Some(Dim::Size(b))) if a != *b => bail!("sizes {a} and {b} differ on axis {i}"),
            (Some(Dim::Size(a)), _) => Some(Dim::Size(a)),
            (dim, other_dim) => other_dim.clone().or(dim),
        };
    }
    Ok(shape)
}

/// The sizes of `parts` parts, all equal except for the last one.
fn equal_parts(size: usize, parts: usize) -> Result<Vec<usize>> {
    let most = size.div_ceil(parts.max(1));
    match size.checked_sub(most * parts.saturating_sub(1)) {
        Some(last) if parts > 0 => list((0..parts).map(|part| if part + 1 < parts { most } else { last })),
        _ => Err(Error::op(format!("{size} rows do not make {parts} parts of equal size"))),
    }
}
