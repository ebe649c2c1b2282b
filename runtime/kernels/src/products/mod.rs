//! Matrix products: the choice among their forms.
//!
//! The tables of `planner.rs` list every form: of products in `f32` ([`gemm`](crate::gemm)), of products with codes of few
//! bits ([`lowbit`](crate::lowbit)), with a matrix of `bf16` ([`rounded`](crate::rounded)), and of products of 8-bit codes
//! ([`int8`](crate::int8)). A product with packed 8-bit codes has the form for which they are packed ([`pack_int8`]), and so
//! has one with a matrix of `bf16` ([`pack_rounded`]). The form of any other product is chosen in every run.

mod differences;
pub(crate) mod planner;

pub use planner::rounded_alternatives;
pub use planner::{alternatives, integer_alternatives, low_bit_alternatives, prefers_half, prefers_rounded_half};

use crate::gemm::{Bias, Finish, Matrix, PackedB, Problem, ProductSizes, Right, Shared};
use crate::int8::{self, Dots, IntegerCase, Integers, Multiplied, Scaled, Weights};
use crate::isa::Isa;
use crate::lowbit::{PackedCodes, Product};
use crate::rounded::{self, Halves, PackedRounded, RoundedCase, Stored};
use crate::threads::{is_worth_splitting, Threads};

/// `out = a · b + bias`, where `out` is `[m, n]`. Calls `finish` on every row of every block.
///
/// # Panics
/// The slices are too short for the sizes, or `b` was packed from a smaller matrix.
#[allow(clippy::too_many_arguments)]
pub fn multiply(
    isa: Isa,
    threads: &Threads,
    sizes: ProductSizes,
    a: &Matrix,
    b: &Right,
    bias: Bias,
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let ProductSizes { m, n, k } = sizes;
    let problem = Problem::new(isa, sizes, a, b, bias, finish);
    assert_eq!(out.len(), m * n, "the output does not fit a product of {sizes:?}");
    if m == 0 || n == 0 {
        return;
    }
    let (case, serial) = (problem.case(), Threads::serial());
    let threads = if is_worth_splitting(m * n * k, case.right_bytes()) { threads } else { &serial };
    planner::float(&case).run(&problem, threads, Shared::new(out));
}

/// `out = a · Wᵀ`, where `a` is `[m, k]` and `out` is `[m, n]`. If `rounds`, blocks of `a` are rounded to 8 bits where this is
/// faster ([`lowbit`](crate::lowbit)). Calls `finish` on every row of every block.
///
/// # Panics
/// The slices do not fit the sizes.
pub fn multiply_low_bit(
    threads: &Threads,
    rounds: bool,
    m: usize,
    a: &[f32],
    w: &PackedCodes,
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let is_empty = out.is_empty();
    let product = Product::new(m, a, w, out, finish);
    if is_empty {
        return;
    }
    let case = product.case(rounds);
    let ProductSizes { m, n, k } = case.sizes;
    let serial = Threads::serial();
    let threads = if is_worth_splitting((m * n).saturating_mul(k), w.bytes()) { threads } else { &serial };
    planner::low_bit(&case).run(&product, threads);
}

