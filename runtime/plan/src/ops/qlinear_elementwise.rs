//! Elementwise functions of 8-bit codes, and means over images of codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::qlinear::{check_codes, check_limits, ZERO};
use crate::bail;
use crate::broadcast::shape_of;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{all_fit, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// The codes of `f((A − a_zero) · a_scale, (B − b_zero) · b_scale)`: `clamp(round(… ÷ y_scale) + y_zero, low, high)`,
/// with ties to even.
///
/// Inputs: `A` and `B` of `int8` or `uint8`, which broadcast as in NumPy; `a_scale`, `a_zero`, `b_scale`, `b_zero`,
/// `y_scale` and `y_zero`, of one element each. The scales are `float32`, and each zero point has the type of its
/// codes; the type of `y_zero` is that of the result.
///
/// Source: [`QLinearAdd` and `QLinearMul` of
/// onnxruntime](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QLinearBinary {
    /// The function of the two numbers.
    pub function: QLinearFunction,
    /// The smallest code of the result.
    pub low: i32,
    /// The largest code of the result.
    pub high: i32,
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum QLinearFunction {
    Add,
    Mul,
}

/// `Y = table[X]`, where the bits of a code are the index into the table.
///
/// Inputs: `X` of `int8` or `uint8`; `table [256]` of `int8` or `uint8`, which is the result's type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookUp {}

/// The codes of the means over the spatial axes: `saturate(round(Σ (X − x_zero) ÷ (count · scale)) + y_zero)`, with
/// ties to even.
///
/// Inputs: `X [N, …, C]`, channels last, of `int8` or `uint8`; then, of one element each, `scale: float32`, the scale
/// of the result over that of `X`; `x_zero`, of the type of `X`; and `y_zero`, of `int8` or `uint8`, which is the type
/// of the result. Output: `Y [N, 1…, C]`.
///
/// Source: [`QLinearGlobalAveragePool` of
/// onnxruntime](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QLinearGlobalAveragePool {}

impl Operator for QLinearBinary {
    fn arity(&self) -> Arity {
        Arity::inputs(8..=8)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        for (codes, scale, zero) in [(0, 2, 3), (1, 4, 5), (7, 6, 7)] {
            check_parameters(inputs, codes, scale, zero)?;
        }
        let (a, b, dtype) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(7)?.dtype);
        check_limits(dtype, self.low, self.high)?;
        Ok(vec![Type::Tensor(TensorType { dtype, shape: shape_of(&[a, b])? })])
    }
}

impl Operator for LookUp {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_codes(inputs, 0)?;
        let dtype = check_codes(inputs, 1)?;
        inputs.shape(1)?.map_or(Ok(()), |table| LookUp::check_table(table))?;
        Ok(vec![Type::Tensor(TensorType { dtype, shape: inputs.tensor(0)?.shape.clone() })])
    }
}

impl LookUp {
    /// Checks that the table has an element for each code.
    pub(crate) fn check_table(table: &[impl Extent]) -> Result<()> {
        if !all_fit(table, &[256]) {
            bail!("the table has shape {}; it must be [256]", text(table));
        }
        Ok(())
    }
}

impl QLinearGlobalAveragePool {
    /// Checks that images have channels, and elements to take the mean of.
    pub(crate) fn check_images(x: &[impl Extent]) -> Result<()> {
        if x.len() < 2 || x[1..].iter().any(|size| size.known() == Some(0)) {
            bail!("images of shape {} have no mean", text(x));
        }
        Ok(())
    }
}

/// The name of a scale in errors.
pub(crate) fn scale_name(input: usize) -> String {
    format!("input {input}, a scale,")
}

impl Operator for QLinearGlobalAveragePool {
    fn arity(&self) -> Arity {
        Arity::inputs(4..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_parameters(inputs, 0, 1, 2)?;
        let (x, dtype) = (inputs.tensor(0)?, check_codes(inputs, 3)?);
        inputs.shape(0)?.map_or(Ok(()), |x| QLinearGlobalAveragePool::check_images(x))?;
        inputs.one_element(3, ZERO)?;
        let shape = x.shape.clone().map(|mut shape| {
            let last = shape.len() - 1;
            shape[1..last].fill(Some(Dim::Size(1)));
            shape
        });
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }
}

/// Checks the dtypes of codes, their scale and their zero point.
fn check_parameters(inputs: &Types, codes: usize, scale: usize, zero: usize) -> Result<()> {
    let dtype = check_codes(inputs, codes)?;
    inputs.one_element(scale, &scale_name(scale))?;
    inputs.one_element(zero, ZERO)?;
    let (scale, zero) = (inputs.tensor(scale)?.dtype, inputs.tensor(zero)?.dtype);
    if scale != DType::Float32 || zero != dtype {
        bail!("a scale of {scale} and a zero point of {zero} are not float32 and {dtype}");
    }
    Ok(())
}
