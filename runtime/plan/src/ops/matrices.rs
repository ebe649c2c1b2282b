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
use crate::kernel::{Constants, Memory};
use crate::value::{element_count, Array};
use crate::work;

/// The dimensions of an operand as the product sees them.
pub(crate) fn ordered<D: Clone>(dims: &[D], transposed: bool) -> Result<Vec<D>> {
    let mut dims = dims.to_vec();
    match dims.len() {
        _ if !transposed => {}
        0 | 1 => bail!("an operand of {} dimensions has no matrices to be transposed", dims.len()),
        rank => dims.swap(rank - 2, rank - 1),
    }
    Ok(dims)
}

/// The sizes of two stacks of matrices that multiply, of `[m, k]` and `[k, n]` each.
pub(crate) struct Factors {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The dimensions of either stack.
    pub stacks: [Vec<usize>; 2],
    /// Whether an operand is one vector, whose axis the result lacks.
    are_vectors: [bool; 2],
}

impl Factors {
    /// Those of operands of these dimensions, whose matrices may be stored transposed.
    ///
    /// # Errors
    /// They do not multiply.
    pub fn new(a: &[usize], b: &[usize], transposed: [bool; 2]) -> Result<Factors> {
        let (a, b) = (&ordered(a, transposed[0])?[..], &ordered(b, transposed[1])?[..]);
        let (Some((&k, a_rest)), Some((&last, b_rest))) = (a.split_last(), b.split_last()) else {
            bail!("a matrix product takes no scalars");
        };
        let (m, a_stack) = a_rest.split_last().map_or((1, a_rest), |(&m, stack)| (m, stack));
        let (rows, n, b_stack) = b_rest.split_last().map_or((last, 1, b_rest), |(&rows, stack)| (rows, last, stack));
        if k != rows {
            bail!("a matrix of {k} columns does not multiply one of {rows} rows: {a:?} and {b:?}");
        }
        let stacks = [a_stack.to_vec(), b_stack.to_vec()];
        Ok(Factors { m, n, k, stacks, are_vectors: [a.len() == 1, b.len() == 1] })
    }

    /// The dimensions of the product, which is a stack of these.
    ///
    /// # Errors
    /// It has too many elements to be counted.
    pub fn result(&self, mut stack: Vec<usize>) -> Result<Vec<usize>> {
        stack.extend((!self.are_vectors[0]).then_some(self.m));
        stack.extend((!self.are_vectors[1]).then_some(self.n));
        element_count(&stack)?;
        Ok(stack)
    }
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
