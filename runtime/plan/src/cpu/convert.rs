//! Conversions between element types, and the types to compute in: 16-bit floats in `f32`, rounded once at the end.

use std::borrow::Cow;

use candle_plan_descriptors::number::Number;
use candle_plan_kernels::cast::{cast, convert, narrow, widen, Convert, Target};
use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;
use candle_plan_kernels::vector::Half;
use candle_plan_memory::buffer;
use candle_plan_memory::uninit::Uninit;
use half::{bf16, f16};

use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::Result;
use crate::operator::Operator;
use crate::types::{TensorType, Type, Types};
use crate::value::{alloc_uninit, Array};
use crate::work;

/// A floating-point element.
pub(crate) trait Float: Element {
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
                Cow::Owned(Uninit::new(x.len()).overwrite(|wide| Half::widen(Isa::get(), x, wide)))
            }

            fn narrow<'a>(x: impl Into<Cow<'a, [f32]>>) -> Vec<$float> {
                let x = x.into();
                Uninit::new(x.len()).overwrite(|narrow: &mut [$float]| Half::narrow(&x, narrow))
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
pub(super) fn read_widened<T: Float>(array: &Array) -> Result<Cow<'_, [T::Wide]>> {
    Ok(T::widen(array.read::<T>()?))
}

/// The elements of a tensor of `float32` or 16-bit floating point, as `float32`.
///
/// # Errors
/// The tensor has another dtype.
pub(super) fn read_f32(array: &Array) -> Result<Cow<'_, [f32]>> {
    dispatch!("a number of up to 32 bits", array.dtype(), [f32, f16, bf16], T => read_widened::<T>(array))
}

/// The elements, copied if they are borrowed. If memory runs out, the kernel stops.
pub(super) fn owned<T: Copy>(elements: Cow<[T]>) -> Vec<T> {
    match elements {
        Cow::Borrowed(elements) => buffer::copied(elements),
        Cow::Owned(elements) => elements,
    }
}

/// The elements of a tensor, converted to type `T`.
///
/// # Errors
/// See [`converted`].
pub(crate) fn read_as<T: Element>(x: &Array, threads: &Threads) -> Result<Vec<T>> {
    converted(x, T::DTYPE, threads)?.into_elements()
}

/// Converts a tensor between types that have arithmetic. Returns a view if it has the type.
///
/// # Errors
/// A type has no arithmetic, or there is no memory for the result.
pub(crate) fn converted(x: &Array, to: DType, threads: &Threads) -> Result<Array> {
    match (x.dtype(), to) {
        (from, to) if from == to => Ok(x.clone()),
        (DType::Float16, DType::Float32) => convert_with(widen::<f16>, x, threads),
        (DType::Bfloat16, DType::Float32) => convert_with(widen::<bf16>, x, threads),
        (DType::Float32, DType::Float16) => convert_with(narrow::<f16>, x, threads),
        (DType::Float32, DType::Bfloat16) => convert_with(narrow::<bf16>, x, threads),
        (from, to) => {
            dispatch!("Cast", to, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], D => {
                convert_with(converter::<D>(from)?, x, threads)
            })
        }
    }
}

fn convert_with<D: Target + Element>(convert: Convert<D>, x: &Array, threads: &Threads) -> Result<Array> {
    let bytes = dispatch!("Cast", x.dtype(), [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], S => {
        Ok(bytemuck::cast_slice::<S, u8>(x.read()?))
    })?;
    let out = alloc_uninit::<D>(x.dims())?.overwrite(|out| cast(convert, bytes, out, threads));
    Array::new(out, x.dims())
}

fn converter<D: Target>(from: DType) -> Result<Convert<D>> {
    dispatch!("Cast", from, [Bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64], S => Ok(convert::<S, D>))
}

/// Whether a kernel computes elements of this type as they are, and not 16-bit floats in `f32`.
pub(super) fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float64)
}

/// An upper bound in bytes on the memory that a kernel needs to compute 16-bit floats in `f32`: a copy of each input
/// that was not packed and of each output. `None` if a size is unknown.
pub(super) fn widened_bytes(
    operator: &dyn Operator,
    inputs: &Types,
    is_packed: impl Fn(usize) -> bool,
) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_rounded_to_nearest() {
        let x = [f16::from_f32(1.5), f16::MAX, f16::NEG_INFINITY];
        assert_eq!(<f16 as Float>::narrow(<f16 as Float>::widen(&x).into_owned()), x);
        assert_eq!(<bf16 as Float>::narrow(vec![1.0 + 2f32.powi(-8)]), [bf16::ONE]);
    }

    /// Every 16-bit float in `f32`, and back, is the same for slices, for tensors and for single elements.
    #[test]
    fn half_floats_are_converted_in_one_way() {
        fn check<T: Float<Wide = f32>>(of_bits: impl Fn(u16) -> T, bits: impl Fn(&T) -> u16) {
            let all: Vec<T> = (0..=u16::MAX).map(of_bits).collect();
            let x = Array::new(all.clone(), &[1 << 16]).expect("they fill the shape");
            for threads in [Threads::serial(), Threads::new(2).expect("threads")] {
                let wide = converted(&x, DType::Float32, &threads).expect("there is memory");
                let found = wide.read::<f32>().expect("float32");
                let same = |(one, other): (&f32, f32)| one.to_bits() == other.to_bits();
                assert!(found.iter().zip(T::widen(&all).iter().copied()).all(same));
                let is_single = |(one, x): (&f32, &T)| one.to_bits() == x.wide().to_bits() || one.is_nan();
                assert!(found.iter().zip(&all).all(is_single));
                let narrow: Vec<u16> = T::narrow(found).iter().map(&bits).collect();
                assert_eq!(
                    read_as::<T>(&wide, &threads).expect("halves").iter().map(&bits).collect::<Vec<_>>(),
                    narrow
                );
                assert!(found.iter().zip(&narrow).all(|(&x, &expected)| bits(&T::rounded(x)) == expected));
            }
        }
        check(f16::from_bits, |x| x.to_bits());
        check(bf16::from_bits, |x| x.to_bits());
    }

    #[test]
    fn a_tensor_that_has_the_type_is_shared() {
        let x = Array::new(vec![1f64, 2.0], &[2]).expect("two");
        assert!(converted(&x, DType::Float64, &Threads::serial()).expect("a view").shares_storage_with(&x));
        assert_eq!(read_as::<f32>(&x, &Threads::serial()).expect("numbers"), [1.0, 2.0]);
    }
}
