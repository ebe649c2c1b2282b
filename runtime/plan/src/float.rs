//! Floating-point tensors, and the types to compute them in: 16-bit floats in `f32`, rounded once at the end.

use std::borrow::Cow;

use candle_plan_descriptors::cast::Source;
use candle_plan_descriptors::number::Number;
use candle_plan_kernels::buffer;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::real::Real;
use candle_plan_kernels::uninit::Uninit;
use candle_plan_kernels::vector;
use half::{bf16, f16};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::operator::Operator;
use crate::types::{TensorType, Type, Types};
use crate::value::Array;
use crate::work;

/// The dtypes of [`Float`].
pub const FLOATS: [DType; 4] = [DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64];

/// The dtypes for which ONNX defines sums and products along axes.
pub const SUMMED: [DType; 8] = [
    DType::Float16,
    DType::Bfloat16,
    DType::Float32,
    DType::Float64,
    DType::Int32,
    DType::Int64,
    DType::Uint32,
    DType::Uint64,
];

/// The dtypes with a Rust type of their own, except booleans.
pub const NUMBERS: [DType; 12] = [
    DType::Float16,
    DType::Bfloat16,
    DType::Float32,
    DType::Float64,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::Uint8,
    DType::Uint16,
    DType::Uint32,
    DType::Uint64,
];

/// A floating-point element.
pub trait Float: Element {
    /// The type to compute in: `f64` for `f64`, `f32` for the others.
    type Wide: Real + Number + Element;

    /// Converts elements to the type to compute in.
    fn widen(x: &[Self]) -> Cow<'_, [Self::Wide]>;

    /// Converts results to elements, each rounded to nearest.
    fn narrow<'a>(x: impl Into<Cow<'a, [Self::Wide]>>) -> Vec<Self>;

    /// Converts one element to the type to compute in.
    fn wide(self) -> Self::Wide;

    /// Converts one result to the nearest element.
    fn rounded(x: Self::Wide) -> Self;
}

macro_rules! wide {
    ($($float:ident)*) => {
        $(impl Float for $float {
            type Wide = $float;

            fn widen(x: &[$float]) -> Cow<'_, [$float]> {
                Cow::Borrowed(x)
            }

            fn narrow<'a>(x: impl Into<Cow<'a, [$float]>>) -> Vec<$float> {
                owned(x.into())
            }

            fn wide(self) -> $float {
                self
            }

            fn rounded(x: $float) -> $float {
                x
            }
        })*
    };
}

macro_rules! half {
    ($($float:ident)*) => {
        $(impl Float for $float {
            type Wide = f32;

            fn widen(x: &[$float]) -> Cow<'_, [f32]> {
                Cow::Owned(Uninit::new(x.len()).overwrite(|wide| vector::Half::widen(Isa::get(), x, wide)))
            }

            fn narrow<'a>(x: impl Into<Cow<'a, [f32]>>) -> Vec<$float> {
                let x = x.into();
                Uninit::new(x.len()).overwrite(|narrow: &mut [$float]| vector::Half::narrow(&x, narrow))
            }

            fn wide(self) -> f32 {
                self.to_f32()
            }

            fn rounded(x: f32) -> $float {
                $float::from_f32(x)
            }
        })*
    };
}

wide! { f32 f64 }
half! { f16 bf16 }

/// The elements of a tensor of type `T`, in the type to compute in.
///
/// # Errors
/// The tensor has another dtype.
pub fn read_widened<T: Float>(array: &Array) -> Result<Cow<'_, [T::Wide]>> {
    Ok(T::widen(array.read::<T>()?))
}

/// The elements of a tensor of `float32` or 16-bit floating point, as `float32`.
///
/// # Errors
/// The tensor has another dtype.
pub fn read_f32(array: &Array) -> Result<Cow<'_, [f32]>> {
    crate::dispatch!("a number of up to 32 bits", array.dtype(), [f32, f16, bf16], T => read_widened::<T>(array))
}

/// A copy of a tensor of `float32` or 16-bit floating point, as `float32`.
///
/// # Errors
/// The tensor has another dtype.
pub fn to_f32(array: &Array) -> Result<Array> {
    Array::new(owned(read_f32(array)?), array.dims())
}

