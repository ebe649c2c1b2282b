//! Dimensions of tensors as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Arity, Needs, Operator, OperatorKind};
use crate::types::{TensorType, Type, Types};

/// The dimensions `start .. end` of `X`, as `int64 [n]`; the range is clamped to the rank.
///
/// Source: [ONNX Shape](https://onnx.ai/onnx/operators/onnx__Shape.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// The first dimension; a negative one counts from the end.
    pub start: i64,
    /// One past the last dimension; a negative one counts from the end; absent means the rank.
    pub end: Option<i64>,
}

impl Shape {
    pub(crate) fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let place = |at: i64| (if at < 0 { at.saturating_add(rank as i64) } else { at }).clamp(0, rank as i64) as usize;
        let (start, end) = (place(self.start), self.end.map_or(rank, place));
        start..end.max(start)
    }
}

impl Operator for Shape {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        Ok(vec![match inputs.tensor(0)?.rank() {
            Some(rank) => Type::Tensor(TensorType::sized(DType::Int64, &[self.range(rank).len()])),
            None => Type::ranked(DType::Int64, 1),
        }])
    }

    fn needs(&self, _: usize) -> Needs {
        Needs::Dims
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// The number of `X`'s elements, as `int64 []`. Source: [ONNX Size](https://onnx.ai/onnx/operators/onnx__Size.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {}

impl Operator for Size {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        inputs.tensor(0)?;
        Ok(vec![Type::ranked(DType::Int64, 0)])
    }

    fn needs(&self, _: usize) -> Needs {
        Needs::Dims
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}
