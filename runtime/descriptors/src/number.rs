//! Conversions and arithmetic of element types.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// Element types that convert from and to `f64`.
pub trait Number: Copy {
    /// Converts a number to the nearest element; integers truncate and saturate.
    fn from_f64(value: f64) -> Self;

    /// Converts to the nearest `f64`.
    fn to_f64(self) -> f64;
}

/// The floating-point types that kernels compute in, with their arithmetic.
pub trait Arithmetic:
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
}

macro_rules! numbers {
    ($($number:ident)*) => {
        $(impl Number for $number {
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation)]
            fn from_f64(value: f64) -> $number {
                value as $number
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        })*
    };
}

numbers! { f32 f64 i32 i64 u32 u64 }

impl Arithmetic for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}

impl Arithmetic for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}
