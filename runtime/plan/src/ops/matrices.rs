//! Matrices as the kernels read them, and packed.

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
use crate::value::Array;

/// The dimensions of an operand as the product sees them.
pub(super) fn ordered<D: Clone>(dims: &[D], transposed: bool) -> Result<Vec<D>> {
    let mut dims = dims.to_vec();
    match dims.len() {
        _ if !transposed => {}
        0 | 1 => bail!("an operand of {} dimensions has no matrices to be transposed", dims.len()),
        rank => dims.swap(rank - 2, rank - 1),
    }
    Ok(dims)
}

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

/// The matrices of a stack, each packed.
pub(super) fn pack_all(b: &Array, transposed: bool) -> Result<Vec<PackedB>> {
    let (k, n) = match *ordered(b.dims(), transposed)? {
        [k] => (k, 1),
        [.., k, n] => (k, n),
        [] => bail!("a matrix product takes no scalars"),
    };
    if k * n == 0 {
        return Ok(Vec::new());
    }
    let data = singles(b)?;
    Ok(data.chunks_exact(k * n).map(|data| pack(data, [k, n], transposed)).collect())
}

/// A constant right side of `[k, n]`, packed.
pub(super) fn pack(data: &[f32], [k, n]: [usize; 2], transposed: bool) -> PackedB {
    PackedB::narrowest(Isa::get(), &Threads::serial(), k, n, &matrix(data, [k, n], transposed))
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