/// The elements, copied if they are borrowed. If memory runs out, the kernel stops.
pub fn owned<T: Copy>(elements: Cow<[T]>) -> Vec<T> {
    match elements {
        Cow::Borrowed(elements) => buffer::copied(elements),
        Cow::Owned(elements) => elements,
    }
}

/// A copy of a `float32` tensor, rounded to nearest in a dtype of 16 bits.
///
/// # Errors
/// The tensor is not `float32`, or `dtype` has not 16 bits.
pub fn to_half(array: &Array, dtype: DType) -> Result<Array> {
    crate::dispatch!("a result", dtype, [f16, bf16], T => Array::new(T::narrow(array.read::<f32>()?), array.dims()))
}

/// The elements of a tensor of any floating-point dtype, as type `W`.
///
/// # Errors
/// The tensor is not floating-point.
#[allow(clippy::cast_possible_truncation)]
pub fn read_wide<W: Real>(array: &Array) -> Result<Vec<W>> {
    crate::dispatch!("a floating-point input", array.dtype(), [f32, f64, f16, bf16], T => {
        Ok(buffer::collected(read_widened::<T>(array)?.iter().map(|&v| W::from_f64(Source::to_f64(v)))))
    })
}

/// The elements of a tensor of any numeric dtype, as type `W`.
///
/// # Errors
/// The tensor is not numeric.
pub fn read_number<W: Real>(array: &Array) -> Result<Vec<W>> {
    if array.dtype().is_float() {
        return read_wide(array);
    }
    crate::dispatch!("a numeric input", array.dtype(), [i8, i16, i32, i64, u8, u16, u32, u64], T => {
        Ok(buffer::collected(array.read::<T>()?.iter().map(|&v| W::from_f64(Source::to_f64(v)))))
    })
}

/// The elements of a tensor of numbers as integers, with fractions truncated.
///
/// # Errors
/// The tensor is not numeric.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn truncated(array: &Array) -> Result<Vec<i64>> {
    if !array.dtype().is_float() {
        return array.to_i64();
    }
    crate::dispatch!("a floating-point input", array.dtype(), [f32, f64, f16, bf16], T => {
        Ok(buffer::collected(read_widened::<T>(array)?.iter().map(|&value| Source::to_f64(value) as i64)))
    })
}

/// An upper bound in bytes on the memory that a kernel needs to compute 16-bit floats in `f32`: a copy of each input
/// that was not packed and of each output. `None` if a size is unknown.
pub fn widened_bytes(operator: &dyn Operator, inputs: &Types, is_packed: impl Fn(usize) -> bool) -> Option<usize> {
    let read = (0..inputs.len()).filter(|&i| !is_packed(i)).filter_map(|i| inputs.optional(i));
    let made = operator.infer(inputs).ok()?;
    let bytes = |kind: &Type| match kind {
        Type::Tensor(tensor @ TensorType { dtype: DType::Float16 | DType::Bfloat16, .. }) => {
            Some(size_of::<f32>().saturating_mul(usize::try_from(work::count(tensor)?).ok()?))
        }
        _ => Some(0),
    };
    read.chain(&made).map(bytes).try_fold(0, |sum: usize, next| Some(sum.saturating_add(next?)))
}

/// Whether a kernel computes elements of this type as they are, and not 16-bit floats in `f32`.
pub fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float64)
}

/// Rejects a dtype that is not in the list.
///
/// # Errors
/// `dtype` is not in the list. The error names the allowed ones.
pub fn require_dtype(name: &str, dtype: DType, allowed: &[DType]) -> Result<()> {
    if allowed.contains(&dtype) {
        return Ok(());
    }
    let allowed: Vec<String> = allowed.iter().map(DType::to_string).collect();
    Err(Error::op(format!("{name} is {dtype}; allowed are {}", allowed.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_rounded_to_nearest() {
        let x = [f16::from_f32(1.5), f16::MAX, f16::NEG_INFINITY];
        assert_eq!(f16::narrow(f16::widen(&x).into_owned()), x);
        assert_eq!(bf16::narrow(vec![1.0 + 2f32.powi(-8)]), [bf16::ONE]);
        assert!(require_dtype("X", DType::Int8, &FLOATS).is_err_and(|e| e.to_string().contains("float16, bfloat16")));
    }
}
