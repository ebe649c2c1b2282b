//! Max unpooling: pooled elements at their original positions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window::check_pooled;
use crate::axes;
use crate::bail;
use crate::dtype::{require_dtype, DType, FLOATS};
use crate::error::{Error, Result};
use crate::extent::{all_fit, at_most, text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::{element_count, Array};

/// A tensor of zeros with each element of X at the position that its index gives. Inputs: X and I (int64) `[N, C, W]`
/// or `[N, C, H, W]`, and the output's shape (int64, optional).
///
/// An index counts in the tensor that the window would pool to X: `(size − 1) × stride + kernel − pads` on each axis.
/// If the output's shape is given, the element keeps its coordinates. Source:
/// [ONNX MaxUnpool](https://onnx.ai/onnx/operators/onnx__MaxUnpool.html).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaxUnpool {
    /// The sizes of a window.
    pub kernel: Vec<usize>,
    /// The strides of the window.
    pub strides: Vec<usize>,
    /// The padding, `[before, after]` for each spatial axis.
    pub pads: Vec<[usize; 2]>,
}

impl MaxUnpool {
    /// The shape of the tensor that the indices refer to, as far as it is known.
    fn unpooled(&self, dims: &[impl Extent]) -> Result<Vec<Option<usize>>> {
        let [n, c, spatial @ ..] = dims else { bail!("a tensor of shape {} has no spatial axes", text(dims)) };
        if [self.kernel.len(), self.strides.len(), self.pads.len()] != [spatial.len(); 3] {
            let axes = self.kernel.len();
            bail!("a window of {axes} spatial axes cannot have pooled a tensor of shape {}", text(dims));
        }
        let size = |dim: usize, a: usize| {
            let steps = dim.checked_sub(1)?.checked_mul(self.strides[a])?;
            let end = steps.checked_add(self.kernel[a])?;
            end.checked_sub(self.pads[a][0])?.checked_sub(self.pads[a][1])
        };
        let impossible = || {
            let window = &self.kernel;
            Error::op(format!("a window of {window:?} cannot have pooled to a tensor of shape {}", text(dims)))
        };
        let known =
            |(a, dim): (usize, &_)| Extent::known(dim).map(|dim| size(dim, a).ok_or_else(impossible)).transpose();
        [Ok(n.known()), Ok(c.known())].into_iter().chain(spatial.iter().enumerate().map(known)).collect()
    }

    /// Checks the type of the given shape of the result: a size for each axis.
    fn check_sizes(&self, sizes: Option<&TensorType>) -> Result<()> {
        let Some(sizes) = sizes else { return Ok(()) };
        let axes = 2 + self.kernel.len();
        let fits = |dims: &Vec<Option<Dim>>| dims.len() == 1 && dims[0].known().is_none_or(|count| count == axes);
        if sizes.dtype != DType::Int64 || !sizes.shape.as_ref().is_none_or(fits) {
            bail!("the output's shape must be {axes} numbers of int64, found {}", Type::Tensor(sizes.clone()));
        }
        Ok(())
    }

    /// The shape of the tensor that the indices refer to, and the shape of the result, as far as they are known. The
    /// result is at least as large. Its shape may be given.
    pub(crate) fn shapes(&self, x: &[impl Extent], given: Option<&Array>) -> Result<[Vec<Option<usize>>; 2]> {
        let counted = self.unpooled(x)?;
        let Some(given) = given else { return Ok([counted.clone(), counted]) };
        let dims = axes::dims(&given.to_i64()?)?;
        if counted.len() != dims.len() || !counted.iter().zip(&dims).all(|(counted, dim)| at_most(counted, dim)) {
            bail!("the output's shape {dims:?} is smaller than {}", text(&counted));
        }
        Ok([counted, dims.into_iter().map(Some).collect()])
    }
}

/// Returns the error for an index, element `place` of the indices, that is beyond the tensor of shape `counted`.
pub(crate) fn index_out_of_range(index: i64, place: usize, counted: &[usize]) -> String {
    format!("index {index} is out of range for a tensor of shape {counted:?} (element {place} of the indices)")
}

/// The place that an index, element `place` of the indices, names in a tensor of shape `counted` and `count` elements.
///
/// # Errors
/// The index is out of range.
pub(crate) fn named(index: i64, place: usize, counted: &[usize], count: usize) -> Result<usize> {
    let inside = usize::try_from(index).ok().filter(|&index| index < count);
    inside.ok_or_else(|| Error::Op(index_out_of_range(index, place, counted)))
}

/// Checks that X has an index for each element.
pub(crate) fn check_indices(x: &[impl Extent], indices: &[impl Extent]) -> Result<()> {
    if !all_fit(x, indices) {
        bail!("indices of shape {} do not fit X of shape {}", text(indices), text(x));
    }
    Ok(())
}

impl Operator for MaxUnpool {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &FLOATS)?;
        if indices.dtype != DType::Int64 {
            bail!("MaxUnpool's indices must be int64, not {}", indices.dtype);
        }
        check_pooled(&self.kernel)?;
        if self.kernel.iter().chain(&self.strides).any(|&size| size == 0) {
            bail!("a window needs a kernel and a stride of at least 1, found {:?} and {:?}", self.kernel, self.strides);
        }
        if let (Some(x), Some(indices)) = (&x.shape, &indices.shape) {
            check_indices(x, indices)?;
        }
        self.check_sizes(inputs.optional_tensor(2)?)?;
        let Some(dims) = &x.shape else { return Ok(vec![Type::ranked(x.dtype, 2 + self.kernel.len())]) };
        let [counted, sizes] = self.shapes(dims, inputs.constant(2))?;
        let counted: Option<Vec<usize>> = counted.into_iter().collect();
        if let Some((indices, counted)) = inputs.checked(1).zip(counted) {
            let (indices, count) = (indices.read::<i64>()?, element_count(&counted)?);
            indices.iter().enumerate().try_for_each(|(i, &index)| named(index, i, &counted, count).map(drop))?;
        }
        let shape = sizes.into_iter().map(|size| size.filter(|_| inputs.is_fixed(2)).map(Dim::Size)).collect();
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 2 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }
}
