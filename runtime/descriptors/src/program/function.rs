//! The unary and binary functions by name: one list for the ops of all dtypes and for `f32` programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A function of one element. Parameters are `f32`, like ONNX attributes.
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
        /// The amount that reduces the magnitude.
        bias: f32,
        /// Half the width of the interval that gives zero.
        lambd: f32,
    },
    /// `min(max(x, min), max)`; NaN stays NaN.
    Clip {
        /// The smallest result.
        min: f32,
        /// The largest result; it takes precedence if it is less than `min`.
        max: f32,
    },
    /// True if `x` is NaN
    IsNaN,
    /// True if `x` is infinite and its sign is selected
    IsInf {
        /// Whether `-∞` is selected.
        negative: bool,
        /// Whether `+∞` is selected.
        positive: bool,
    },
    /// `¬x`, for booleans
    Not,
    /// Inverts every bit, for integers
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
    /// `x / y`; integers are rounded toward zero.
    Div,
    /// `x` to the power `y`, in the type of `x`
    Pow,
    /// The remainder with the sign of the divisor `y`, for integers and floats
    Mod,
    /// The remainder with the sign of the dividend `x`, like C's `fmod`
    Fmod,
    /// The smaller one; NaN if either is NaN.
    Min,
    /// The larger one; NaN if either is NaN.
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
    /// `x ∧ y`, for booleans
    And,
    /// `x ∨ y`, for booleans
    Or,
    /// `x ⊻ y`, for booleans
    Xor,
    /// Bitwise `x ∧ y`, for integers
    BitwiseAnd,
    /// Bitwise `x ∨ y`, for integers
    BitwiseOr,
    /// Bitwise `x ⊻ y`, for integers
    BitwiseXor,
    /// `x · 2ʸ`, for integers; 0 if `y` is negative or at least the type's width.
    ShiftLeft,
    /// `⌊x / 2ʸ⌋`, for integers; if `y` is negative or at least the type's width, 0, or -1 for a negative `x`.
    ShiftRight,
}

impl Unary {
    /// Whether every parameter is finite; a plan cannot store other numbers.
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

    /// Whether the function supports `f32`; booleans are the numbers 0 and 1.
    pub fn takes_f32(self) -> bool {
        !matches!(self, Unary::BitwiseNot)
    }
}

impl Binary {
    /// Whether the function supports `f32`; booleans are the numbers 0 and 1.
    pub fn takes_f32(self) -> bool {
        use Binary::*;
        !matches!(self, BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight)
    }
}
