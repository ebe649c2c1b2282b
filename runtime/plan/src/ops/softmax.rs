//! Softmax and its relatives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::dtype::{require_dtype, FLOATS};
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Type, Types};

/// The function that [`Softmax`] computes along the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SoftmaxFunction {
    /// `eˣ / Σ eˣ`
    Softmax,
    /// `x − ln Σ eˣ`
    LogSoftmax,
    /// 1 for the first of the largest elements, 0 for the others.
    Hardmax,
}

/// `Y = function of X along axis`. X `[D0, …]`, floating-point; Y as X.
///
/// A row that contains only −∞, or contains +∞ or NaN, gives NaN. Source:
/// [ONNX Softmax](https://onnx.ai/onnx/operators/onnx__Softmax.html),
/// [ONNX LogSoftmax](https://onnx.ai/onnx/operators/onnx__LogSoftmax.html),
/// [ONNX Hardmax](https://onnx.ai/onnx/operators/onnx__Hardmax.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// The function.
    pub function: SoftmaxFunction,
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// Whether the axes from `axis` to the last count as one axis; `axis` may then be the rank.
    pub coerce_2d: bool,
}

impl Softmax {
    /// `[outer, n, inner]`: the sizes before, on and after the axis of the function.
    pub(crate) fn split(&self, dims: &[usize]) -> Result<[usize; 3]> {
        if !self.coerce_2d {
            return axes::split(dims, self.axis);
        }
        let all = usize::try_from(self.axis).is_ok_and(|axis| axis == dims.len());
        let axis = if all { dims.len() } else { axes::resolve(self.axis, dims.len())? };
        Ok([dims[..axis].iter().product(), dims[axis..].iter().product(), 1])
    }
}

impl Operator for Softmax {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &FLOATS)?;
        if let Some(rank) = x.rank() {
            self.split(&vec![1; rank])?;
        }
        Ok(vec![Type::Tensor(x.clone())])
    }
}
