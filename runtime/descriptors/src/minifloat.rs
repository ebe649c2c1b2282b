//! Floating-point numbers of 8, 6 and 4 bits, and their conversion to and from `f32`.
//!
//! Source: the formats' papers (OCP 8-bit floating point, OCP microscaling formats) and
//! [ONNX Cast](https://onnx.ai/onnx/operators/onnx__Cast.html).

/// How a format stores values that are not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Infinities and NaNs have the largest exponent, as in IEEE 754.
    Ieee,
    /// No infinity; NaN has all bits set except the sign.
    AllOnes,
    /// No infinity and no negative zero; the code of negative zero is NaN.
    NegativeZero,
    /// Every code is a finite number.
    Finite,
}

/// A format. From the highest bit: sign, exponent, mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the mantissa.
    pub mantissa: u32,
    /// The exponent bias.
    pub bias: i32,
    /// How values that are not finite are stored.
    pub special: Special,
}

/// `float8_e4m3fn`.
pub const E4M3FN: Format = Format { exponent: 4, mantissa: 3, bias: 7, special: Special::AllOnes };
/// `float8_e4m3fnuz`.
pub const E4M3FNUZ: Format = Format { exponent: 4, mantissa: 3, bias: 8, special: Special::NegativeZero };
/// `float8_e5m2`.
pub const E5M2: Format = Format { exponent: 5, mantissa: 2, bias: 15, special: Special::Ieee };
/// `float8_e5m2fnuz`.
pub const E5M2FNUZ: Format = Format { exponent: 5, mantissa: 2, bias: 16, special: Special::NegativeZero };
/// `float4_e2m1fn`.
pub const E2M1FN: Format = Format { exponent: 2, mantissa: 1, bias: 1, special: Special::Finite };

impl Format {
    fn sign(self) -> u8 {
        1 << (self.exponent + self.mantissa)
    }

    /// The code of the largest finite number.
    fn largest(self) -> u8 {
        let all = self.sign() - 1;
        match self.special {
            Special::Ieee => all - (1 << self.mantissa),
            Special::AllOnes => all - 1,
            Special::NegativeZero | Special::Finite => all,
        }
    }

    fn nan(self) -> u8 {
        match self.special {
            Special::NegativeZero => self.sign(),
            Special::Finite => self.sign(), // negative zero, as onnx stores it
            // the quiet NaN
            Special::Ieee => (self.sign() - 1) - ((1 << (self.mantissa - 1)) - 1),
            Special::AllOnes => self.sign() - 1,
        }
    }

    /// Returns the number of a code; ignores bits above those of the format.
    pub fn decode(self, code: u8) -> f32 {
        let magnitude = code & (self.sign() - 1);
        let negative = code & self.sign() != 0;
        if self.special == Special::NegativeZero && negative && magnitude == 0 {
            return f32::NAN;
        }
        let value = match magnitude > self.largest() {
            true if self.special == Special::Ieee && magnitude == self.largest() + 1 => f32::INFINITY,
            true => f32::NAN,
            false => self.finite(magnitude),
        };
        if negative {
            -value
        } else {
            value
        }
    }

    fn finite(self, magnitude: u8) -> f32 {
        let exponent = i32::from(magnitude >> self.mantissa);
        let mantissa = f32::from(magnitude & ((1 << self.mantissa) - 1));
        let unit = 2f32.powi(-(self.mantissa as i32));
        match exponent {
            0 => mantissa * unit * 2f32.powi(1 - self.bias),
            _ => (1.0 + mantissa * unit) * 2f32.powi(exponent - self.bias),
        }
    }

    /// Returns the code of the nearest number, ties to even. If `saturate` is set, an infinity or a number out of range
    /// gives the largest number. Otherwise it gives an infinity; in a format without infinity, NaN; in a format without
    /// either, the largest number.
    pub fn encode(self, x: f32, saturate: bool) -> u8 {
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        if x.is_nan() {
            return if self.special == Special::NegativeZero { self.nan() } else { self.nan() | sign };
        }
        let code = if x.is_infinite() { u32::MAX } else { self.round(x.abs()) };
        let magnitude = match code {
            code if code <= u32::from(self.largest()) => code as u8,
            _ if saturate || self.special == Special::Finite => self.largest(),
            _ if self.special == Special::Ieee => self.largest() + 1,
            _ if self.special == Special::NegativeZero => return self.nan(),
            _ => self.nan(),
        };
        match self.special {
            Special::NegativeZero if magnitude == 0 => 0,
            _ => magnitude | sign,
        }
    }

