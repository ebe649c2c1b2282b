//! The functions of one and of two elements, by name: one list for ops of every dtype and for `f32` programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A function of one element. Parameters are `f32`, as ONNX attributes are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "UnaryFunction")]
pub enum Unary {
    /// `|x|`
    Abs,
    /// `-x`
    Neg,
    /// `-1`, `0` or `1`; NaN for NaN.
    Sign,
    /// The smallest integer ≥ `x`
    Ceil,
    /// The largest integer ≤ `x`
    Floor,
    /// The nearest integer, ties to even
    Round,
    /// `√x`
    Sqrt,
    /// `1 / x`
    Reciprocal,
    /// `x²`
    Square,
    /// `eˣ`
    Exp,
    /// Natural logarithm
    Log,
    /// Sine
    Sin,
    /// Cosine
    Cos,
    /// Tangent
    Tan,
    /// Inverse sine
    Asin,
    /// Inverse cosine
    Acos,
    /// Inverse tangent
    Atan,
    /// Hyperbolic sine
    Sinh,
    /// Hyperbolic cosine
    Cosh,
    /// Hyperbolic tangent
    Tanh,
    /// Inverse hyperbolic sine
    Asinh,
    /// Inverse hyperbolic cosine
    Acosh,
    /// Inverse hyperbolic tangent
    Atanh,
    /// `2/√π · ∫₀ˣ exp(-t²) dt`
    Erf,
    /// `1 / (1 + e⁻ˣ)`
    Sigmoid,
    /// `max(x, 0)`
    Relu,
    /// `ln(1 + eˣ)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `x · max(0, min(1, x/6 + 1/2))`
    HardSwish,
    /// `x · tanh(ln(1 + eˣ))`
    Mish,
    /// `x/2 · (1 + erf(x/√2))`
    Gelu,
    /// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))`
    GeluTanh,
    /// `x / (1 + exp(-alpha·x))`
    Swish {
        /// The slope inside the sigmoid; 1 gives SiLU.
        alpha: f32,
    },
    /// `x` if `x ≥ 0`, else `alpha·x`
    LeakyRelu {
        /// The slope of the negative side.
        alpha: f32,
    },
    /// `x` if `x ≥ 0`, else `alpha·(eˣ - 1)`
    Elu {
        /// The scale of the negative side.
        alpha: f32,
    },
    /// `gamma·x` if `x > 0`, else `gamma·alpha·(eˣ - 1)`
    Selu {
        /// The scale of the negative side.
        alpha: f32,
        /// The scale of both sides.
        gamma: f32,
    },
    /// `max(0, x) + min(0, alpha·(exp(x/alpha) - 1))`
    Celu {
        /// The scale of the negative side.
        alpha: f32,
    },
    /// `max(0, min(1, alpha·x + beta))`
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at zero.
        beta: f32,
    },
    /// `x` if `x > alpha`, else 0
    ThresholdedRelu {
        /// The threshold.
        alpha: f32,
    },
    /// `x + bias` if `x < -lambd`, `x - bias` if `x > lambd`, else 0
    Shrink {
        /// What is taken off the magnitude.
        bias: f32,
        /// Half the width of the interval that gives zero.
        lambd: f32,
    },
    /// `min(max(x, min), max)`; NaN stays NaN.
    Clip {
        /// The least result.
        min: f32,
        /// The greatest result; it wins where it is less than `min`.
        max: f32,
    },
    /// True where `x` is NaN
    IsNaN,
    /// True where `x` is an infinity of a sign that counts
    IsInf {
        /// Whether `-∞` counts.
        negative: bool,
        /// Whether `+∞` counts.
        positive: bool,
    },
    /// `¬x`, of booleans
    Not,
    /// Every bit inverted, of integers
    BitwiseNot,
}

/// A function of two elements, `x` and `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BinaryFunction")]
pub enum Binary {
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x · y`
    Mul,
    /// `x / y`; of integers, rounded toward zero.
    Div,
    /// `x` to the power `y`, in the type of `x`
    Pow,
    /// The remainder with the sign of the divisor `y`, of integers and floats
    Mod,
    /// The remainder with the sign of the dividend `x`, as C's `fmod`
    Fmod,
    /// The lesser; NaN when either is NaN.
    Min,
    /// The greater; NaN when either is NaN.
    Max,
    /// `x` if `x ≥ 0`, else `y·x`
    PRelu,
    /// `x = y`
    Equal,
    /// `x < y`
    Less,
    /// `x ≤ y`
    LessOrEqual,
    /// `x > y`
    Greater,
    /// `x ≥ y`
    GreaterOrEqual,
    /// `x ∧ y`, of booleans
    And,
    /// `x ∨ y`, of booleans
    Or,
    /// `x ⊻ y`, of booleans
    Xor,
    /// Bit by bit `x ∧ y`, of integers
    BitwiseAnd,
    /// Bit by bit `x ∨ y`, of integers
    BitwiseOr,
    /// Bit by bit `x ⊻ y`, of integers
    BitwiseXor,
    /// `x · 2ʸ`, of integers; 0 where `y` is negative or not below the type's width.
    ShiftLeft,
    /// `⌊x / 2ʸ⌋`, of integers; 0, or -1 of a negative `x`, where `y` is negative or not below the type's width.
    ShiftRight,
}

impl Unary {
    /// Whether every parameter is a finite number: others cannot be written to a plan.
    pub fn has_finite_parameters(self) -> bool {
        use Unary::*;
        match self {
            Swish { alpha } | LeakyRelu { alpha } | Elu { alpha } | Celu { alpha } | ThresholdedRelu { alpha } => {
                alpha.is_finite()
            }
            Selu { alpha: a, gamma: b }
            | HardSigmoid { alpha: a, beta: b }
            | Shrink { bias: a, lambd: b }
            | Clip { min: a, max: b } => a.is_finite() && b.is_finite(),
            _ => true,
        }
    }

    /// Whether the function is defined on `f32`; booleans are then the numbers 0 and 1.
    pub fn takes_f32(self) -> bool {
        !matches!(self, Unary::BitwiseNot)
    }
}

impl Binary {
    /// Whether the function is defined on `f32`; booleans are then the numbers 0 and 1.
    pub fn takes_f32(self) -> bool {
        use Binary::*;
        !matches!(self, BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight)
    }
}
