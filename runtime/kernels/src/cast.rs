//! Conversions between element types.
//!
//! Floating point to integer truncates. A number out of range gives the result of x86's conversion, as in onnxruntime:
//! the low bits of the smallest integer of the register's width. Integer to integer keeps the low bits.
//! Conversion to floating point rounds to nearest.

use half::{bf16, f16};

use crate::threads::Threads;

/// Elements per task.
const TASK: usize = 1 << 16;

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

/// An element type to convert to.
pub trait Target: Copy + Send + Sync {
    /// Converts `source`.
    fn from_source<S: Source>(source: S) -> Self;
}

/// Converts the elements of `x`, passed as bytes, and writes them to `out`.
pub type Convert<D> = fn(x: &[u8], out: &mut [D]);

/// `out[i] = x[i]`, converted.
///
/// # Panics
/// The number of elements in `x` differs from that in `out`.
pub fn convert<S: Source, D: Target>(x: &[u8], out: &mut [D]) {
    let x = bytemuck::cast_slice::<u8, S>(x);
    assert_eq!(x.len(), out.len(), "as many out as in");
    for (out, &x) in out.iter_mut().zip(x) {
        *out = D::from_source(x);
    }
}

/// `out = convert(x)`. The elements of `x` are bytes, so that the function is compiled once per result type.
///
/// # Panics
/// The number of elements in `x` differs from that in `out`.
pub fn cast<D: Target>(convert: Convert<D>, x: &[u8], out: &mut [D], threads: &Threads) {
    if out.is_empty() || threads.count() == 1 {
        return convert(x, out);
    }
    let width = x.len() / out.len();
    threads.for_each_chunk(out, TASK, |chunk, out| convert(&x[chunk * TASK * width..][..out.len() * width], out));
}

macro_rules! integers {
    ($($int:ty: $wide:literal from $truncate:ident;)*) => {
        $(
            impl Source for $int {
                const IS_WIDE: bool = $wide;
                fn to_f32(self) -> f32 { self as f32 }
                fn to_f64(self) -> f64 { self as f64 }
                fn to_i32(self) -> i32 { self as i32 }
                fn to_i64(self) -> i64 { self as i64 }
                fn to_u64(self) -> u64 { self as u64 }
                fn is_nonzero(self) -> bool { self != 0 }
            }

            impl Target for $int {
                fn from_source<S: Source>(source: S) -> $int { source.$truncate() as $int }
            }
        )*
    };
}

integers! {
    i8: false from to_i32;
    i16: false from to_i32;
    i32: true from to_i32;
    i64: true from to_i64;
    u8: false from to_i32;
    u16: false from to_i32;
    u32: true from to_i64;
    u64: true from to_u64;
}

macro_rules! floats {
    ($($float:ty: $wide:literal, $f32:expr, $f64:expr, $from:expr;)*) => {
        $(
            impl Source for $float {
                const IS_WIDE: bool = $wide;
                fn to_f32(self) -> f32 { ($f32)(self) }
                fn to_f64(self) -> f64 { ($f64)(self) }
                fn to_i32(self) -> i32 { truncate_i32(self.to_f64()) }
                fn to_i64(self) -> i64 { truncate_i64(self.to_f64()) }
                fn to_u64(self) -> u64 { truncate_u64(self.to_f64()) }
                fn is_nonzero(self) -> bool { self.to_f64() != 0.0 }
            }

            impl Target for $float {
                fn from_source<S: Source>(source: S) -> $float { ($from)(source) }
            }
        )*
    };
}

floats! {
    f16: false, f16::to_f32, f16::to_f64, |s: S| if S::IS_WIDE { f16::from_f32(to_odd(s.to_f64())) } else { f16::from_f32(s.to_f32()) };
    bf16: false, bf16::to_f32, bf16::to_f64, |s: S| if S::IS_WIDE { bf16::from_f32(to_odd(s.to_f64())) } else { bf16::from_f32(s.to_f32()) };
    f32: false, |x| x, f64::from, |s: S| s.to_f32();
    f64: true, |x| x as f32, |x| x, |s: S| s.to_f64();
}

/// Rounds `x` to odd. Rounding the result again, to 16 bits, gives the same as rounding `x` directly.
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    if !near.is_finite() || f64::from(near) == x {
        return near;
    }
    let beyond = u32::from(f64::from(near).abs() > x.abs());
    f32::from_bits((near.to_bits() - beyond) | 1)
}

fn truncate_i32(x: f64) -> i32 {
    if x > -2147483649.0 && x < 2147483648.0 {
        x as i32
    } else {
        i32::MIN
    }
}

fn truncate_i64(x: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&x) {
        x as i64
    } else {
        i64::MIN
    }
}

fn truncate_u64(x: f64) -> u64 {
    if x < 9223372036854775808.0 {
        truncate_i64(x) as u64
    } else {
        x as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<S: Source, D: Target + Default>(x: S) -> D {
        let mut out = [D::default()];
        convert::<S, D>(bytemuck::bytes_of(&x), &mut out);
        out[0]
    }

    #[test]
    fn numbers_out_of_range_wrap_as_on_x86() {
        assert_eq!(one::<f32, i32>(-1.9), -1);
        assert_eq!(one::<f32, i32>(3e9), i32::MIN);
        assert_eq!(one::<f32, i32>(f32::NAN), i32::MIN);
        assert_eq!(one::<f32, u8>(300.0), 44);
        assert_eq!(one::<f32, u8>(-1.0), 255);
        assert_eq!(one::<f64, u32>(-1.0), u32::MAX);
        assert_eq!(one::<f64, i64>(f64::INFINITY), i64::MIN);
        assert_eq!(one::<f64, u64>(1.5e19), 15_000_000_000_000_000_000);
        assert_eq!(one::<i64, i8>(200), -56);
        assert_eq!(one::<u64, f32>(u64::MAX), 18446744073709551615.0);
    }

    #[test]
    fn narrow_floats_round_once() {
        // 1 + 2⁻¹¹ + 2⁻³⁰ is just above the midpoint of two f16 numbers. Rounding to f32 first would give the midpoint.
        assert_eq!(one::<f64, f16>(1.0 + 2f64.powi(-11) + 2f64.powi(-30)).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(one::<i32, f16>(2049), f16::from_f32(2048.0));
        assert_eq!(one::<f32, f16>(1e6), f16::INFINITY);
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let x: Vec<i64> = (0..200_000).collect();
        let mut out = [vec![0f32; x.len()], vec![0f32; x.len()]];
        for (count, out) in (1..).zip(&mut out) {
            cast(convert::<i64, f32>, bytemuck::cast_slice(&x), out, &Threads::new(count).expect("threads"));
        }
        assert!(out[0] == out[1] && out[0][199_999] == 199_999.0);
    }
}
