//! Conversions between element types.
//!
//! Floating point to integer truncates. A number out of range gives the result of x86's conversion, as in onnxruntime:
//! the low bits of the smallest integer of the register's width. Integer to integer keeps the low bits.
//! Conversion to floating point rounds to nearest.

pub use candle_plan_descriptors::cast::Source;
use half::{bf16, f16};

use crate::isa::Isa;
use crate::threads::Threads;
use crate::vector::Half;

/// Elements per task.
const TASK: usize = 1 << 16;

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

/// `out[i] = x[i]`, converted exactly.
///
/// # Panics
/// The number of elements in `x` differs from that in `out`.
pub fn widen<H: Half>(x: &[u8], out: &mut [f32]) {
    H::widen(Isa::get(), bytemuck::cast_slice(x), out);
}

/// `out[i] = x[i]`, rounded to nearest.
///
/// # Panics
/// The number of elements in `x` differs from that in `out`.
pub fn narrow<H: Half>(x: &[u8], out: &mut [H]) {
    H::narrow(Isa::get(), bytemuck::cast_slice(x), out);
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
    ($($int:ty: $truncate:ident;)*) => {
        $(
            impl Target for $int {
                fn from_source<S: Source>(source: S) -> $int { source.$truncate() as $int }
            }
        )*
    };
}

integers! {
    i8: to_i32;
    i16: to_i32;
    i32: to_i32;
    i64: to_i64;
    u8: to_i32;
    u16: to_i32;
    u32: to_i64;
    u64: to_u64;
}

macro_rules! floats {
    ($($float:ty: $from:expr;)*) => {
        $(
            impl Target for $float {
                fn from_source<S: Source>(source: S) -> $float { ($from)(source) }
            }
        )*
    };
}

floats! {
    f16: |s: S| if S::IS_WIDE { f16::from_f32(to_odd(s.to_f64())) } else { f16::from_f32(s.to_f32()) };
    bf16: |s: S| if S::IS_WIDE { bf16::from_f32(to_odd(s.to_f64())) } else { bf16::from_f32(s.to_f32()) };
    f32: |s: S| s.to_f32();
    f64: |s: S| s.to_f64();
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
