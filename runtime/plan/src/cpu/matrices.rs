//! CPU kernels: matrices in the formats that the kernels read, and packed ones.

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

/// Describes a matrix `[rows, columns]` whose data is stored in this order or transposed.
pub(super) fn matrix(data: &[f32], [rows, columns]: [usize; 2], transposed: bool) -> Matrix<'_> {
    match transposed {
        true => Matrix { data, row: 1, column: rows },
        false => Matrix::contiguous(data, columns),
    }
}

/// Like [`matrix`], for any element type.
pub(super) fn plain<T>(data: &[T], [rows, columns]: [usize; 2], transposed: bool) -> Plain<'_, T> {
    match transposed {
        true => Plain { data, row: 1, column: rows },
        false => Plain { data, row: columns, column: 1 },
    }
}

/// [Packs](pack) each matrix of a stack.
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

/// Packs a constant B `[k, n]`. With `narrow`, it uses the narrowest type that holds the numbers exactly.
pub(super) fn pack(data: &[f32], [k, n]: [usize; 2], transposed: bool, narrow: bool) -> PackedB {
    let pack = if narrow { PackedB::narrowest } else { PackedB::new };
    pack(Isa::get(), &Threads::serial(), k, n, &matrix(data, [k, n], transposed))
}

/// The largest number of rows for which a product is limited by memory bandwidth.
const FEW: u64 = 8;

/// Whether to pack B in the narrowest type that holds its numbers exactly: if `A` has few rows or an unknown number, or
/// if memory is low. Half the bytes take little more than half the time for one row, and the same time for eight. With
/// more rows, widening the panels costs time: a sixth of the total for 16 rows, a thirtieth for 128.
pub(super) fn is_narrow(constants: &Constants, trans_a: bool) -> bool {
    let a = constants.types.first().copied().flatten().and_then(|a| a.tensor().ok());
    let rows = a.and_then(|a| work::count(a)?.checked_div(work::size_from_end(a, usize::from(trans_a))?));
    constants.memory == Memory::Low || rows.is_none_or(|rows| rows <= FEW)
}

/// Whether products of this type are computed in `f32`.
pub(super) fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float16 | DType::Bfloat16)
}

/// Returns the elements of a type whose products [are computed in `f32`](is_single).
pub(super) fn singles(array: &Array) -> Result<Cow<'_, [f32]>> {
    dispatch!("a matrix", array.dtype(), [f32, f16, bf16], T => Ok(T::widen(array.read::<T>()?)))
}

/// Describes how the right-hand sides are packed.
pub(super) fn form(packed: &[PackedB]) -> Form {
    let mut formats: Vec<Format> = packed.iter().map(PackedB::format).collect();
    formats.dedup();
    let kernel = match formats[..] {
        [format] if format != Format::Float32 => format!("B prepacked as {}", format.name()),
        _ => "B prepacked".to_owned(),
    };
    Form::named(kernel).packed(packed.iter().map(PackedB::bytes).sum())
}
