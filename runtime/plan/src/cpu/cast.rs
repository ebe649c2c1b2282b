//! CPU kernels: casts and bit casts.

use candle_plan_kernels::cast::{Source, Target};
use candle_plan_kernels::minifloat;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::collected;

use super::bounds::{counted, len};
use super::convert::converted;
use crate::array::words;
use crate::by_width;
use crate::dtype::{Bool, DType, NUMBERS};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::ops::cast::{format_of, BitCast, Cast, Round};
use crate::text;
use crate::types::Types;
use crate::value::{Array, Value};

impl Kernel for Cast {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let is_plain = |dtype: DType| dtype == DType::Bool || NUMBERS.contains(&dtype);
        match is_plain(inputs.tensor(0).ok()?.dtype) && is_plain(self.to) {
            true => Some(0),
            // Small numbers become `float32` or bytes first.
            false => Some(counted::<f32>(len(inputs, 0)?).saturating_mul(2)),
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = match (call.value(0)?, self.to) {
            (Value::Strings(strings), DType::String) => Value::Strings(strings.clone()),
            (Value::Strings(strings), to) => {
                let numbers = text::parse(strings, to)?;
                self.convert(&numbers, call.threads)?.into()
            }
            (value, DType::String) => text::print(&widened(value.tensor()?)?)?,
            (value, _) => self.convert(value.tensor()?, call.threads)?.into(),
        };
        Ok(vec![value])
    }
}

impl Cast {
    fn convert(&self, x: &Array, threads: &Threads) -> Result<Array> {
        if x.dtype() == self.to {
            return Ok(x.clone());
        }
        let x = widened(x)?;
        let (to, dims) = (self.to, x.dims());
        if let Some(format) = format_of(to) {
            return self.encode(&converted(&x, DType::Float32, threads)?, |v| format.encode(v, self.saturate));
        }
        match to {
            DType::Float8E8M0Fnu => {
                let round = match self.round {
                    Round::Up => minifloat::Round::Up,
                    Round::Down => minifloat::Round::Down,
                    Round::Nearest => minifloat::Round::Nearest,
                };
                let x = converted(&x, DType::Float32, threads)?;
                self.encode(&x, |v| minifloat::encode_scale(v, self.saturate, round))
            }
            DType::Int4 | DType::Int2 => {
                let shift = if to == DType::Int4 { 4 } else { 6 };
                let bytes = converted(&x, DType::Int8, threads)?;
                let low = collected(bytes.read::<i8>()?.iter().map(|v| (v << shift) >> shift));
                Array::new(low, dims)?.reinterpret(to)
            }
            DType::Uint4 | DType::Uint2 => {
                let mask = if to == DType::Uint4 { 15 } else { 3 };
                let bytes = converted(&x, DType::Uint8, threads)?;
                let low = collected(bytes.read::<u8>()?.iter().map(|v| v & mask));
                Array::new(low, dims)?.reinterpret(to)
            }
            _ => converted(&x, to, threads),
        }
    }

    fn encode(&self, x: &Array, code: impl Fn(f32) -> u8) -> Result<Array> {
        let codes: Vec<u8> = collected(x.read::<f32>()?.iter().map(|&v| code(v)));
        Array::new(codes, x.dims())?.reinterpret(self.to)
    }
}

/// Converts a tensor to a type with arithmetic: small floats to `float32`, integers of less than 8 bits to bytes.
pub fn widened(x: &Array) -> Result<Array> {
    let decode = |number: &dyn Fn(u8) -> f32| {
        let table: Vec<f32> = (0..=255).map(number).collect();
        let codes = x.bits::<u8>()?;
        Array::new(collected(codes.iter().map(|&code| table[usize::from(code)])), x.dims())
    };
    match (format_of(x.dtype()), x.dtype()) {
        (Some(format), _) => decode(&|code| format.decode(code)),
        (None, DType::Float8E8M0Fnu) => decode(&minifloat::decode_scale),
        (None, DType::Int4 | DType::Int2) => x.reinterpret(DType::Int8),
        (None, DType::Uint4 | DType::Uint2) => x.reinterpret(DType::Uint8),
        _ => Ok(x.clone()),
    }
}

