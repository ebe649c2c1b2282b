//! CPU kernels: matrices in the formats that the kernels read, and packed ones.

use candle_plan_kernels::gemm::{
    self, packed_name, prefers_half, Format, Matrix, PackedB, Plain, ProductCase, RightCase, Sizes,
};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::threads::Threads;

use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::float::read_f32;
use crate::form::{Alternative, Form};
use crate::kernel::{Constants, Memory};
use crate::ops::matrices::ordered;
use crate::types::{TensorType, Types};
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
    let data = read_f32(b)?;
    Ok(data.chunks_exact(k * n).map(|data| pack(data, [k, n], transposed, narrow)).collect())
}

/// Packs a constant B `[k, n]`. With `narrow`, it uses the narrowest type that holds the numbers exactly.
pub(super) fn pack(data: &[f32], [k, n]: [usize; 2], transposed: bool, narrow: bool) -> PackedB {
    let pack = if narrow { PackedB::narrowest } else { PackedB::new };
    pack(Isa::get(), &Threads::serial(), k, n, &matrix(data, [k, n], transposed))
}

/// The assumed number of rows of `A` if it is unknown.
const TYPICAL_ROWS: usize = 1;

/// Whether to pack B in the narrowest type that holds its numbers exactly: if the planner expects 16-bit numbers to be as
/// fast, or if memory is low.
pub(super) fn is_narrow(constants: &Constants, trans_a: bool) -> bool {
    let a = constants.types.first().copied().flatten().and_then(|a| a.tensor().ok());
    constants.memory == Memory::Low || prefers_half(a.and_then(|a| rows(a, trans_a)).unwrap_or(TYPICAL_ROWS))
}

/// The number of rows of all matrices of `A`, if it is known.
fn rows(a: &TensorType, trans_a: bool) -> Option<usize> {
    usize::try_from(work::count(a)?.checked_div(work::size_from_end(a, usize::from(trans_a))?)?).ok()
}

/// Returns the forms of one product of two stacks. If B is packed, the list has the forms of every possible format. It is
/// empty if sizes of B are unknown, or if the product is not computed in `f32`.
pub(super) fn alternatives(
    packed: Option<&[PackedB]>,
    inputs: &Types,
    [trans_a, trans_b]: [bool; 2],
) -> Vec<Alternative> {
    let (isa, cases) = (Isa::get(), sizes(inputs, [trans_a, trans_b]));
    let Some(sizes) = cases else { return Vec::new() };
    let Sizes { m, n, k } = sizes;
    let strides = |transposed: bool, [rows, columns]: [usize; 2]| if transposed { [1, rows] } else { [columns, 1] };
    let operands = match packed {
        Some(packed) => {
            let narrow = packed.iter().map(PackedB::format).filter(|format| *format != Format::Float32);
            [Format::Float32].into_iter().chain(narrow.take(1)).map(|format| PackedB::case_of(isa, n, format)).collect()
        }
        None => vec![RightCase::Plain(strides(trans_b, [k, n]))],
    };
    let of = |b| gemm::alternatives(&ProductCase { isa, sizes, a: strides(trans_a, [m, k]), b });
    Alternative::all(operands.into_iter().flat_map(of))
}

/// The sizes of one product of two stacks of matrices; rows of unknown number count as typical.
fn sizes(inputs: &Types, [trans_a, trans_b]: [bool; 2]) -> Option<Sizes> {
    let (a, b) = (inputs.tensor(0).ok()?, inputs.tensor(1).ok().filter(|b| is_single(b.dtype))?);
    let (stack, k, n) = match *ordered(&b.sizes()?, trans_b).ok()? {
        [k] => (1, k, 1),
        [ref stack @ .., k, n] => (work::product(stack), k, n),
        [] => return None,
    };
    // Matrices of A that meet the same matrix of B are one tall matrix, unless they are stored transposed.
    let m = match a.rank()? {
        1 => Some(1),
        _ if stack == 1 && !trans_a => rows(a, trans_a),
        _ => work::size_from_end(a, usize::from(!trans_a)).and_then(|m| usize::try_from(m).ok()),
    };
    Some(Sizes { m: m.unwrap_or(TYPICAL_ROWS), n, k })
}

/// Whether products of this type are computed in `f32`.
pub(super) fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float16 | DType::Bfloat16)
}

/// Describes how the right-hand sides are packed.
pub(super) fn form(packed: &[PackedB]) -> Form {
    let mut formats: Vec<Format> = packed.iter().map(PackedB::format).collect();
    formats.dedup();
    let kernel = match formats[..] {
        [format] => packed_name(format),
        _ => packed_name(Format::Float32),
    };
    Form::named(kernel).packed(packed.iter().map(PackedB::bytes).sum())
}
