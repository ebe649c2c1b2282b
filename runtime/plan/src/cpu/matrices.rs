//! CPU kernels: matrices as the kernels read them, and packed.

use std::borrow::Cow;

use candle_plan_kernels::gemm::{Format, Matrix, PackedB, Plain};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;
use half::{bf16, f16};

use crate::bail;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::float::Float;
use crate::form::Form;
use crate::kernel::{Constants, Memory};
use crate::ops::matrices::ordered;
use crate::value::Array;
use crate::work;

/// A matrix of `[rows, columns]`, stored as they are or transposed.
pub(super) fn matrix(data: &[f32], [rows, columns]: [usize; 2], transposed: bool) -> Matrix<'_> {
    match transposed {
        true => Matrix { data, row: 1, column: rows },
        false => Matrix::contiguous(data, columns),
    }
}

/// [`matrix`] of any type.
pub(super) fn plain<T>(data: &[T], [rows, columns]: [usize; 2], transposed: bool) -> Plain<'_, T> {
    match transposed {
        true => Plain { data, row: 1, column: rows },
        false => Plain { data, row: columns, column: 1 },
    }
}

/// The matrices of a stack, each [packed](pack).
pub(super) fn pack_all(b: &Array, transposed: bool, narrow: bool) -> Result<Vec<PackedB>> {
    let (k, n) = match *ordered(b.dims(), transposed)? {
        [k] => (k, 1),
        [.., k, n] => (k, n),
        [] => bail!("a matrix product takes no scalars"),
    };
    if k * n == 0 {
        return Ok(Vec::new());
    }
    let data = singles(b)?;
    Ok(data.chunks_exact(k * n).map(|data| pack(data, [k, n], transposed, narrow)).collect())
}

/// A constant right side of `[k, n]`, packed; `narrow`: of as few bits as hold its numbers.
pub(super) fn pack(data: &[f32], [k, n]: [usize; 2], transposed: bool, narrow: bool) -> PackedB {
    let pack = if narrow { PackedB::narrowest } else { PackedB::new };
    pack(Isa::get(), &Threads::serial(), k, n, &matrix(data, [k, n], transposed))
}

/// Rows whose product waits for memory more than it computes.
const FEW: u64 = 8;

/// Whether a right side should be of as few bits as hold its numbers: where the rows of `A` are few, or it is not known how
/// many, and where memory is to be saved. Half the bytes take little more than half the time for one row, and as long for
/// eight; more rows wait for the panels to be widened, 16 of them for a sixth of the time, 128 for a thirtieth.
pub(super) fn is_narrow(constants: &Constants, trans_a: bool) -> bool {
    let a = constants.types.first().copied().flatten().and_then(|a| a.tensor().ok());
    let rows = a.and_then(|a| work::count(a)?.checked_div(work::size_from_end(a, usize::from(trans_a))?));
    constants.memory == Memory::Low || rows.is_none_or(|rows| rows <= FEW)
}

/// Whether the products of a type are computed in `f32`.
pub(super) fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float16 | DType::Bfloat16)
}

/// The elements of a type that [is computed in `f32`](is_single).
pub(super) fn singles(array: &Array) -> Result<Cow<'_, [f32]>> {
    dispatch!("a matrix", array.dtype(), [f32, f16, bf16], T => Ok(T::widen(array.read::<T>()?)))
}

/// How right sides were packed.
pub(super) fn form(packed: &[PackedB]) -> Form {
    let mut formats: Vec<Format> = packed.iter().map(PackedB::format).collect();
    formats.dedup();
    let kernel = match formats[..] {
        [format] if format != Format::Float32 => format!("B prepacked as {}", format.name()),
        _ => "B prepacked".to_owned(),
    };
    Form::named(kernel).packed(packed.iter().map(PackedB::bytes).sum())
}
