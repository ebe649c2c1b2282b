//! Loops over fixed numbers of lanes, which the compiler turns into vector instructions, and the macro that compiles such
//! a loop once per instruction set.
//!
//! A sum runs in [`LANES`] interleaved partial sums that are joined pairwise: the same order for every instruction set
//! and every number of threads.

use crate::reduce::Number;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// The number of partial results that a fold keeps: four 512-bit vectors of `f32`, enough to hide an addition's latency.
pub(crate) const LANES: usize = 64;

/// Compiles a function once for each level of [`Isa`](crate::isa::Isa), and adds a first parameter that chooses.
///
/// The body may use the constant `FMA`: whether a multiplication and an addition fuse into one instruction. After
/// `up to (LEVEL)`, a constant, there is no code for the levels above, which run that of `LEVEL`: for types that few
/// models use.
macro_rules! per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)?
     ($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)? where FMA $body:block) => {
        per_isa! {
            $(#[$meta])* $vis fn $name $(<$($generic: $bound),+>)?
            ($($arg: $kind),*) $(-> $result)? where FMA up to ($crate::isa::Isa::Avx512) $body
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)?
     ($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)? where FMA up to ($widest:expr) $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name $(<$($generic: $bound),+>)? (isa: $crate::isa::Isa, $($arg: $kind),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
            fn body<$($($generic: $bound,)+)? const FMA: bool>($($arg: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2 $(<$($generic: $bound),+>)? ($($arg: $kind),*) $(-> $result)? {
                body::<$($($generic,)+)? true>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
            fn avx512 $(<$($generic: $bound),+>)? ($($arg: $kind),*) $(-> $result)? {
                body::<$($($generic,)+)? true>($($arg),*)
            }

            // What is behind a constant condition that does not hold is not compiled.
            #[cfg(target_arch = "x86_64")]
            match isa.min($crate::isa::Isa::widest()).min($widest) {
                $crate::isa::Isa::Scalar => {}
                $crate::isa::Isa::Avx2 => {
                    if const { $widest as u8 >= $crate::isa::Isa::Avx2 as u8 } {
                        // SAFETY: the level is not above the widest that the processor was found to have.
                        return unsafe { avx2 $(::<$($generic),+>)? ($($arg),*) };
                    }
                }
                $crate::isa::Isa::Avx512 => {
                    if const { $widest as u8 >= $crate::isa::Isa::Avx512 as u8 } {
                        // SAFETY: as above.
                        return unsafe { avx512 $(::<$($generic),+>)? ($($arg),*) };
                    }
                }
            }
            body::<$($($generic,)+)? false>($($arg),*)
        }
    };
}
pub(crate) use per_isa;

/// Folds a slice in [`LANES`] partial results (fewer for a short slice), joined pairwise.
#[inline(always)]
pub(crate) fn fold<T: Copy, A: Copy>(
    x: &[T],
    start: A,
    step: impl Fn(A, T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) -> A {
    match x.len() {
        0..16 => fold_lanes::<T, A, 1>(x, start, step, join),
        16..128 => fold_lanes::<T, A, 16>(x, start, step, join),
        _ => fold_lanes::<T, A, LANES>(x, start, step, join),
    }
}

#[inline(always)]
fn fold_lanes<T: Copy, A: Copy, const W: usize>(
    x: &[T],
    start: A,
    step: impl Fn(A, T) -> A,
    join: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [start; W];
    let mut blocks = x.chunks_exact(W);
    for block in &mut blocks {
        for (lane, &value) in lanes.iter_mut().zip(block) {
            *lane = step(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(blocks.remainder()) {
        *lane = step(*lane, value);
    }
    let mut width = W / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] = join(lanes[k], lanes[k + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The floating-point types that kernels compute in.
pub trait Real:
    Number
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
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
    /// eˣ for `x ≤ 0`, in a form that the compiler vectorises for `f32`; 0 where that is subnormal.
    fn exp_of_nonpositive<const FMA: bool>(self) -> Self;
    /// The larger of the two; either where one is not a number.
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
    ($real:ident, |$x:ident| $exp:expr) => {
        impl Real for $real {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
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
        }
    };
}

real!(f64, |x| x.exp());
real!(f32, |x| exp_of_nonpositive::<FMA>(x));

/// eˣ within 2 ULP for `x ≤ 0`: x = n·ln 2 + r with |r| ≤ ln 2 / 2, a polynomial in r, and n added to the exponent.
///
/// No branches, so that a loop of it vectorises. A result below 2⁻¹²⁶ is 0, which saves the handling of subnormals.
#[inline(always)]
fn exp_of_nonpositive<const FMA: bool>(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: adding it leaves the nearest integer in the low bits
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // (eʳ − 1 − r) / r², the polynomial of least greatest error.
    const TERMS: [f32; 5] = [1.381_455_2e-3, 8.368_711e-3, 4.166_839e-2, 0.166_665_21, 0.499_999_94];
    // Here 2ⁿ becomes 0. A comparison, so that a NaN passes through.
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

/// The first `W` elements, or all and `pad` for the rest.
#[inline(always)]
pub(crate) fn load<R: Copy, const W: usize>(x: &[R], pad: R) -> [R; W] {
    match x.first_chunk() {
        Some(block) => *block,
        None => {
            let mut block = [pad; W];
            for (lane, &v) in block.iter_mut().zip(x) {
                *lane = v;
            }
            block
        }
    }
}

/// Writes the lanes that `y` has room for.
#[inline(always)]
pub(crate) fn store<R: Copy, const W: usize>(block: [R; W], y: &mut [R]) {
    match y.first_chunk_mut() {
        Some(target) => *target = block,
        None => {
            for (target, v) in y.iter_mut().zip(block) {
                *target = v;
            }
        }
    }
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

    #[test]
    fn a_fold_takes_every_element_once() {
        for len in [0, 1, 31, 32, 63, 64, 65, 200] {
            let x: Vec<u64> = (0..len).collect();
            assert_eq!(fold(&x, 0, |a, v| a + v, |a, b| a + b), x.iter().sum::<u64>(), "{len} elements");
        }
    }
}
