//! Order along an axis: the indices of extrema, and the k greatest or smallest elements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::{require_dtype, DType, NUMBERS};
use crate::error::Result;
use crate::extent::{at_most, size_text, text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// The extremum that [`ArgReduce`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ArgReduction {
    /// The largest element.
    ArgMax,
    /// The smallest element.
    ArgMin,
}

/// `Y = index along axis of the extremum of X`. X `[D0, …]`; Y int64, of size 1 in the axis, or without it.
///
/// A NaN is never an extremum, unless it is the first element. Source:
/// [ONNX ArgMax](https://onnx.ai/onnx/operators/onnx__ArgMax.html),
/// [ONNX ArgMin](https://onnx.ai/onnx/operators/onnx__ArgMin.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgReduce {
    /// The function.
    pub function: ArgReduction,
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// Whether the result keeps the axis, with size 1.
    pub keepdims: bool,
    /// Whether the last of equal elements counts instead of the first.
    pub select_last_index: bool,
}

impl Operator for ArgReduce {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &NUMBERS)?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let axis = self.checked_axis(shape)?;
            if self.keepdims {
                shape[axis] = Some(Dim::Size(1));
            } else {
                shape.remove(axis);
            }
        }
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Int64, shape })])
    }
}

impl ArgReduce {
    /// The axis of a tensor of shape `x`. It must have an element to choose for each position of the result.
    fn checked_axis(&self, x: &[impl Extent]) -> Result<usize> {
        let axis = axes::resolve(self.axis, x.len())?;
        let chooses = |(i, dim): (usize, &_)| i == axis || Extent::known(dim).is_some_and(|size| size > 0);
        if x[axis].known() == Some(0) && x.iter().enumerate().all(chooses) {
            bail!("axis {axis} of {} has no elements to choose from", text(x));
        }
        Ok(axis)
    }

    /// The dimensions of Y, and `[outer, n, inner]` of X.
    pub(crate) fn dims_and_split(&self, x: &[usize]) -> Result<(Vec<usize>, [usize; 3])> {
        let axis = self.checked_axis(x)?;
        let split = axes::split(x, self.axis)?;
        let mut dims = x.to_vec();
        if self.keepdims {
            dims[axis] = 1;
        } else {
            dims.remove(axis);
        }
        Ok((dims, split))
    }
}

/// `Values, Indices = the k greatest (or smallest) elements of X along axis, in order, and their indices`. X
/// `[…, D, …]`, k int64 `[1]`; Values with the dtype of X, and Indices int64, `[…, k, …]`.
///
/// Of equal elements, the one with the smaller index comes first. NaN counts as greater than every number. Source:
/// [ONNX TopK](https://onnx.ai/onnx/operators/onnx__TopK.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopK {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// Whether to select the greatest elements instead of the smallest.
    pub largest: bool,
}

impl Operator for TopK {
    fn arity(&self) -> Arity {
        Arity { inputs: 2..=2, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, k) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &NUMBERS)?;
        require_dtype("K", k.dtype, &[DType::Int64])?;
        inputs.one_element(1, "K")?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let axis = axes::resolve(self.axis, shape.len())?;
            let k = axes::constant_number(inputs, 1, "K")?;
            shape[axis] = k.map(|k| selected(k, axis, &shape[axis])).transpose()?.map(Dim::Size);
        }
        let indices = Type::Tensor(TensorType { dtype: DType::Int64, shape: shape.clone() });
        let values = Type::Tensor(TensorType { dtype: x.dtype, shape });
        Ok(vec![values, indices].into_iter().take(inputs.outputs).collect())
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

/// The number of elements that are selected of an axis of size `size`.
///
/// # Errors
/// `k` is negative, or larger than the axis.
pub(crate) fn selected(k: i64, axis: usize, size: &impl Extent) -> Result<usize> {
    match usize::try_from(k) {
        Ok(k) if at_most(&k, size) => Ok(k),
        _ => bail!("K is {k}; axis {axis} has {} elements", size_text(size)),
    }
}
