//! CPU kernels: matrices in the formats that the kernels read, and packed ones.

use candle_plan_kernels::gemm::{packed_name, Format, Matrix, PackedB, Plain};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;

use super::convert::read_f32;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::form::KernelForm;
use crate::ops::matrices::ordered;
use crate::value::{list, Array};

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
    let data = read_f32(b)?;
    list(data.chunks_exact(k * n).map(|data| pack(data, [k, n], transposed, narrow)))
}

/// Packs a constant B `[k, n]`. With `narrow`, it uses the narrowest type that holds the numbers exactly.
pub(super) fn pack(data: &[f32], [k, n]: [usize; 2], transposed: bool, narrow: bool) -> PackedB {
    let pack = if narrow { PackedB::narrowest } else { PackedB::new };
    pack(Isa::get(), &Threads::serial(), k, n, &matrix(data, [k, n], transposed))
}

/// Whether products of this type are computed in `f32`.
pub(super) fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float16 | DType::Bfloat16)
}

/// Describes how the right-hand sides are packed.
pub(super) fn form(packed: &[PackedB]) -> KernelForm {
    let first = packed.first().map(PackedB::format);
    let common = first.filter(|format| packed.iter().all(|packed| packed.format() == *format));
    let kernel = packed_name(common.unwrap_or(Format::Float32));
    KernelForm::named(kernel).packed(packed.iter().map(PackedB::bytes).sum())
}