    /// The code of a finite number's magnitude, for an unlimited range of exponents.
    fn round(self, x: f32) -> u32 {
        let smallest = 1 - self.bias;
        let exponent = (((x.to_bits() >> 23) as i32) - 127).max(smallest);
        // exact: a power of two times a 24-bit number
        let scaled = f64::from(x) * 2f64.powi(self.mantissa as i32 - exponent);
        let steps = scaled.round_ties_even() as u32;
        let normal = 1 << self.mantissa;
        if steps < normal {
            steps
        } else {
            (((exponent - smallest + 1) as u32) << self.mantissa) + (steps - normal)
        }
    }
}

/// How [`encode_scale`] rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To the next power of two.
    Up,
    /// To the previous power of two.
    Down,
    /// To the nearest power of two, ties up.
    Nearest,
}

/// Returns the number of a `float8_e8m0fnu` code: `2^(code − 127)`, or NaN for 255.
pub fn decode_scale(code: u8) -> f32 {
    match code {
        255 => f32::NAN,
        code => 2f64.powi(i32::from(code) - 127) as f32,
    }
}

/// Returns the `float8_e8m0fnu` code of `|x|`. Out of range, it is the nearest code if `saturate` is set, else NaN.
pub fn encode_scale(x: f32, saturate: bool, round: Round) -> u8 {
    if x.is_nan() || (!saturate && (x.is_infinite() || x == 0.0)) {
        return 255;
    }
    if x.is_infinite() {
        return 254;
    }
    let x = f64::from(x.abs());
    let below = x.log2().floor();
    let exact = 2f64.powi(below.max(-1000.0) as i32);
    let up = match round {
        Round::Up => x > exact,
        Round::Down => false,
        Round::Nearest => x >= 1.5 * exact,
    };
    let exponent = below + f64::from(u8::from(up));
    match exponent {
        e if e > 127.0 && saturate => 254,
        e if e < -127.0 && saturate => 0,
        e if !(-127.0..=127.0).contains(&e) => 255,
        e => (e + 127.0) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Format; 5] = [E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E2M1FN];

    #[test]
    fn every_code_is_its_own_nearest() {
        for format in ALL {
            for code in 0..2 * u16::from(format.sign()) {
                let value = format.decode(code as u8);
                if value.is_finite() {
                    assert_eq!(u16::from(format.encode(value, true)), code, "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn halfway_goes_to_even() {
        for format in ALL {
            for code in 0..format.largest() {
                let (low, high) = (format.decode(code), format.decode(code + 1));
                let middle = (low + high) / 2.0;
                assert_eq!(format.encode(middle, true), code + code % 2, "{format:?} between {low} and {high}");
                assert_eq!(format.encode(f32::from_bits(middle.to_bits() + 1), true), code + 1);
                assert_eq!(format.encode(f32::from_bits(middle.to_bits() - 1), true), code);
            }
        }
    }

    #[test]
    fn the_largest_numbers_are_the_papers() {
        let largest = ALL.map(|format| format.decode(format.largest()));
        assert_eq!(largest, [448.0, 240.0, 57344.0, 57344.0, 6.0]);
        assert_eq!(E5M2.decode(E5M2.encode(1e9, false)), f32::INFINITY);
        assert!(E4M3FN.decode(E4M3FN.encode(1e9, false)).is_nan());
        assert!(E4M3FNUZ.decode(E4M3FNUZ.encode(f32::NEG_INFINITY, false)).is_nan());
        assert_eq!(E4M3FNUZ.encode(-0.0, true), 0);
        assert_eq!(E4M3FN.encode(-0.0, true), 0x80);
    }

    #[test]
    fn scales_round_as_asked() {
        let cases = [(1.0, 127, 127, 127), (1.2, 128, 127, 127), (1.5, 128, 127, 128), (3.9, 129, 128, 129)];
        for (x, up, down, nearest) in cases {
            let code = |round| encode_scale(x, true, round);
            assert_eq!((code(Round::Up), code(Round::Down), code(Round::Nearest)), (up, down, nearest), "{x}");
        }
        assert_eq!((encode_scale(0.0, true, Round::Up), encode_scale(0.0, false, Round::Up)), (0, 255));
        assert_eq!(decode_scale(encode_scale(8.0, true, Round::Nearest)), 8.0);
    }
}
