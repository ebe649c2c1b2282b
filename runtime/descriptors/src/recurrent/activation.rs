//! The activation functions of gates and states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An activation function.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Activation {
    /// `α·x + β`
    Affine(f32, f32),
    /// `x` if positive, else `α·(eˣ − 1)`
    Elu(f32),
    /// `max(0, min(1, α·x + β))`
    HardSigmoid(f32, f32),
    /// `x` if not negative, else `α·x`
    LeakyRelu(f32),
    /// `max(0, x)`
    Relu,
    /// `α·tanh(β·x)`
    ScaledTanh(f32, f32),
    /// `1 / (1 + e⁻ˣ)`
    Sigmoid,
    /// `ln(1 + eˣ)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `tanh x`
    Tanh,
    /// `x` if `x > α`, else 0
    ThresholdedRelu(f32),
}

impl Activation {
    /// Applies the function to `x`.
    #[inline]
    pub fn of(self, x: f64) -> f64 {
        let wide = f64::from;
        match self {
            Activation::Affine(a, b) => wide(a) * x + wide(b),
            Activation::Elu(a) if x < 0.0 => wide(a) * x.exp_m1(),
            Activation::HardSigmoid(a, b) => (wide(a) * x + wide(b)).clamp(0.0, 1.0),
            Activation::LeakyRelu(a) if x < 0.0 => wide(a) * x,
            Activation::Relu if x < 0.0 => 0.0,
            Activation::ScaledTanh(a, b) => wide(a) * (wide(b) * x).tanh(),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Activation::Softsign => x / (1.0 + x.abs()),
            Activation::Tanh => x.tanh(),
            Activation::ThresholdedRelu(a) if x <= wide(a) => 0.0,
            _ => x,
        }
    }
}
