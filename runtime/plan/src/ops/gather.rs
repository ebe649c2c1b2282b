//! Selection of elements and rows by index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::{check_constant, element_axis, VectorParts};
use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::extent::Extent;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::work::Work;

/// Selects rows of `X` along `axis`, in the order and shape of `indices`:
/// `Y[…, i₀, …, iₖ, …] = X[…, indices[i₀, …, iₖ], …]`. A negative index counts from the end.
///
/// Source: [ONNX Gather](https://onnx.ai/onnx/operators/onnx__Gather.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gather {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Operator for Gather {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, index_type(inputs, 1)?);
        let axis = x.rank().map(|rank| axes::resolve(self.axis, rank)).transpose()?;
        if let Some((x, axis)) = x.shape.as_ref().zip(axis) {
            check_constant(inputs, &x[axis..=axis], axis)?;
        }
        let shape = x
            .shape
            .as_ref()
            .zip(indices.shape.as_ref())
            .zip(axis)
            .map(|((x, indices), axis)| x[..axis].iter().chain(indices).chain(&x[axis + 1..]).cloned().collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }
}

/// Selects an element of `X` for each element of `indices`. The element has the same position, except that the index
/// gives its position along `axis`: `Y[i₀, …] = X[i₀, …, indices[i₀, …], …]`. A negative index counts from the end.
///
/// Source: [ONNX GatherElements](https://onnx.ai/onnx/operators/onnx__GatherElements.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherElements {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
}

impl Operator for GatherElements {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, index_type(inputs, 1)?);
        if let (Some(x), Some(indices)) = (&x.shape, &indices.shape) {
            let axis = element_axis(x, indices, self.axis)?;
            check_constant(inputs, &x[axis..=axis], axis)?;
        }
        let shape = indices.shape.clone().or_else(|| shape_of_rank(x.rank()));
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }
}

/// Selects a part of `X` for each vector of `indices [.., k]`:
/// `Y[b, i] = X[b, indices[b, i, 0], …, indices[b, i, k - 1]]`. `X` and `indices` share the first `batch_dims`
/// dimensions, and the numbers of a vector are indices into the `k` dimensions after them.
///
/// Source: [ONNX GatherND](https://onnx.ai/onnx/operators/onnx__GatherND.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherNd {
    /// The number of leading dimensions that `X` and `indices` share.
    pub batch_dims: usize,
}

impl Operator for GatherNd {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, indices) = (inputs.tensor(0)?, index_type(inputs, 1)?);
        let shape = match x.shape.as_deref().zip(vectors(indices)?) {
            Some((x, (outer, depth))) => {
                let parts = VectorParts::new(x, outer, depth, self.batch_dims)?;
                check_constant(inputs, parts.picked, self.batch_dims)?;
                Some(parts.outer.iter().chain(parts.rest).cloned().collect())
            }
            None => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }
}

/// The dimensions of the vectors of `indices [.., k]`, and `k`, if they are known.
///
/// # Errors
/// The indices have no dimensions.
pub(crate) fn vectors(indices: &TensorType) -> Result<Option<(&[Option<Dim>], usize)>> {
    match indices.shape.as_deref().map(<[_]>::split_last) {
        Some(None) => bail!("indices have no dimensions"),
        Some(Some((depth, outer))) => Ok(depth.known().map(|depth| (outer, depth))),
        None => Ok(None),
    }
}

/// Input `i`, which must hold integers.
pub(crate) fn index_type<'a>(inputs: &'a Types, i: usize) -> Result<&'a TensorType> {
    let indices = inputs.tensor(i)?;
    if !indices.dtype.is_int() {
        bail!("indices must be integers, not {}", indices.dtype);
    }
    Ok(indices)
}
