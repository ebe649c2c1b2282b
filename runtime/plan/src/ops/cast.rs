//! Other element types: converted, or the same bits.

use candle_plan_kernels::buffer::collected;
use candle_plan_kernels::cast::{cast, convert, Convert, Source, Target};
use candle_plan_kernels::minifloat::{self, Format};
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::on_device;
use crate::dispatch;
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::text;
use crate::types::{TensorType, Type};
use crate::value::{room, Array, Value};
use crate::words;
use crate::{bail, by_width};

/// `X` with each element converted to the type `to`.
///
/// To integers: truncated, low bits kept; what does not fit as x86 converts it. To floats: the nearest. To 8-bit floats:
/// the nearest, see `saturate`. Strings are read and printed as onnxruntime does.
///
/// Source: [ONNX Cast](https://onnx.ai/onnx/operators/onnx__Cast.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cast {
    /// The type of the result.
    pub to: DType,
    /// Whether what is too large for an 8-bit float becomes its largest number, and not an infinity or NaN.
    pub saturate: bool,
    /// How `float8_e8m0fnu` rounds.
    pub round: Round,
}

/// How a power of two is chosen for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Round {
    Up,
    Down,
    Nearest,
}

impl Kernel for Cast {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!("cast" if |self, operands| operands.dtype(0).is_some_and(|dtype| dtype != DType::String && self.to != DType::String));

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

/// The 8-bit and 4-bit formats with a mantissa.
pub fn format_of(dtype: DType) -> Option<Format> {
    match dtype {
        DType::Float8E4M3Fn => Some(minifloat::E4M3FN),
        DType::Float8E4M3Fnuz => Some(minifloat::E4M3FNUZ),
        DType::Float8E5M2 => Some(minifloat::E5M2),
        DType::Float8E5M2Fnuz => Some(minifloat::E5M2FNUZ),
        DType::Float4E2M1Fn => Some(minifloat::E2M1FN),
        _ => None,
    }
}

/// A tensor of the same numbers in a type that has arithmetic: small floats as `float32`, small integers as bytes.
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

/// A tensor converted between types that have arithmetic.
pub fn converted(x: &Array, to: DType, threads: &Threads) -> Result<Array> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    let bytes = dispatch!("Cast", x.dtype(), [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], S => {
        Ok(bytemuck::cast_slice::<S, u8>(x.read()?))
    })?;
    dispatch!("Cast", to, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], D => {
        let mut out = room::<D>(x.dims())?;
        cast(converter(x.dtype())?, bytes, &mut out, threads);
        Array::new(out, x.dims())
    })
}

fn converter<D: Target>(from: DType) -> Result<Convert<D>> {
    dispatch!("Cast", from, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], S => Ok(convert::<S, D>))
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

/// The bits of `X` as elements of the type `to`, which is as wide.
///
/// Source: [ONNX BitCast](https://onnx.ai/onnx/operators/onnx__BitCast.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BitCast {
    /// The type of the result.
    pub to: DType,
}

impl Kernel for BitCast {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if bits(x.dtype)? != bits(self.to)? {
            bail!("{} and {} differ in width", x.dtype, self.to);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }

    on_device!("cast");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let bits = by_width!(x.dtype(), W => words::array(self.code(x.dtype(), words::read::<W>(x)?.to_vec()), x.dims(), self.to))?;
        Ok(vec![bits.into()])
    }
}

impl BitCast {
    /// Sub-byte elements are stored one to a byte, signed ones with their sign: the stored byte may change.
    fn code<W: words::Word>(&self, from: DType, mut stored: Vec<W>) -> Vec<W> {
        if let Ok(bytes) = bytemuck::try_cast_slice_mut::<W, u8>(&mut stored) {
            let (low, sign) = match (from, self.to) {
                (DType::Int4 | DType::Uint4 | DType::Float4E2M1Fn, DType::Int4) => (15, 8),
                (DType::Int4 | DType::Uint4 | DType::Float4E2M1Fn, _) => (15, 0),
                (DType::Int2 | DType::Uint2, DType::Int2) => (3, 2),
                (DType::Int2 | DType::Uint2, _) => (3, 0),
                _ => return stored,
            };
            for byte in bytes {
                *byte &= low;
                if *byte & sign != 0 {
                    *byte |= !low;
                }
            }
        }
        stored
    }
}

/// The width of an element as ONNX means it.
pub(crate) fn bits(dtype: DType) -> Result<usize> {
    Ok(match dtype {
        DType::Int2 | DType::Uint2 => 2,
        DType::Int4 | DType::Uint4 | DType::Float4E2M1Fn => 4,
        DType::String => return Err(Error::op("strings have no bits")),
        other => by_width!(other, W => Ok(W::BITS as usize))?,
    })
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
    fn through_small_types_and_back() {
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
    fn strings_are_numbers() {
        let text = cast_to(DType::String, tensor(&[1.5f32, f32::INFINITY, 1e-7], &[3]));
        let Value::Strings(strings) = &text else { panic!("not strings") };
        assert_eq!(*strings.data, ["1.5", "INF", "1e-07"]);
        assert_eq!(read::<f32>(&cast_to(DType::Float32, text)), [1.5, f32::INFINITY, 1e-7]);
    }

    #[test]
    fn bits_stay() {
        let bits = run(&BitCast { to: DType::Int32 }, &[Some(tensor(&[1f32], &[1]))]).expect("as wide");
        assert_eq!(read::<i32>(&bits), [0x3f80_0000]);
        assert!(run(&BitCast { to: DType::Int16 }, &[Some(tensor(&[1f32], &[1]))]).is_err());
    }
}
