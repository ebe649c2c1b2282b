//! Linear quantization of floats to small integers, and back.
//!
//! `q = clamp(round(x ÷ scale) + zero, low, high)`, ties to even; `x = (q − zero)·scale`. Source:
//! [ONNX QuantizeLinear](https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html).

use crate::isa::Isa;
use crate::lane_loops::per_isa;

/// An integer type that stores codes.
pub trait Code: Copy + Send + Sync {
    /// Converts a number in range to a code.
    fn from_i32(code: i32) -> Self;
    /// The code as a number.
    fn to_i32(self) -> i32;
}

macro_rules! codes {
    ($($int:ty)*) => {
        $(impl Code for $int {
            #[inline(always)]
            fn from_i32(code: i32) -> $int { code as $int }

            #[inline(always)]
            fn to_i32(self) -> i32 { self as i32 }
        })*
    };
}

codes! { i8 u8 i16 u16 i32 }

/// The quantization parameters of a run of elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The difference between two codes.
    pub scale: f32,
    /// The code of zero.
    pub zero: i32,
    /// The smallest code.
    pub low: i32,
    /// The largest code.
    pub high: i32,
}

/// Quantizes `x`. NaN becomes the smallest code.
///
/// # Panics
/// The lengths differ.
pub fn quantize<C: Code>(isa: Isa, x: &[f32], by: Scale, out: &mut [C]) {
    assert_eq!(x.len(), out.len(), "as many out as in");
    quantize_all(isa, x, by, out);
}

/// Dequantizes `codes`.
///
/// # Panics
/// The lengths differ.
pub fn dequantize<C: Code>(isa: Isa, codes: &[C], by: Scale, out: &mut [f32]) {
    assert_eq!(codes.len(), out.len(), "as many out as in");
    dequantize_all(isa, codes, by, out);
}

/// Returns the smallest and the largest number of `x`, with zero included; ignores NaN.
pub fn range(x: &[f32]) -> (f32, f32) {
    x.iter().fold((0f32, 0f32), |(low, high), &x| (low.min(x), high.max(x)))
}

per_isa! {
    fn quantize_all<C: Code>(x: &[f32], by: Scale, out: &mut [C]) where FMA {
        let (low, high) = ((by.low - by.zero) as f32, (by.high - by.zero) as f32);
        for (out, &x) in out.iter_mut().zip(x) {
            // the comparison is false for NaN
            let code = (x / by.scale).round_ties_even();
            let code = if code > low { code } else { low };
            let code = if code < high { code } else { high };
            // SAFETY: `code` is between two `i32`.
            *out = C::from_i32(unsafe { code.to_int_unchecked::<i32>() } + by.zero);
        }
    }
}

per_isa! {
    fn dequantize_all<C: Code>(codes: &[C], by: Scale, out: &mut [f32]) where FMA {
        for (out, &code) in out.iter_mut().zip(codes) {
            *out = code.to_i32().wrapping_sub(by.zero) as f32 * by.scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_agree_with_the_definition() {
        let x: Vec<f32> =
            (-500..500).map(|i| i as f32 * 0.37).chain([f32::NAN, f32::INFINITY, -1e30, 0.5, 1.5]).collect();
        let by = Scale { scale: 0.5, zero: 3, low: -128, high: 127 };
        for isa in Isa::available() {
            let mut codes = vec![0i8; x.len()];
            quantize(isa, &x, by, &mut codes);
            for (&x, &code) in x.iter().zip(&codes) {
                let rounded = (f64::from(x) / 0.5).round_ties_even() + 3.0;
                let expected = if x.is_nan() { -128.0 } else { rounded.clamp(-128.0, 127.0) };
                assert_eq!(f64::from(code), expected, "{x} at {isa:?}");
            }
            let mut back = vec![0f32; x.len()];
            dequantize(isa, &codes, by, &mut back);
            assert!(back.iter().zip(&codes).all(|(back, &code)| *back == (f32::from(code) - 3.0) * 0.5));
        }
    }

    #[test]
    fn range_holds_zero() {
        assert_eq!(range(&[1.0, 2.0]), (0.0, 2.0));
        assert_eq!(range(&[-3.0, f32::NAN]), (-3.0, 0.0));
    }
}
