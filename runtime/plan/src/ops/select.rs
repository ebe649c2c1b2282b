//! Selection of elements by a condition, by position or by value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::extent::{count, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// The upper or lower triangle of each matrix of `X [.., M, N]`, with zeros elsewhere: `Y[i, j] = X[i, j]` if
/// `j - i ≥ k` (upper) or `j - i ≤ k` (lower). Inputs: `X`, `k: int64 []` (absent: 0).
///
/// Source: [ONNX Trilu](https://onnx.ai/onnx/operators/onnx__Trilu.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trilu {
    /// Whether the upper triangle is kept.
    pub upper: bool,
}

impl Operator for Trilu {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=2)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.dtype == DType::String || x.rank().is_some_and(|rank| rank < 2) {
            bail!("expected matrices of numbers, found {}", inputs.get(0)?);
        }
        inputs.one_element(1, "k")?;
        Ok(vec![Type::Tensor(x.clone())])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

/// The rows of `axis` of `X` for which `condition: bool [n]` is true; rows beyond `n` are dropped. Without `axis`, the
/// condition selects from the elements of `X` in row-major order.
///
/// Source: [ONNX Compress](https://onnx.ai/onnx/operators/onnx__Compress.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compress {
    /// The axis; a negative one counts from the end.
    pub axis: Option<i64>,
}

impl Operator for Compress {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let condition = inputs.tensor(1)?;
        if condition.dtype != DType::Bool {
            bail!("the condition must be bool, not {}", condition.dtype);
        }
        let (x, axis) = (inputs.tensor(0)?, self.axis);
        let rows = match (&x.shape, axis) {
            (Some(shape), Some(axis)) => shape[axes::resolve(axis, shape.len())?].known(),
            (Some(shape), None) => count(shape),
            (None, _) => None,
        };
        if let Some((condition, rows)) = inputs.checked(1).zip(rows) {
            check_kept(condition.read::<Bool>()?, rows)?;
        }
        picked(x, axis)
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }
}

/// Checks that the condition keeps none but `rows` rows.
pub(crate) fn check_kept(condition: &[Bool], rows: usize) -> Result<()> {
    match condition.iter().rposition(|kept| kept.is_true()).filter(|&last| last >= rows) {
        Some(last) => bail!("the condition keeps row {last} of {rows}"),
        None => Ok(()),
    }
}

/// The indices of the nonzero elements of `X`: `Y int64 [rank, n]`, with a column of indices for each element, in
/// row-major order. A scalar counts as a list of one element.
///
/// Source: [ONNX NonZero](https://onnx.ai/onnx/operators/onnx__NonZero.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NonZero {}

impl Operator for NonZero {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.dtype == DType::String || x.dtype.is_small_float() {
            bail!("NonZero is not defined for {}", x.dtype);
        }
        let rows = x.rank().map(|rank| Dim::Size(rank.max(1)));
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Int64, shape: Some(vec![rows, None]) })])
    }
}

/// The distinct rows of `axis` of `X` (without `axis`: the distinct elements), and three `int64` lists: the index of
/// the first occurrence of each in `X`, the index of each row of `X` among the distinct rows, and the number of
/// occurrences of each. NaNs are equal, and larger than numbers.
///
/// Source: [ONNX Unique](https://onnx.ai/onnx/operators/onnx__Unique.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unique {
    /// The axis; a negative one counts from the end.
    pub axis: Option<i64>,
    /// Whether the results are in ascending order instead of the order of their first occurrence.
    pub sorted: bool,
}

impl Operator for Unique {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=1, outputs: 1..=4 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.dtype.is_small_float() {
            bail!("Unique is not defined for {}", x.dtype);
        }
        let mut types = picked(x, self.axis)?;
        types.resize(inputs.outputs, Type::ranked(DType::Int64, 1));
        Ok(types)
    }
}

/// The type of a selection of rows of an axis, or of elements.
fn picked(x: &TensorType, axis: Option<i64>) -> Result<Vec<Type>> {
    let mut shape = x.shape.clone();
    match (axis, &mut shape) {
        (None, _) => shape = Some(vec![None]),
        (Some(axis), Some(shape)) => {
            let axis = axes::resolve(axis, shape.len())?;
            shape[axis] = None;
        }
        (Some(_), None) => {}
    }
    Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
}
