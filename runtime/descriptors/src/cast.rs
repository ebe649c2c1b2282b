//! The element types that casts convert from.
//!
//! Floating point to integer truncates. A number out of range gives the result of x86's conversion, as in onnxruntime:
//! the low bits of the smallest integer of the register's width.

use half::{bf16, f16};

/// An element type to convert from.
pub trait Source: bytemuck::Pod {
    /// Whether some values do not fit in `f32`. Such types are converted to narrower floats with [`Source::to_f64`].
    const IS_WIDE: bool;
    /// The nearest `f32`.
    fn to_f32(self) -> f32;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
    /// Truncated to 32 bits.
    fn to_i32(self) -> i32;
    /// Truncated to 64 bits.
    fn to_i64(self) -> i64;
    /// Truncated to 64 bits, unsigned.
    fn to_u64(self) -> u64;
    /// Whether it is not zero.
    fn is_nonzero(self) -> bool;
}

macro_rules! integers {
    ($($int:ty: $wide:literal;)*) => {
        $(
            impl Source for $int {
                const IS_WIDE: bool = $wide;
                #[inline]
                fn to_f32(self) -> f32 { self as f32 }
                #[inline]
                fn to_f64(self) -> f64 { self as f64 }
                #[inline]
                fn to_i32(self) -> i32 { self as i32 }
                #[inline]
                fn to_i64(self) -> i64 { self as i64 }
                #[inline]
                fn to_u64(self) -> u64 { self as u64 }
                #[inline]
                fn is_nonzero(self) -> bool { self != 0 }
            }
        )*
    };
}

integers! {
    i8: false;
    i16: false;
    i32: true;
    i64: true;
    u8: false;
    u16: false;
    u32: true;
    u64: true;
}

macro_rules! floats {
    ($($float:ty: $wide:literal, $f32:expr, $f64:expr;)*) => {
        $(
            impl Source for $float {
                const IS_WIDE: bool = $wide;
                #[inline]
                fn to_f32(self) -> f32 { ($f32)(self) }
                #[inline]
                fn to_f64(self) -> f64 { ($f64)(self) }
                #[inline]
                fn to_i32(self) -> i32 { truncate_i32(self.to_f64()) }
                #[inline]
                fn to_i64(self) -> i64 { truncate_i64(self.to_f64()) }
                #[inline]
                fn to_u64(self) -> u64 { truncate_u64(self.to_f64()) }
                #[inline]
                fn is_nonzero(self) -> bool { self.to_f64() != 0.0 }
            }
        )*
    };
}

floats! {
    f16: false, f16::to_f32, f16::to_f64;
    bf16: false, bf16::to_f32, bf16::to_f64;
    f32: false, |x| x, f64::from;
    f64: true, |x| x as f32, |x| x;
}

#[inline]
fn truncate_i32(x: f64) -> i32 {
    if x > -2147483649.0 && x < 2147483648.0 {
        x as i32
    } else {
        i32::MIN
    }
}

#[inline]
fn truncate_i64(x: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&x) {
        x as i64
    } else {
        i64::MIN
    }
}

#[inline]
fn truncate_u64(x: f64) -> u64 {
    if x < 9223372036854775808.0 {
        truncate_i64(x) as u64
    } else {
        x as u64
    }
}
