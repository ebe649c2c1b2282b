//! Normalization over the last axes: layer normalization and RMS normalization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::{require_dtype, DType, FLOATS};
use crate::error::Result;
use crate::extent::{fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// `Y = (X − Mean) · InvStdDev · Scale + B` over the axes from `axis` to the last, with
/// `InvStdDev = 1 / √(variance + ε)`.
///
/// Inputs: X `[D0, …]`; Scale and B (optional), which broadcast to X. Outputs: Y as X; Mean and InvStdDev (optional),
/// float32, of size 1 in the normalized axes.
///
/// Source: [ONNX LayerNormalization](https://onnx.ai/onnx/operators/onnx__LayerNormalization.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerNorm {
    /// The first normalized axis; a negative one counts from the end.
    pub axis: i64,
    /// ε
    pub epsilon: f64,
}

/// `Y = X / √(mean of X² + ε) · scale` over the axes from `axis` to the last. X `[D0, …]`; scale broadcasts to X; Y has
/// the dtype of scale.
///
/// Source: [ONNX RMSNormalization](https://onnx.ai/onnx/operators/onnx__RMSNormalization.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RmsNorm {
    /// The first normalized axis; a negative one counts from the end.
    pub axis: i64,
    /// ε
    pub epsilon: f64,
}

impl Operator for LayerNorm {
    fn arity(&self) -> Arity {
        Arity { inputs: 2..=3, outputs: 1..=3 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &FLOATS)?;
        require_dtype("Scale", inputs.tensor(1)?.dtype, &[x.dtype])?;
        if let Some(bias) = inputs.optional_tensor(2)? {
            require_dtype("B", bias.dtype, &[x.dtype])?;
        }
        check_fitted(inputs, self.axis)?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let axis = axes::resolve(self.axis, shape.len())?;
            shape[axis..].fill(Some(Dim::Size(1)));
        }
        let statistics = Type::Tensor(TensorType { dtype: DType::Float32, shape });
        Ok([Type::Tensor(x.clone()), statistics.clone(), statistics].into_iter().take(inputs.outputs).collect())
    }
}

impl Operator for RmsNorm {
    fn arity(&self) -> Arity {
        Arity { inputs: 2..=2, outputs: 1..=1 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, scale) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &FLOATS)?;
        require_dtype("scale", scale.dtype, &FLOATS)?;
        check_fitted(inputs, self.axis)?;
        Ok(vec![Type::Tensor(TensorType { dtype: scale.dtype, shape: x.shape.clone() })])
    }
}

/// Checks that scale and bias broadcast to X.
fn check_fitted(inputs: &Types, axis: i64) -> Result<()> {
    let Some(dims) = inputs.shape(0)? else { return Ok(()) };
    let axis = axes::resolve(axis, dims.len())?;
    for i in 1..inputs.len() {
        inputs.sizes(i)?.map_or(Ok(()), |sizes| fitted(&sizes, dims, axis).map(drop))?;
    }
    Ok(())
}

/// The dimensions `from` without leading ones, if they broadcast to the dimensions from `axis` on, or to all
/// dimensions.
///
/// # Errors
/// They do not broadcast.
pub(crate) fn fitted<'a, D: Extent>(from: &'a [usize], dims: &[D], axis: usize) -> Result<&'a [usize]> {
    let ones = from.iter().take_while(|&&dim| dim == 1).count();
    let from = &from[ones..];
    let to = target(from, dims, axis);
    let mut aligned = from.iter().rev().zip(to.iter().rev());
    if from.len() > to.len() || !aligned.all(|(from, to)| *from == 1 || fits(from, to)) {
        bail!("{from:?} does not broadcast to {}", text(to));
    }
    Ok(from)
}

/// The dimensions that `from` broadcasts to: the dimensions from `axis` on if `from` does not have more, otherwise all.
pub(crate) fn target<'a, D>(from: &[usize], dims: &'a [D], axis: usize) -> &'a [D] {
    if from.len() <= dims.len() - axis {
        &dims[axis..]
    } else {
        dims
    }
}
