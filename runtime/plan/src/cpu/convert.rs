//! Conversions between element types, and the types to compute in: 16-bit floats in `f32`, rounded once at the end.

use std::borrow::Cow;

use candle_plan_descriptors::number::Number;
use candle_plan_kernels::cast::{cast, convert, narrow, widen, Convert, Target};
use candle_plan_kernels::float_types::Real;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::rewrite::Rewrite;
use candle_plan_kernels::scratch::Scratch;
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

    /// Has `compute` compute `y` from `x`, whose rows of `row` elements do not depend on each other. It gets some rows at a
    /// time if they need a conversion: their elements in `f32` fit a cache. Otherwise, it gets all of them. The number is the
    /// index of the first element.
    ///
    /// # Panics
    /// The lengths differ, or `x` has no whole number of rows.
    fn rewrite_rows(
        threads: &Threads,
        row: usize,
        x: &[Self],
        y: &mut [Self],
        compute: impl Fn(&Threads, usize, Rewrite<Self::Wide>) + Sync,
    );

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

            fn rewrite_rows(
                threads: &Threads,
                _row: usize,
                x: &[$float],
                y: &mut [$float],
                compute: impl Fn(&Threads, usize, Rewrite<$float>) + Sync,
            ) {
                compute(threads, 0, Rewrite::from_to(x, y));
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
                Uninit::new(x.len()).overwrite(|narrow: &mut [$float]| Half::narrow(Isa::get(), &x, narrow))
            }

            fn rewrite_rows(
                threads: &Threads,
                row: usize,
                x: &[$float],
                y: &mut [$float],
                compute: impl Fn(&Threads, usize, Rewrite<f32>) + Sync,
            ) {
                rewrite_halves(threads, row, x, y, compute);
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

/// The elements that a thread converts at a time. In `f32`, they fit the L1 cache.
const BLOCK: usize = 1 << 12;
/// The elements of a task.
const TASK: usize = 1 << 14;

/// See [`Float::rewrite_rows`]. Few rows that are longer than a task are converted together, and then share the threads.
fn rewrite_halves<T: Half + Float<Wide = f32>>(
    threads: &Threads,
    row: usize,
    x: &[T],
    y: &mut [T],
    compute: impl Fn(&Threads, usize, Rewrite<f32>) + Sync,
) {
    assert!(x.len() == y.len() && x.len().is_multiple_of(row.max(1)), "whole rows");
    let (isa, row) = (Isa::get(), row.max(1));
    if row > TASK && (1..threads.count()).contains(&(x.len() / row)) {
        let mut wide = Scratch::overwritten(x.len(), |wide| {
            threads.for_each_chunk(wide, TASK, |i, wide| Half::widen(isa, &x[i * TASK..][..wide.len()], wide));
        });
        compute(threads, 0, Rewrite::in_place(&mut wide));
        return threads.for_each_chunk(y, TASK, |i, y| Half::narrow(isa, &wide[i * TASK..][..y.len()], y));
    }
    let block = (BLOCK / row).max(1) * row;
    let task = (TASK / block).max(1) * block;
    threads.for_each_chunk(y, task, |i, y| {
        let mut scratch = Scratch::new();
        for (k, y) in y.chunks_mut(block).enumerate() {
            let first = i * task + k * block;
            let wide = scratch.overwrite(y.len(), |wide| Half::widen(isa, &x[first..][..wide.len()], wide));
            compute(&Threads::serial(), first, Rewrite::in_place(wide));
            Half::narrow(isa, wide, y);
        }
    });
}

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

    /// Rows of every length are computed once, by one thread and by two, in blocks and together.
    #[test]
    fn rows_of_halves_are_rewritten() {
        let two = Threads::new(2).expect("threads");
        for (row, rows) in [(1, 5), (3, 20_000), (BLOCK - 1, 3), (TASK + 1, 1), (TASK + 1, 3), (7, 0), (0, 0)] {
            let x: Vec<f16> = (0..row * rows).map(|i| f16::from_f32((i % 100) as f32)).collect();
            let expected: Vec<f16> =
                x.iter().enumerate().map(|(i, x)| *x + f16::from_f32((i % row % 10) as f32)).collect();
            for threads in [&Threads::serial(), &two] {
                let mut y = vec![f16::NAN; x.len()];
                f16::rewrite_rows(threads, row, &x, &mut y, |_, first, mut wide| {
                    assert_eq!((wide.len() % row.max(1), first % row.max(1)), (0, 0));
                    assert!(x[first..].iter().zip(wide.source()).all(|(x, wide)| f32::from(*x) == *wide));
                    for i in 0..wide.len() {
                        let value = wide.source()[i] + (i % row % 10) as f32;
                        wide.set(i, value);
                    }
                });
                assert_eq!(y, expected, "{rows} rows of {row}");
            }
        }
    }

    #[test]
    fn a_tensor_that_has_the_type_is_shared() {
        let x = Array::new(vec![1f64, 2.0], &[2]).expect("two");
        assert!(converted(&x, DType::Float64, &Threads::serial()).expect("a view").shares_storage_with(&x));
        assert_eq!(read_as::<f32>(&x, &Threads::serial()).expect("numbers"), [1.0, 2.0]);
    }
}
