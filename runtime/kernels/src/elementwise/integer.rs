//! Functions of integers. Results wrap around. Division truncates toward zero; division by zero is an error.

use bytemuck::{cast_slice, cast_slice_mut, Pod};

use super::{map, zip, OperandPair, Undefined};
use crate::broadcast::Broadcast;
use crate::program::{Binary, Unary};
use crate::threads::Threads;

/// An integer type. The loops over slices are methods, so that they are compiled once, in this crate.
#[allow(missing_docs)]
pub trait Integer: Pod + Ord + Send + Sync + Default {
    /// The unsigned type of the same width; its sums, products and bitwise operations give the same bits.
    type Bits: Integer;

    /// `out[i] = function(x[i])`
    ///
    /// # Errors
    /// The function is not defined for integers.
    fn unary(threads: &Threads, function: Unary, x: &[Self], out: &mut [Self]) -> Result<(), Undefined>;

    /// `out = function(x, y)`
    ///
    /// # Errors
    /// The function is not defined for integers, or divides by zero.
    fn binary(function: Binary, operands: OperandPair<Self>, out: &mut [Self]) -> Result<(), Undefined>;

    /// `out = x` to the power `y`; see [`Integer::pow`].
    fn powers(threads: &Threads, broadcast: &Broadcast, operands: (&[Self], &[i64]), out: &mut [Self]);

