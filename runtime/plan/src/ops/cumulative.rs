//! Running sums and products along an axis.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::{require_dtype, DType, SUMMED};
use crate::error::Result;
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Type, Types};

/// The function that [`Cumulative`] accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Accumulation {
    /// `y[i] = x[0] + … + x[i]`
    Sum,
    /// `y[i] = x[0] · … · x[i]`
    Prod,
}

/// `Y[i] = X[0] ∘ … ∘ X[i]` along an axis. X `[D0, …]`, axis int32 or int64 `[]` or `[1]` (a negative axis counts from
/// the end); Y as X.
///
/// 16-bit floats are accumulated in `f32`; integers wrap around. Source:
/// [ONNX CumSum](https://onnx.ai/onnx/operators/onnx__CumSum.html),
/// [ONNX CumProd](https://onnx.ai/onnx/operators/onnx__CumProd.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cumulative {
    /// The function.
    pub function: Accumulation,
    /// Whether to leave out `X[i]` itself: `Y[0]` is then 0, or 1 for products.
    pub exclusive: bool,
    /// Whether to accumulate from the end of the axis.
    pub reverse: bool,
}

impl Operator for Cumulative {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, axis) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &SUMMED)?;
        require_dtype("axis", axis.dtype, &[DType::Int32, DType::Int64])?;
        inputs.one_element(1, "axis")?;
        match (axes::constant_number(inputs, 1, "axis")?, x.rank()) {
            (_, Some(0)) => bail!("X has no axes"),
            (Some(axis), Some(rank)) => axes::resolve(axis, rank).map(drop)?,
            _ => {}
        }
        Ok(vec![Type::Tensor(x.clone())])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}
