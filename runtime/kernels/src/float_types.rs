//! The floating-point types that kernels compute in, and their exponential.

use candle_plan_descriptors::number::Arithmetic;

use crate::reduce::Summed;
use crate::rewrite::Rewrite;

/// The floating-point types that kernels compute in.
pub trait Real: Arithmetic + Summed {
    /// −∞.
    const NEG_INFINITY: Self;
    /// √x.
    fn sqrt(self) -> Self;
    /// ln x.
    fn ln(self) -> Self;
    /// xᵖ.
    fn powf(self, p: Self) -> Self;
    /// |x|.
    fn abs(self) -> Self;
    /// tanh x.
    fn tanh(self) -> Self;
    /// `x · y + z`, rounded once where `FMA`.
    fn mul_add<const FMA: bool>(self, y: Self, z: Self) -> Self;
    /// eˣ for `x ≤ 0`, which the compiler vectorizes for `f32`; 0 if the result is subnormal.
    fn exp_of_nonpositive<const FMA: bool>(self) -> Self;
    /// Returns the elements as `f32`, if they have this type.
    fn singles<'a>(x: &'a mut Rewrite<'_, Self>) -> Option<Rewrite<'a, f32>>;
    /// Returns the larger of the two; either of them if one is NaN.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other {
            self
        } else {
            other
        }
    }
}

macro_rules! real {
    ($real:ident, |$x:ident| $exp:expr, |$rewrite:ident| $singles:expr) => {
        impl Real for $real {
            const NEG_INFINITY: Self = $real::NEG_INFINITY;
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn ln(self) -> Self {
                self.ln()
            }
            #[inline(always)]
            fn powf(self, p: Self) -> Self {
                self.powf(p)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                self.tanh()
            }
            #[inline(always)]
            fn mul_add<const FMA: bool>(self, y: Self, z: Self) -> Self {
                // Without the instruction, a fused multiplication is a slow library call.
                if FMA {
                    self.mul_add(y, z)
                } else {
                    self * y + z
                }
            }
            #[inline(always)]
            fn exp_of_nonpositive<const FMA: bool>(self) -> Self {
                let $x = self;
                $exp
            }
            #[inline(always)]
            fn singles<'a>($rewrite: &'a mut Rewrite<'_, Self>) -> Option<Rewrite<'a, f32>> {
                $singles
            }
        }
    };
}

real!(f64, |x| x.exp(), |_x| None);
real!(f32, |x| exp_of_nonpositive::<FMA>(x), |x| Some(x.part(0, x.len())));

/// eˣ within 2 ULP for `x ≤ 0`: x = n·ln 2 + r with |r| ≤ ln 2 / 2, a polynomial in r, and n added to the exponent.
///
/// There are no branches, so a loop over it vectorizes. A result below 2⁻¹²⁶ is 0, which avoids subnormal numbers.
#[inline(always)]
fn exp_of_nonpositive<const FMA: bool>(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: adding it leaves the nearest integer in the low bits
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // The minimax polynomial of (eʳ − 1 − r) / r².
    const TERMS: [f32; 5] = [1.381_455_2e-3, 8.368_711e-3, 4.166_839e-2, 0.166_665_21, 0.499_999_94];
    // At −88.3, 2ⁿ becomes 0. This is a comparison, so that NaN stays NaN.
    let x = if x < -88.3 { -88.3 } else { x };
    let shifted = Real::mul_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = Real::mul_add::<FMA>(n, -LN2_LOW, Real::mul_add::<FMA>(n, -LN2_HIGH, x));
    let mut p = TERMS[0];
    p = Real::mul_add::<FMA>(p, r, TERMS[1]);
    p = Real::mul_add::<FMA>(p, r, TERMS[2]);
    p = Real::mul_add::<FMA>(p, r, TERMS[3]);
    p = Real::mul_add::<FMA>(p, r, TERMS[4]);
    p = Real::mul_add::<FMA>(p, r, 1.0);
    p = Real::mul_add::<FMA>(p, r, 1.0);
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    p * f32::from_bits(exponent.wrapping_shl(23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_ulp() {
        for step in -87_330..=0 {
            let x = step as f32 * 1e-3;
            let exact = f64::from(x).exp();
            let ulp = f64::from((exact as f32).next_up()) - f64::from(exact as f32);
            for found in [exp_of_nonpositive::<true>(x), exp_of_nonpositive::<false>(x)] {
                assert!((f64::from(found) - exact).abs() <= 2.0 * ulp, "exp({x}) = {found}, not {exact}");
            }
        }
    }

    #[test]
    fn exp_has_the_limits_of_exp() {
        for x in [f32::NEG_INFINITY, f32::MIN, -1e4, -104.0, -88.3] {
            assert_eq!(exp_of_nonpositive::<true>(x), 0.0, "exp({x})");
        }
        assert_eq!(exp_of_nonpositive::<true>(-0.0), 1.0);
        assert!(exp_of_nonpositive::<true>(f32::NAN).is_nan());
    }
}
