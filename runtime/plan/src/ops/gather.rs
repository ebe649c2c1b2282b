//! Elements and rows picked by index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::Types;
use crate::types::{TensorType, Type};
use crate::work::Work;

/// Rows of `axis` of `X`, in the order and shape of `indices`:
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
        let shape = x
            .shape
            .as_ref()
            .zip(indices.shape.as_ref())
            .zip(axis)
            .map(|((x, indices), axis)| x[..axis].iter().chain(indices).chain(&x[axis + 1..]).cloned().collect());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }
}

/// For each element of `indices`, the element of `X` at the same place but for `axis`, where the index says:
/// `Y[i₀, …] = X[i₀, …, indices[i₀, …], …]`. A negative index counts from the end.
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
        let ranks = (x.rank(), indices.rank());
        if let (Some(data), Some(index)) = ranks {
            axes::resolve(self.axis, data)?;
            if data != index {
                bail!("indices of rank {index} do not fit a tensor of rank {data}");
            }
        }
        let shape = indices.shape.clone().or_else(|| shape_of_rank(ranks.0));
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }
}

/// For each vector of `indices [.., k]`, the part of `X` that its numbers lead to along the `k` dimensions after the first
/// `batch_dims`, which `X` and `indices` share: `Y[b, i] = X[b, indices[b, i, 0], …, indices[b, i, k - 1]]`.
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
        let depth = indices.rank().and_then(|rank| indices.size(rank.checked_sub(1)?));
        let shape = match (&x.shape, &indices.shape, depth) {
            (Some(x), Some(indices), Some(depth)) => match x.get(self.batch_dims.saturating_add(depth)..) {
                Some(rest) => Some(indices[..indices.len() - 1].iter().chain(rest).cloned().collect()),
                None => bail!(
                    "{depth} indices after {} batch dimensions are too many for rank {}",
                    self.batch_dims,
                    x.len()
                ),
            },
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn work(&self, _inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::picking(outputs)
    }
}

/// Input `i`, which must hold indices.
pub(crate) fn index_type<'a>(inputs: &'a Types, i: usize) -> Result<&'a TensorType> {
    let indices = inputs.tensor(i)?;
    if !indices.dtype.is_int() {
        bail!("indices are integers, not {}", indices.dtype);
    }
    Ok(indices)
}