/// `out = round(a) · b`, where `a` is `[m, k]`, and `out` is `[m, n]`. `round` rounds to the nearest `bf16`. Numbers below
/// `2⁻¹²⁶` in magnitude may count as zero. Calls `finish` on every row of every block.
///
/// # Panics
/// The slices do not fit the sizes, or `b` was packed for another instruction set.
pub fn multiply_rounded(
    isa: Isa,
    threads: &Threads,
    sizes: ProductSizes,
    a: &[f32],
    b: &PackedRounded,
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let (ProductSizes { m, n, k }, serial) = (sizes, Threads::serial());
    let pairs = match is_worth_splitting((m * n).saturating_mul(k), b.bytes()) {
        true => threads,
        false => &serial,
    };
    match &b.0 {
        Stored::Pairs(b) => {
            let is_empty = out.is_empty();
            let product = rounded::Product::new(m, a, b, out, finish);
            if !is_empty {
                product.run(pairs);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Stored::Tiles(b) => {
            let is_empty = out.is_empty();
            let product = rounded::amx::Product::new(m, a, b, out, finish);
            if !is_empty {
                product.run(threads);
            }
        }
        #[cfg(target_arch = "aarch64")]
        Stored::Quads(b) => {
            rounded::quads::Product::new(m, a, b, out, finish).run(pairs);
        }
        Stored::Widened(b) => multiply_widened(isa, threads, sizes, a, b, out, finish),
    }
}

/// Numbers of rounded rows that stay in the L2 cache until they are multiplied, and of a matrix that stays there meanwhile.
const ROUNDED: usize = 1 << 14;
const CACHED: usize = 1 << 16;
/// The rows that are multiplied together: whole tiles of every instruction set.
const WHOLE: usize = 24;

/// [`multiply_rounded`] as a product in `f32`. With a small matrix, rounding takes a noticeable part of the time: some rows
/// at a time are rounded and multiplied, so that the rounded rows do not leave the cache.
fn multiply_widened(
    isa: Isa,
    threads: &Threads,
    sizes: ProductSizes,
    a: &[f32],
    b: &PackedB,
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let ProductSizes { m, n, k } = sizes;
    let serial = Threads::serial();
    if n == 0 || k.saturating_mul(n) > CACHED {
        let a = rounded::round(isa, threads, a);
        let a = Matrix::contiguous(&a, k);
        return multiply(isa, threads, sizes, &a, &Right::Packed(b), Bias::None, out, finish);
    }
    let threads = if is_worth_splitting((m * n).saturating_mul(k), b.bytes()) { threads } else { &serial };
    let rows = (ROUNDED / k.max(1)).min(m.div_ceil(2 * threads.count())).max(1).next_multiple_of(WHOLE);
    threads.for_each_chunk(out, rows * n, |i, out| {
        let (first, sizes) = (i * rows, ProductSizes { m: out.len() / n, n, k });
        let a = rounded::round(isa, &serial, &a[first * k..][..sizes.m * k]);
        let finish = finish.map(|finish| move |run: &mut [f32], offset: usize| finish(run, offset + first * n));
        let finish = finish.as_ref().map(|finish| finish as Finish);
        let a = Matrix::contiguous(&a, k);
        multiply(isa, &serial, sizes, &a, &Right::Packed(b), Bias::None, out, finish);
    });
}

/// Packs a matrix of `bf16` for the fastest form of a product of `rows` rows. With `is_narrow`, numbers that are multiplied
/// as `f32` stay in 16 bits in memory.
///
/// # Panics
/// The data do not fit the sizes.
pub fn pack_rounded(isa: Isa, threads: &Threads, rows: usize, is_narrow: bool, matrix: &Halves) -> PackedRounded {
    let case = RoundedCase { isa, sizes: ProductSizes { m: rows, n: matrix.n, k: matrix.k }, is_narrow };
    planner::rounded(&case).pack(&case, threads, matrix)
}

/// Packs a `[k, n]` matrix of 8-bit codes for the fastest instructions.
///
/// # Panics
/// The strides reach beyond the slice, or the number of zero points is neither one nor the number of columns.
pub fn pack_int8(isa: Isa, k: usize, n: usize, b: &int8::Matrix) -> Weights {
    Weights::new(dots(isa, k, n, Integers::Codes), k, n, b)
}

/// Packs a `[k, n]` matrix of 8-bit codes with the zero point 0, and a scale for each column, for the fastest instructions
/// in [products with rows in `f32`](int8::multiply_rows). They depend on the codes.
///
/// # Panics
/// As [`pack_int8`]; or the number of scales is not the number of columns, or there is another zero point.
pub fn pack_scaled(isa: Isa, k: usize, n: usize, b: &int8::Matrix, scales: &[f32]) -> Scaled {
    let of = |again: usize| dots(isa, k, n, Integers::Rows { again });
    let mut weights = Weights::new(of(0), k, n, b);
    let again = weights.again();
    if of(again) != of(0) {
        weights = Weights::new(of(again), k, n, b);
    }
    Scaled::new(weights, scales, again)
}

/// The fastest instructions for a product with a `[k, n]` matrix of codes.
fn dots(isa: Isa, k: usize, n: usize, operands: Integers) -> Dots {
    let case = IntegerCase::new(isa, ProductSizes { m: 1, n: n.max(1), k }, operands);
    match planner::integer(&case).multiplied(&case) {
        Multiplied::Codes(dots) => dots,
        other => unreachable!("{other:?} fit no codes"),
    }
}

/// Whether a product of differences of codes and zero points is computed in `f32`, not in `i32`. `is_exact` if `f32`
/// represents all of its sums exactly.
pub fn sums_in_float(isa: Isa, sizes: ProductSizes, is_exact: bool) -> bool {
    let case = IntegerCase::new(isa, sizes, Integers::Differences { is_exact });
    planner::integer(&case).multiplied(&case) == Multiplied::Floats
}
