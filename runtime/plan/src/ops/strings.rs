//! Tensors of strings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::repeat::expanded_shape;
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::{self, fits, Extent};
use crate::operator::{Arity, Operator, OperatorKind};
use crate::pattern::full_match;
use crate::types::{Dim, TensorType, Type, Types};

/// `Z = X ‖ Y`: each string of `X`, followed by the string of `Y` at the same position. The shapes broadcast as in
/// NumPy.
///
/// Source: [ONNX StringConcat](https://onnx.ai/onnx/operators/onnx__StringConcat.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StringConcat {}

impl Operator for StringConcat {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, y) = (text_type(inputs, 0)?, text_type(inputs, 1)?);
        let shape = match (x.sizes(), y.sizes()) {
            (Some(_), Some(y)) => x.shape.as_ref().map(|x| expanded_shape(x, &y)).transpose()?,
            _ => x.rank().zip(y.rank()).map(|(x, y)| vec![None; x.max(y)]),
        };
        Ok(vec![Type::Tensor(TensorType { dtype: DType::String, shape })])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Splits each string of `X` at a delimiter. `Y [dims(X), n]` holds the parts, padded with empty strings to the largest
/// number of parts; `Z: int64`, of the shape of `X`, holds the numbers of parts. An empty string has no parts.
///
/// Source: [ONNX StringSplit](https://onnx.ai/onnx/operators/onnx__StringSplit.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StringSplit {
    /// The delimiter. An empty one means any white space, which is then also removed at both ends.
    pub delimiter: String,
    /// The maximum number of splits, after which the rest stays whole; absent means no maximum.
    pub most: Option<usize>,
}

impl Operator for StringSplit {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=1, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = text_type(inputs, 0)?;
        let parts = x.shape.clone().map(|shape| shape.into_iter().chain([None]).collect());
        let parts = Type::Tensor(TensorType { dtype: DType::String, shape: parts });
        Ok(vec![parts, Type::Tensor(TensorType { dtype: DType::Int64, shape: x.shape.clone() })])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// The strings of `X [C]` or `[1, C]` that are not stop words, with their case changed. If none are left, the result is
/// one empty string.
///
/// Source: [ONNX StringNormalizer](https://onnx.ai/onnx/operators/onnx__StringNormalizer.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StringNormalizer {
    /// The words to drop.
    pub stop_words: Vec<String>,
    /// Whether a stop word matches in any case.
    pub ignore_case: bool,
    /// The case of the results.
    pub case: Case,
}

/// The case of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// Unchanged.
    Keep,
    /// All letters in lower case.
    Lower,
    /// All letters in upper case.
    Upper,
}

impl StringNormalizer {
    /// Checks that the strings are `[C]` or `[1, C]`.
    pub(crate) fn check(x: &[impl Extent]) -> Result<()> {
        match x {
            [_] => Ok(()),
            [one, _] if fits(one, &1) => Ok(()),
            _ => bail!("X has shape {}; it must be [C] or [1, C]", extent::text(x)),
        }
    }
}

impl Operator for StringNormalizer {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let shape = text_type(inputs, 0)?.shape.as_deref();
        shape.map_or(Ok(()), StringNormalizer::check)?;
        let shape = shape.map(|shape| match shape.len() {
            1 => vec![None],
            _ => vec![Some(Dim::Size(1)), None],
        });
        Ok(vec![Type::Tensor(TensorType { dtype: DType::String, shape })])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Whether each string of `X`, as a whole, matches a regular expression: `bool`, of the shape of `X`.
///
/// Source: [ONNX RegexFullMatch](https://onnx.ai/onnx/operators/onnx__RegexFullMatch.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexFullMatch {
    /// The expression, in [RE2's syntax](https://github.com/google/re2/wiki/Syntax).
    pub pattern: String,
}

impl Operator for RegexFullMatch {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        full_match(&self.pattern)?;
        let shape = text_type(inputs, 0)?.shape.clone();
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Bool, shape })])
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

/// Input `i`, which must hold strings.
fn text_type<'a>(inputs: &'a Types, i: usize) -> Result<&'a TensorType> {
    match inputs.tensor(i)? {
        text if text.dtype == DType::String => Ok(text),
        other => Err(Error::op(format!("expected strings, found {}", other.dtype))),
    }
}
