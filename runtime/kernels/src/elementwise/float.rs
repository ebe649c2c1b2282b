//! Functions of `f64`, one element at a time.

use super::{OperandPair, Undefined};
use crate::program::{floor_mod, Binary, Unary};

/// `function(x)`; booleans are 0 and 1.
pub fn unary(function: Unary, x: f64) -> f64 {
    match function {
        Unary::Abs => x.abs(),
        Unary::Neg => -x,
        Unary::Sign if x > 0.0 => 1.0,
        Unary::Sign if x < 0.0 => -1.0,
        Unary::Sign => x,
        Unary::Ceil => x.ceil(),
        Unary::Floor => x.floor(),
        Unary::Round => x.round_ties_even(),
        Unary::Sqrt => x.sqrt(),
        Unary::Reciprocal => 1.0 / x,
        Unary::Square => x * x,
        Unary::Exp => x.exp(),
        Unary::Log => x.ln(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Asin => x.asin(),
        Unary::Acos => x.acos(),
        Unary::Atan => x.atan(),
        Unary::Sinh => x.sinh(),
        Unary::Cosh => x.cosh(),
        Unary::Tanh => x.tanh(),
        Unary::Asinh => x.asinh(),
        Unary::Acosh => x.acosh(),
        Unary::Atanh => x.atanh(),
        Unary::Erf => libm::erf(x),
        Unary::IsNaN => truth(x.is_nan()),
        Unary::IsInf { negative, positive } => truth(x.is_infinite() && if x < 0.0 { negative } else { positive }),
        Unary::Not => truth(x == 0.0),
        Unary::BitwiseNot => -1.0 - x,
        activation => activate(activation, x),
    }
}

/// Activation functions; any other function is the identity.
fn activate(function: Unary, x: f64) -> f64 {
    let wide = f64::from;
    match function {
        Unary::Sigmoid => sigmoid(x),
        Unary::Softplus => softplus(x),
        Unary::Softsign => x / (1.0 + x.abs()),
        Unary::HardSwish => x * hard_sigmoid(x, 1.0 / 6.0, 0.5),
        Unary::Mish => x * softplus(x).tanh(),
        Unary::Gelu => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Unary::GeluTanh => 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh()),
        Unary::Swish { alpha } => x * sigmoid(wide(alpha) * x),
        Unary::Relu if x < 0.0 => 0.0,
        Unary::LeakyRelu { alpha } if x < 0.0 => wide(alpha) * x,
        Unary::Elu { alpha } => elu(x, wide(alpha)),
        Unary::Selu { alpha, gamma } => wide(gamma) * elu(x, wide(alpha)),
        Unary::Celu { alpha } if x < 0.0 => wide(alpha) * (x / wide(alpha)).exp_m1(),
        Unary::HardSigmoid { alpha, beta } => hard_sigmoid(x, wide(alpha), wide(beta)),
        Unary::ThresholdedRelu { alpha } if x <= wide(alpha) || x.is_nan() => 0.0,
        Unary::Shrink { bias, lambd } if x < -wide(lambd) => x + wide(bias),
        Unary::Shrink { bias, lambd } if x > wide(lambd) => x - wide(bias),
        Unary::Shrink { .. } if !x.is_nan() => 0.0,
        Unary::Clip { min, max } => clip(x, wide(min), wide(max)),
        _ => x,
    }
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 {
        e / (1.0 + e)
    } else {
        1.0 / (1.0 + e)
    }
}

fn softplus(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else {
        x.max(0.0) + (-x.abs()).exp().ln_1p()
    }
}

fn elu(x: f64, alpha: f64) -> f64 {
    if x < 0.0 {
        alpha * x.exp_m1()
    } else {
        x
    }
}

fn hard_sigmoid(x: f64, alpha: f64, beta: f64) -> f64 {
    clip(alpha * x + beta, 0.0, 1.0)
}

fn clip(x: f64, min: f64, max: f64) -> f64 {
    let raised = if min > x { min } else { x };
    if max < raised {
        max
    } else {
        raised
    }
}

/// `out = function(x, y)`
///
/// # Errors
/// The function is not defined for `f64`, or is a comparison.
pub fn binary(function: Binary, operands: OperandPair<f64>, out: &mut [f64]) -> Result<(), Undefined> {
    match function {
        Binary::Add => operands.map(out, |x, y| x + y),
        Binary::Sub => operands.map(out, |x, y| x - y),
        Binary::Mul => operands.map(out, |x, y| x * y),
        Binary::Div => operands.map(out, |x, y| x / y),
        Binary::Min => operands.map(out, |x, y| if x.is_nan() || x < y { x } else { y }),
        Binary::Max => operands.map(out, |x, y| if x.is_nan() || x > y { x } else { y }),
        Binary::PRelu => operands.map(out, |x, y| if x < 0.0 { x * y } else { x }),
        _ => operands.map(out, slow(function).ok_or(Undefined::Function)?),
    }
    Ok(())
}

/// The functions that call a library. They are function pointers, so that the loop is compiled once.
fn slow(function: Binary) -> Option<fn(f64, f64) -> f64> {
    match function {
        Binary::Pow => Some(f64::powf),
        Binary::Mod => Some(floor_mod),
        Binary::Fmod => Some(|x, y| x % y),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_and_single_precision_agree() {
        use Unary::*;
        let plain = [
            Abs, Neg, Sign, Ceil, Floor, Round, Sqrt, Reciprocal, Square, Exp, Log, Sin, Cos, Tan, Asin, Acos, Atan,
            Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Sigmoid, Relu, Softplus, Softsign, HardSwish, Mish, Gelu,
            GeluTanh, IsNaN, Not,
        ];
        let with_parameters = [
            Swish { alpha: 1.7 },
            LeakyRelu { alpha: 0.1 },
            Elu { alpha: 1.5 },
            Selu { alpha: 1.7, gamma: 1.05 },
            Celu { alpha: 2.0 },
            HardSigmoid { alpha: 0.2, beta: 0.5 },
            ThresholdedRelu { alpha: 0.5 },
            Shrink { bias: 0.25, lambd: 0.5 },
            Clip { min: -0.5, max: 1.5 },
            IsInf { negative: false, positive: true },
        ];
        let mut x: Vec<f32> = (-4000..4000).map(|i| i as f32 * 0.0023).collect();
        x.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 1e-30]);
        for function in plain.into_iter().chain(with_parameters) {
            let mut out = vec![0.0; x.len()];
            crate::program::unary(crate::isa::Isa::get(), function, &x, &mut out);
            for (&x, &y) in x.iter().zip(&out) {
                let exact = unary(function, f64::from(x));
                let close = (f64::from(y) - exact).abs() <= 4e-7 * exact.abs().max(f64::from(x.abs()).min(1.0));
                let same = exact as f32 == y || exact.is_nan() && y.is_nan();
                assert!(close || same, "{function:?}({x:e}) = {y:e}, not {exact:e}");
            }
        }
    }
}