    fn add(self, y: Self) -> Self;
    fn sub(self, y: Self) -> Self;
    fn mul(self, y: Self) -> Self;
    /// The quotient, truncated; `y` is not 0.
    fn div(self, y: Self) -> Self;
    /// The remainder with the sign of `self`; `y` is not 0.
    fn rem(self, y: Self) -> Self;
    /// The remainder with the sign of `y`, which is not 0.
    fn modulo(self, y: Self) -> Self;
    /// `self` to the power `exponent`. For a negative exponent `-n`, `1 / selfⁿ` truncated, and 0 for a base of 0.
    fn pow(self, exponent: i64) -> Self;
    fn abs(self) -> Self;
    fn neg(self) -> Self;
    fn sign(self) -> Self;
    fn not(self) -> Self;
    fn and(self, y: Self) -> Self;
    fn or(self, y: Self) -> Self;
    fn xor(self, y: Self) -> Self;
    /// `self · 2ʸ`; 0 if `y` is negative or at least the type's width.
    fn shift_left(self, y: Self) -> Self;
    /// `⌊self / 2ʸ⌋`; if `y` is negative or at least the type's width, 0, or -1 for a negative number.
    fn shift_right(self, y: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty as $bits:ty, $is_signed:literal, $abs:expr, $sign:expr;)*) => {
        $(impl Integer for $type {
            type Bits = $bits;

            fn unary(threads: &Threads, function: Unary, x: &[Self], out: &mut [Self]) -> Result<(), Undefined> {
                unary(threads, function, x, out)
            }

            fn binary(function: Binary, operands: OperandPair<Self>, out: &mut [Self]) -> Result<(), Undefined> {
                binary(function, operands, out)
            }

            fn powers(threads: &Threads, broadcast: &Broadcast, operands: (&[Self], &[i64]), out: &mut [Self]) {
                zip(threads, broadcast, operands, out, <Self as Integer>::pow as fn(Self, i64) -> Self);
            }

            fn add(self, y: Self) -> Self {
                self.wrapping_add(y)
            }

            fn sub(self, y: Self) -> Self {
                self.wrapping_sub(y)
            }

            fn mul(self, y: Self) -> Self {
                self.wrapping_mul(y)
            }

            fn div(self, y: Self) -> Self {
                self.wrapping_div(y)
            }

            fn rem(self, y: Self) -> Self {
                self.wrapping_rem(y)
            }

            fn modulo(self, y: Self) -> Self {
                let remainder = self.wrapping_rem(y);
                let wrong_sign = $is_signed && remainder != 0 && (remainder ^ y) >> (<$type>::BITS - 1) != 0;
                if wrong_sign { remainder.wrapping_add(y) } else { remainder }
            }

            fn pow(self, exponent: i64) -> Self {
                let (mut base, mut rest, mut power) = (self, exponent.unsigned_abs(), 1 as $type);
                if exponent < 0 {
                    let is_unit = self == 1 || $is_signed && self.wrapping_add(1) == 0;
                    base = if is_unit { self } else { 0 };
                }
                while rest > 0 {
                    if rest & 1 == 1 {
                        power = power.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                power
            }

            fn abs(self) -> Self {
                $abs(self)
            }

            fn neg(self) -> Self {
                self.wrapping_neg()
            }

            fn sign(self) -> Self {
                $sign(self)
            }

            fn not(self) -> Self {
                !self
            }

            fn and(self, y: Self) -> Self {
                self & y
            }

            fn or(self, y: Self) -> Self {
                self | y
            }

            fn xor(self, y: Self) -> Self {
                self ^ y
            }

            fn shift_left(self, y: Self) -> Self {
                u32::try_from(y).ok().and_then(|y| self.checked_shl(y)).unwrap_or(0)
            }

            fn shift_right(self, y: Self) -> Self {
                let beyond = if $is_signed { self >> (<$type>::BITS - 1) } else { 0 };
                u32::try_from(y).ok().and_then(|y| self.checked_shr(y)).unwrap_or(beyond)
            }
        })*
    };
}

integers! {
    i8 as u8, true, i8::wrapping_abs, i8::signum;
    i16 as u16, true, i16::wrapping_abs, i16::signum;
    i32 as u32, true, i32::wrapping_abs, i32::signum;
    i64 as u64, true, i64::wrapping_abs, i64::signum;
    u8 as u8, false, std::convert::identity, |x: u8| x.min(1);
    u16 as u16, false, std::convert::identity, |x: u16| x.min(1);
    u32 as u32, false, std::convert::identity, |x: u32| x.min(1);
    u64 as u64, false, std::convert::identity, |x: u64| x.min(1);
}

fn unary<T: Integer>(threads: &Threads, function: Unary, x: &[T], out: &mut [T]) -> Result<(), Undefined> {
    match function {
        Unary::Abs => map(threads, x, out, T::abs),
        Unary::Neg => map(threads, x, out, T::neg),
        Unary::Sign => map(threads, x, out, T::sign),
        Unary::Square => map(threads, x, out, |x| x.mul(x)),
        Unary::Relu => map(threads, x, out, |x| x.max(T::default())),
        Unary::BitwiseNot => map(threads, x, out, T::not),
        _ => return Err(Undefined::Function),
    }
    Ok(())
}

fn binary<T: Integer>(function: Binary, operands: OperandPair<T>, out: &mut [T]) -> Result<(), Undefined> {
    let OperandPair { threads, broadcast, x, y } = operands;
    let divides = matches!(function, Binary::Div | Binary::Mod | Binary::Fmod);
    if divides && !out.is_empty() && y.contains(&T::default()) {
        let place = y.iter().position(|&divisor| divisor == T::default());
        return Err(Undefined::DivisionByZero(place.unwrap_or_default()));
    }
    match function {
        Binary::Min => operands.map(out, T::min),
        Binary::Max => operands.map(out, T::max),
        _ => match rare(function) {
            Some(function) => operands.map(out, function),
            None => {
                let bits = OperandPair::<T::Bits> { threads, broadcast, x: cast_slice(x), y: cast_slice(y) };
                return of_bits(function, bits, cast_slice_mut(out));
            }
        },
    }
    Ok(())
}

/// The functions whose result does not depend on signedness.
fn of_bits<T: Integer>(function: Binary, operands: OperandPair<T>, out: &mut [T]) -> Result<(), Undefined> {
    match function {
        Binary::Add => operands.map(out, T::add),
        Binary::Sub => operands.map(out, T::sub),
        Binary::Mul => operands.map(out, T::mul),
        Binary::BitwiseAnd => operands.map(out, T::and),
        Binary::BitwiseOr => operands.map(out, T::or),
        Binary::BitwiseXor => operands.map(out, T::xor),
        _ => return Err(Undefined::Function),
    }
    Ok(())
}

/// The functions without a vector instruction, or that few models use. They are function pointers, so that the loop is
/// compiled once.
fn rare<T: Integer>(function: Binary) -> Option<fn(T, T) -> T> {
    match function {
        Binary::Div => Some(T::div),
        Binary::Mod => Some(T::modulo),
        Binary::Fmod => Some(T::rem),
        Binary::PRelu => Some(|x, y| if x < T::default() { x.mul(y) } else { x }),
        Binary::ShiftLeft => Some(T::shift_left),
        Binary::ShiftRight => Some(T::shift_right),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_truncate_and_keep_the_divisors_sign() {
        let cases: [(fn(i8, i8) -> i8, i8, i8, i8); 14] = [
            (i8::add, 127, 1, -128),
            (i8::mul, 16, 16, 0),
            (Integer::div, -7, 2, -3),
            (Integer::div, -128, -1, -128),
            (Integer::rem, -7, 3, -1),
            (Integer::modulo, -7, 3, 2),
            (Integer::modulo, 7, -3, -2),
            (Integer::modulo, -6, 3, 0),
            (Integer::modulo, -128, -1, 0),
            (Integer::shift_left, 3, 2, 12),
            (Integer::shift_left, 3, 8, 0),
            (Integer::shift_right, 64, 100, 0),
            (Integer::shift_right, -64, -1, -1),
            (Integer::shift_right, -64, 2, -16),
        ];
        for (function, x, y, expected) in cases {
            assert_eq!(function(x, y), expected, "{x} {y}");
        }
        assert_eq!(Integer::modulo(200u8, 7), 4);
        assert_eq!(Integer::sign(200u8), 1);
        let powers =
            [(3i32, 4, 81), (2, -1, 0), (-1, -3, -1), (1, i64::MIN, 1), (0, 0, 1), (0, -1, 0), (3, 20, -808182895)];
        for (base, exponent, expected) in powers {
            assert_eq!(Integer::pow(base, exponent), expected, "{base} ^ {exponent}");
        }
    }

    #[test]
    fn division_by_zero_is_an_error() {
        let broadcast = Broadcast::new(&[2], &[&[], &[2]]).unwrap();
        let operands = OperandPair { threads: &Threads::serial(), broadcast: &broadcast, x: &[1], y: &[7, 0] };
        let mut out = [0i32; 2];
        for function in [Binary::Div, Binary::Mod, Binary::Fmod] {
            let result = binary(function, operands, &mut out);
            assert_eq!(result, Err(Undefined::DivisionByZero(1)));
        }
    }
}
