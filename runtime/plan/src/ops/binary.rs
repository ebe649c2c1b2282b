//! Elementwise functions of two inputs.

use candle_plan_descriptors::program::Binary as Function;
use candle_plan_descriptors::program::{Instruction, Operand, Program};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unary::is_computed;
use crate::array::words;
use crate::bail;
use crate::broadcast::shape_of;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::count;
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};

/// `Z = function(X, Y)`, element by element; `X` and `Y` broadcast as NumPy does.
///
/// `X` and `Y` have the same type; for `Pow`, they may differ, and the result has the type of `X`. Comparisons give
/// booleans. Integers wrap around; integer division truncates, and division by zero is an error. 16-bit floating point
/// is computed in `float32` and rounded once. `Equal` also compares strings. Source: the
/// [ONNX operators](https://onnx.ai/onnx/operators/) with the functions' names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Binary {
    /// The function.
    pub function: Function,
}

impl Operator for Binary {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, y) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if x.dtype != y.dtype && self.function != Function::Pow {
            bail!("{:?} needs two inputs of one type, found {} and {}", self.function, x.dtype, y.dtype);
        }
        for dtype in [x.dtype, y.dtype] {
            if !self.is_defined_for(dtype) {
                bail!("{:?} is not defined for {dtype}", self.function);
            }
        }
        let dtype = if self.is_comparison() { DType::Bool } else { x.dtype };
        let shape = shape_of(&[x, y])?;
        let computes = shape.as_ref().and_then(|shape| count(shape)).is_some_and(|count| count > 0);
        if let Some(divisors) = inputs.checked(1).filter(|_| computes && self.divides() && y.dtype.is_int()) {
            let zero = by_width!(y.dtype, W => Ok(words::read::<W>(divisors)?.iter().position(|&word| word == 0)))?;
            zero.map_or(Ok(()), |place| Err(Error::Op(divided_by_zero(place))))?;
        }
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }

    fn checks(&self, input: usize) -> bool {
        input == 1 && self.divides()
    }

    fn is_foldable(&self) -> bool {
        true
    }
}

/// Says that element `place` of Y, an integer that divides, is 0.
pub(crate) fn divided_by_zero(place: usize) -> String {
    format!("an integer is divided by zero (element {place} of the divisor)")
}

impl Binary {
    /// The inputs whose buffer can hold the result. A comparison has none, because its result is boolean.
    pub(crate) fn replaceable(&self) -> &'static [usize] {
        if self.is_comparison() {
            &[]
        } else {
            &[0, 1]
        }
    }

    fn divides(&self) -> bool {
        matches!(self.function, Function::Div | Function::Mod | Function::Fmod)
    }

    pub(crate) fn is_comparison(&self) -> bool {
        use Function::*;
        matches!(self.function, Equal | Less | LessOrEqual | Greater | GreaterOrEqual)
    }

    fn is_defined_for(&self, dtype: DType) -> bool {
        use Function::*;
        let is_float = dtype.is_float() && !dtype.is_small_float();
        match self.function {
            And | Or | Xor => dtype == DType::Bool,
            BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => is_computed(dtype),
            Equal => is_float || is_computed(dtype) || matches!(dtype, DType::Bool | DType::String),
            _ => is_float || is_computed(dtype),
        }
    }

    pub(crate) fn program(&self) -> Program {
        let code = vec![Instruction::Load(Operand::Input(0)), Instruction::Binary(self.function, Operand::Input(1))];
        Program { code }
    }
}
