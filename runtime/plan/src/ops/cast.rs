//! Conversion to another element type, by value or by bits.

use candle_plan_descriptors::minifloat::{Format, E2M1FN, E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// `Y = X`, with each element converted to the type `to`.
///
/// Conversion to integers truncates and keeps the low bits; numbers out of range convert as on x86. Conversion to
/// floats rounds to nearest; for 8-bit floats, see `saturate`. Strings are parsed and printed as in onnxruntime.
///
/// Source: [ONNX Cast](https://onnx.ai/onnx/operators/onnx__Cast.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cast {
    /// The type of the result.
    pub to: DType,
    /// Whether a number too large for an 8-bit float becomes its largest number instead of an infinity or NaN.
    pub saturate: bool,
    /// The rounding for `float8_e8m0fnu`.
    pub round: Round,
}

/// The rounding of a number to a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Round {
    Up,
    Down,
    Nearest,
}

impl Operator for Cast {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

/// The minifloat format of a dtype: the 8-bit and 4-bit formats with a mantissa.
pub fn format_of(dtype: DType) -> Option<Format> {
    match dtype {
        DType::Float8E4M3Fn => Some(E4M3FN),
        DType::Float8E4M3Fnuz => Some(E4M3FNUZ),
        DType::Float8E5M2 => Some(E5M2),
        DType::Float8E5M2Fnuz => Some(E5M2FNUZ),
        DType::Float4E2M1Fn => Some(E2M1FN),
        _ => None,
    }
}

/// `Y` has the bits of `X` as elements of the type `to`, which has the same width.
///
/// Source: [ONNX BitCast](https://onnx.ai/onnx/operators/onnx__BitCast.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BitCast {
    /// The type of the result.
    pub to: DType,
}

impl Operator for BitCast {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if bits(x.dtype)? != bits(self.to)? {
            bail!("{} and {} differ in width", x.dtype, self.to);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }
}

/// The width in bits of an element, as ONNX defines it.
pub(crate) fn bits(dtype: DType) -> Result<usize> {
    Ok(match dtype {
        DType::Int2 | DType::Uint2 => 2,
        DType::Int4 | DType::Uint4 | DType::Float4E2M1Fn => 4,
        DType::String => return Err(Error::op("strings have no bits")),
        other => by_width!(other, W => Ok(W::BITS as usize))?,
    })
}
