//! CPU kernels: the forms of matrix products that the planner compares, for the types of a step's inputs.

use candle_plan_kernels::gemm::{Format, PackedB, ProductCase, ProductSizes, RightCase};
use candle_plan_kernels::int8::{IntegerCase, Integers};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::lowbit::LowBitCase;
use candle_plan_kernels::products;
use candle_plan_kernels::rounded::RoundedCase;

use super::matrices::is_single;
use super::planned::CpuOperands;
use crate::form::Alternative;
use crate::kernel::Memory;
use crate::ops::matmul_nbits::MatMulNBits;
use crate::ops::matrices::ordered;
use crate::types::{TensorType, Types};
use crate::work;

/// The assumed number of rows of `A` if it is unknown.
const TYPICAL_ROWS: usize = 1;
/// The same for a matrix of `bf16`, which is packed for one form. A form for several rows takes little more time for one row;
/// a form for one row takes several times as long for many rows.
const TYPICAL_ROUNDED_ROWS: usize = 4;

/// Whether to pack B in the narrowest type that holds its numbers exactly: if the planner expects 16-bit numbers to be as
/// fast, or if memory is low.
pub(super) fn is_narrow(operands: &CpuOperands, trans_a: bool) -> bool {
    operands.memory == Memory::Low || products::prefers_half(known_rows(operands, trans_a))
}

/// Whether to keep a matrix of `bf16` in 16 bits where its numbers are multiplied as `f32`: if products are then faster, or
/// if memory is low.
pub(super) fn is_rounded_narrow(operands: &CpuOperands) -> bool {
    operands.memory == Memory::Low || products::prefers_rounded_half(Isa::get(), rounded_rows(operands))
}

/// The number of rows for which to pack a matrix of `bf16`.
pub(super) fn rounded_rows(operands: &CpuOperands) -> usize {
    rows_of(operands, false).unwrap_or(TYPICAL_ROUNDED_ROWS)
}

/// The number of rows of all matrices of `A`; a typical one if it is unknown.
fn known_rows(operands: &CpuOperands, trans_a: bool) -> usize {
    rows_of(operands, trans_a).unwrap_or(TYPICAL_ROWS)
}

/// The same, if it is known.
fn rows_of(operands: &CpuOperands, trans_a: bool) -> Option<usize> {
    let a = operands.constants.types.first().copied().flatten().and_then(|a| a.tensor().ok());
    a.and_then(|a| rows(a, trans_a))
}

/// The number of rows of all matrices of `A`, if it is known.
fn rows(a: &TensorType, trans_a: bool) -> Option<usize> {
    usize::try_from(work::count(a)?.checked_div(work::size_from_end(a, usize::from(trans_a))?)?).ok()
}

/// Returns the forms of one product of two stacks. If B is packed, the list has the forms of every possible format. It is
/// empty if sizes of B are unknown, or if the product is not computed in `f32`.
pub(super) fn float(packed: Option<&[PackedB]>, inputs: &Types, [trans_a, trans_b]: [bool; 2]) -> Vec<Alternative> {
    let (isa, is_float) = (Isa::get(), inputs.tensor(1).is_ok_and(|b| is_single(b.dtype)));
    let Some(sizes) = sizes(inputs, [trans_a, trans_b], TYPICAL_ROWS).filter(|_| is_float) else { return Vec::new() };
    let ProductSizes { m, n, k } = sizes;
    let strides = |transposed: bool, [rows, columns]: [usize; 2]| if transposed { [1, rows] } else { [columns, 1] };
    let operands = match packed {
        Some(packed) => {
            let narrow = packed.iter().map(PackedB::format).filter(|format| *format != Format::Float32);
            [Format::Float32].into_iter().chain(narrow.take(1)).map(|format| PackedB::case_of(isa, n, format)).collect()
        }
        None => vec![RightCase::Plain(strides(trans_b, [k, n]))],
    };
    let of = |b| products::alternatives(&ProductCase { isa, sizes, a: strides(trans_a, [m, k]), b });
    Alternative::all(operands.into_iter().flat_map(of))
}

/// Returns the forms of a product of `A` and rows of codes of few bits.
pub(super) fn low_bit(inputs: &Types, op: &MatMulNBits) -> Vec<Alternative> {
    let Ok(a) = inputs.tensor(0) else { return Vec::new() };
    let MatMulNBits { n, k, bits, block, rounds_a, .. } = *op;
    let sizes = ProductSizes { m: rows(a, false).unwrap_or(TYPICAL_ROWS), n, k };
    let case = LowBitCase { isa: Isa::get(), sizes, bits, block, rounds: rounds_a };
    Alternative::all(products::low_bit_alternatives(&case))
}

/// Returns the forms of a product of `A` and a matrix of `bf16`, whose numbers stay in 16 bits if that is as fast. The list
/// is empty if sizes of the matrix are unknown.
pub(super) fn rounded(inputs: &Types, trans_w: bool) -> Vec<Alternative> {
    let Some(sizes) = sizes(inputs, [false, trans_w], TYPICAL_ROUNDED_ROWS) else { return Vec::new() };
    let isa = Isa::get();
    let case = RoundedCase { isa, sizes, is_narrow: products::prefers_rounded_half(isa, sizes.m) };
    Alternative::all(products::rounded_alternatives(&case))
}

/// Returns the forms of a product of rows of `A`, which it converts to codes, and `N` rows of codes. `again` is the
/// percentage of codes that instructions that saturate multiply twice.
pub(super) fn quantized(inputs: &Types, again: usize) -> Vec<Alternative> {
    let case = sizes(inputs, [false, true], TYPICAL_ROWS)
        .map(|sizes| IntegerCase::new(Isa::get(), sizes, Integers::Rows { again }));
    Alternative::all(case.map(|case| products::integer_alternatives(&case)).unwrap_or_default())
}

/// Returns the forms of one product of two stacks of 8-bit codes. For products of [differences](Integers::Differences), the
/// list has the forms for exact sums. It is empty if sizes of B are unknown.
pub(super) fn integer(inputs: &Types, are_codes: bool) -> Vec<Alternative> {
    let operands = if are_codes { Integers::Codes } else { Integers::Differences { is_exact: true } };
    let case = sizes(inputs, [false; 2], TYPICAL_ROWS).map(|sizes| IntegerCase::new(Isa::get(), sizes, operands));
    Alternative::all(case.map(|case| products::integer_alternatives(&case)).unwrap_or_default())
}

/// The sizes of one product of two stacks of matrices. If the number of rows is unknown, it is `typical`.
fn sizes(inputs: &Types, [trans_a, trans_b]: [bool; 2], typical: usize) -> Option<ProductSizes> {
    let (a, b) = (inputs.tensor(0).ok()?, inputs.tensor(1).ok()?);
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
    Some(ProductSizes { m: m.unwrap_or(typical), n, k })
}