impl Source for Bool {
    const IS_WIDE: bool = false;

    fn to_f32(self) -> f32 {
        f32::from(self.0)
    }

    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }

    fn to_i32(self) -> i32 {
        i32::from(self.0)
    }

    fn to_i64(self) -> i64 {
        i64::from(self.0)
    }

    fn to_u64(self) -> u64 {
        u64::from(self.0)
    }

    fn is_nonzero(self) -> bool {
        self.is_true()
    }
}

impl Target for Bool {
    fn from_source<S: Source>(source: S) -> Bool {
        Bool::from(source.is_nonzero())
    }
}

impl Kernel for BitCast {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let bits = by_width!(x.dtype(), W => {
            let mut bits = words::alloc_uninit::<W>(x.dims())?.copy(words::read::<W>(x)?);
            self.fix_bits(x.dtype(), &mut bits);
            words::array(bits, x.dims(), self.to)
        })?;
        Ok(vec![bits.into()])
    }
}

impl BitCast {
    /// Fixes the bytes of sub-byte elements for the new type: each is stored in one byte, and signed ones are
    /// sign-extended.
    fn fix_bits<W: words::Word>(&self, from: DType, stored: &mut [W]) {
        if let Ok(bytes) = bytemuck::try_cast_slice_mut::<W, u8>(stored) {
            let (low, sign) = match (from, self.to) {
                (DType::Int4 | DType::Uint4 | DType::Float4E2M1Fn, DType::Int4) => (15, 8),
                (DType::Int4 | DType::Uint4 | DType::Float4E2M1Fn, _) => (15, 0),
                (DType::Int2 | DType::Uint2, DType::Int2) => (3, 2),
                (DType::Int2 | DType::Uint2, _) => (3, 0),
                _ => return,
            };
            for byte in bytes {
                *byte &= low;
                if *byte & sign != 0 {
                    *byte |= !low;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Element;
    use crate::testing::{run, tensor};

    fn read<T: Element>(value: &Value) -> Vec<T> {
        value.tensor().and_then(|array| Ok(array.read::<T>()?.to_vec())).expect("a tensor")
    }

    fn cast_to(to: DType, value: Value) -> Value {
        run(&Cast { to, saturate: true, round: Round::Up }, &[Some(value)]).expect("casts")
    }

    #[test]
    fn small_types_round_trip() {
        let x = tensor(&[-9f32, -1.0, 0.4, 7.0, 100.0], &[5]);
        let back = |to| read::<f32>(&cast_to(DType::Float32, cast_to(to, x.clone())));
        assert_eq!(back(DType::Int4), [7.0, -1.0, 0.0, 7.0, 4.0]);
        assert_eq!(back(DType::Uint2), [3.0, 3.0, 0.0, 3.0, 0.0]);
        assert_eq!(back(DType::Bool), [1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(back(DType::Float8E5M2), [-8.0, -1.0, 0.375, 7.0, 96.0]);
        assert_eq!(back(DType::Float4E2M1Fn), [-6.0, -1.0, 0.5, 6.0, 6.0]);
        assert_eq!(back(DType::Float64), [-9.0, -1.0, 0.4f32, 7.0, 100.0]);
    }

    #[test]
    fn numbers_convert_to_strings_and_back() {
        let text = cast_to(DType::String, tensor(&[1.5f32, f32::INFINITY, 1e-7], &[3]));
        let Value::Strings(strings) = &text else { panic!("not strings") };
        assert_eq!(*strings.data, ["1.5", "INF", "1e-07"]);
        assert_eq!(read::<f32>(&cast_to(DType::Float32, text)), [1.5, f32::INFINITY, 1e-7]);
    }

    #[test]
    fn bit_casts_keep_the_bits() {
        let bits = run(&BitCast { to: DType::Int32 }, &[Some(tensor(&[1f32], &[1]))]).expect("as wide");
        assert_eq!(read::<i32>(&bits), [0x3f80_0000]);
        assert!(run(&BitCast { to: DType::Int16 }, &[Some(tensor(&[1f32], &[1]))]).is_err());
    }
}
