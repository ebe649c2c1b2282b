//! Elementwise functions of codes, and their means.

use super::codes::{Codes, SIGN};
use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::scratch::Scratch;

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `a + b`
    Add,
    /// `a · b`
    Mul,
}

/// `clamp(round(x ÷ scale) + zero, low, high)`, ties to even; `low` if `x` is NaN.
#[derive(Debug, Clone, Copy)]
pub struct Quantize {
    /// The difference between two codes.
    pub scale: f32,
    /// The code that represents 0.
    pub zero: i32,
    /// The smallest code.
    pub low: i32,
    /// The largest code.
    pub high: i32,
}

/// Adding it to a number below 2²² rounds that to the nearest integer, ties to even, and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³

/// Computes the codes of `f((a − a.zero) · scales[0], (b − b.zero) · scales[1])`.
///
/// # Panics
/// The lengths differ.
pub fn binary(isa: Isa, function: Function, a: Codes, b: Codes, scales: [f32; 2], by: Quantize, out: &mut [u8]) {
    assert!(a.bits.len() == out.len() && b.bits.len() == out.len(), "as many out as in");
    // as unsigned bytes with adjusted zero points
    let [flip_a, flip_b] = [a, b].map(|codes| if codes.signed { SIGN } else { 0 });
    let zeros = [a.zero + i32::from(flip_a), b.zero + i32::from(flip_b)];
    match function {
        Function::Add => add(isa, a.bits, b.bits, [flip_a, flip_b], zeros, scales, by, out),
        Function::Mul => mul(isa, a.bits, b.bits, [flip_a, flip_b], zeros, scales, by, out),
    }
}

macro_rules! binary {
    ($($name:ident: $x:ident $op:tt $y:ident;)*) => {$(
        per_isa! {
            fn $name(a: &[u8], b: &[u8], flip: [u8; 2], zeros: [i32; 2], scales: [f32; 2], by: Quantize, out: &mut [u8])
            where FMA {
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    let $x = (i32::from(a ^ flip[0]) - zeros[0]) as f32 * scales[0];
                    let $y = (i32::from(b ^ flip[1]) - zeros[1]) as f32 * scales[1];
                    *out = code(($x $op $y) / by.scale, by);
                }
            }
        }
    )*};
}

binary! { add: x + y; mul: x * y; }

/// The bits of a quotient's code.
#[inline(always)]
fn code(x: f32, by: Quantize) -> u8 {
    let (low, high) = ((by.low - by.zero) as f32, (by.high - by.zero) as f32);
    // the comparison is false for NaN
    let x = if x > low { x } else { low };
    let x = if x < high { x } else { high };
    ((x + ROUND).to_bits() as u8).wrapping_add(by.zero as u8)
}

/// Looks up the bits of each code: `out[i] = table[x[i]]`.
///
/// # Panics
/// The lengths differ.
pub fn look_up(table: &[u8; 256], x: &[u8], out: &mut [u8]) {
    assert_eq!(x.len(), out.len(), "as many out as in");
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = table[usize::from(x)]);
}

/// Computes the codes of the means over rows. `x` is `[rows, channels]`, `out` is `[channels]`, and `by.scale` is the
/// scale of the result divided by that of `x`.
///
/// # Panics
/// The lengths do not fit, or there are no rows.
pub fn mean(isa: Isa, x: Codes, by: Quantize, out: &mut [u8]) {
    let rows = x.bits.len().checked_div(out.len()).unwrap_or(1);
    assert!(rows > 0 && rows * out.len() == x.bits.len(), "whole rows");
    let flip = if x.signed { SIGN } else { 0 };
    let nothing = -i64::from(x.zero + i32::from(flip)) * rows as i64;
    let mut sums = Scratch::filled(nothing, out.len());
    for rows in x.bits.chunks(MOST * out.len().max(1)) {
        let mut part = Scratch::filled(0, out.len());
        add_rows(isa, rows, flip, &mut part);
        sums.iter_mut().zip(part.iter()).for_each(|(sum, &part)| *sum += i64::from(part));
    }
    for (out, &sum) in out.iter_mut().zip(sums.iter()) {
        *out = code(sum as f32 / (rows as f32 * by.scale), by);
    }
}

/// The maximum number of codes whose sum fits in 32 bits.
const MOST: usize = (u32::MAX / 255) as usize;

per_isa! {
    fn add_rows(x: &[u8], flip: u8, sums: &mut [u32]) where FMA {
        for row in x.chunks_exact(sums.len().max(1)) {
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum += u32::from(x ^ flip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: Quantize = Quantize { scale: 0.7, zero: -20, low: -128, high: 100 };

    fn expected(x: f32, scale: f32) -> u8 {
        ((f64::from(x / scale).round_ties_even() - 20.0).clamp(-128.0, 100.0) as i32) as u8
    }

    #[test]
    fn pairs_of_codes_are_numbers_in_between() {
        let a: Vec<u8> = (0..=255).collect();
        let b: Vec<u8> = (0..=255u8).map(|i| i.wrapping_mul(37)).collect();
        for isa in Isa::available() {
            for (function, of) in
                [(Function::Add, (|x, y| x + y) as fn(f32, f32) -> f32), (Function::Mul, |x, y| x * y)]
            {
                let mut out = vec![0; 256];
                let left = Codes { bits: &a, signed: true, zero: 5 };
                let right = Codes { bits: &b, signed: false, zero: 100 };
                binary(isa, function, left, right, [0.3, 0.25], BY, &mut out);
                for i in 0..256 {
                    let (x, y) = ((f32::from(a[i] as i8) - 5.0) * 0.3, (f32::from(b[i]) - 100.0) * 0.25);
                    assert_eq!(out[i], expected(of(x, y), 0.7), "{function:?} {i} at {isa:?}");
                }
            }
        }
    }

    #[test]
    fn means_and_tables() {
        let x: Vec<u8> = (0..100u8).map(|i| i.wrapping_mul(91)).collect();
        for isa in Isa::available() {
            let mut out = vec![0; 20];
            mean(isa, Codes { bits: &x, signed: true, zero: 3 }, BY, &mut out);
            for (c, &out) in out.iter().enumerate() {
                let sum: i32 = (0..5).map(|row| i32::from(x[row * 20 + c] as i8) - 3).sum();
                assert_eq!(out, expected(sum as f32, 5.0 * 0.7), "{c} at {isa:?}");
            }
        }
        let (large, mut out) = (vec![255; MOST + 7], [0]);
        mean(Isa::get(), Codes { bits: &large, signed: false, zero: 250 }, BY, &mut out);
        assert_eq!(out[0], expected(5.0, 0.7), "sums of more than 32 bits");
        let table: [u8; 256] = std::array::from_fn(|i| 255 - i as u8);
        let mut out = vec![0; 100];
        look_up(&table, &x, &mut out);
        assert!(out.iter().zip(&x).all(|(out, x)| *out == 255 - x));
    }
}
