//! Elementwise selection and clipping.

use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::broadcast::shape_of;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// `Z = X if C else Y`, element by element; `C: bool`, `X` and `Y` broadcast as NumPy does.
///
/// `X` and `Y` have the same type, which may be any. Source:
/// [ONNX Where](https://onnx.ai/onnx/operators/onnx__Where.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Where {}

impl Operator for Where {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (condition, x, y) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if condition.dtype != DType::Bool {
            bail!("the condition must be bool, not {}", condition.dtype);
        }
        if x.dtype != y.dtype {
            bail!("X and Y must have one type, found {} and {}", x.dtype, y.dtype);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: shape_of(&[condition, x, y])? })])
    }
}

/// `Y = min(max(X, low), high)`. Inputs 1 and 2 are `low` and `high`, of one element each; an absent one is no bound.
/// If `low > high`, every element becomes `high`. NaN stays NaN.
///
/// Source: [ONNX Clip](https://onnx.ai/onnx/operators/onnx__Clip.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clip {}

impl Operator for Clip {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        for i in [1, 2] {
            match inputs.optional_tensor(i)? {
                Some(bound) if bound.dtype != x.dtype => {
                    bail!("a bound must be {}, like X, not {}", x.dtype, bound.dtype)
                }
                Some(bound) if bound.sizes().is_some_and(|sizes| sizes.iter().product::<usize>() != 1) => {
                    bail!("a bound must have one element, found shape {:?}", bound.sizes().unwrap_or_default())
                }
                _ => {}
            }
        }
        let check = |_: DType| Ok(vec![Type::Tensor(x.clone())]);
        dispatch!("Clip", x.dtype, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => check(T::DTYPE))
    }
}
