//! The planner of matrix products: lists every form with its cost, and chooses the cheapest.

use super::differences::{AsFloats, AsIntegers};
use crate::form::{cheapest, listed};
use crate::gemm::tiles::Tiles;
use crate::gemm::{time_of_vector, FewRows, Format, InPlace, PackedPanels, Packing, ProductCase, ProductForm, Turned};
use crate::int8::{DotForm, IntegerCase, IntegerForm};
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::lowbit::DotsInTiles;
use crate::lowbit::{DotsInAdvance, DotsInRegisters, InAdvance, InRegisters, LowBitCase, LowBitForm};
#[cfg(target_arch = "aarch64")]
use crate::rounded::InQuads;
#[cfg(target_arch = "x86_64")]
use crate::rounded::InTiles;
use crate::rounded::{Pairs, RoundedCase, RoundedForm, Widened};

// The tables of forms. Of two forms with equal costs, the planner chooses the first.

/// The forms of products in `f32`.
pub(crate) const FLOAT: &[&dyn ProductForm] = &[&Turned { choose: float }, &PackedPanels, &FewRows, &InPlace, &Packing];
/// The forms of products in `f32` with a matrix of codes of few bits.
pub(crate) const LOW_BIT: &[&dyn LowBitForm] = &[
    &InRegisters,
    &InAdvance,
    &DotsInRegisters,
    &DotsInAdvance,
    #[cfg(target_arch = "x86_64")]
    &DotsInTiles,
];
/// The forms of products with a matrix of `bf16`.
pub(crate) const ROUNDED: &[&dyn RoundedForm] = &[
    #[cfg(target_arch = "x86_64")]
    &InTiles,
    #[cfg(target_arch = "aarch64")]
    &InQuads,
    &Pairs,
    &Widened { product: cost },
];
/// The forms of products of 8-bit codes.
pub(crate) const INTEGER: &[&dyn IntegerForm] =
    &[&DotForm::Vectors, &DotForm::Tiles, &DotForm::Words, &AsFloats { product: cost }, &AsIntegers];

/// Returns the cheapest form of a product in `f32`.
///
/// # Panics
/// No form fits; the forms of the table cover every product.
pub(super) fn float(case: &ProductCase) -> &'static dyn ProductForm {
    cheapest(FLOAT, case).expect("a form fits")
}

/// Returns the cheapest form of a product with codes of few bits.
///
/// # Panics
/// As [`float`].
pub(super) fn low_bit(case: &LowBitCase) -> &'static dyn LowBitForm {
    cheapest(LOW_BIT, case).expect("a form fits")
}

/// Returns the cheapest form of a product with a matrix of `bf16`.
///
/// # Panics
/// As [`float`].
pub(super) fn rounded(case: &RoundedCase) -> &'static dyn RoundedForm {
    cheapest(ROUNDED, case).expect("a form fits")
}

/// Returns the cheapest form of a product of 8-bit codes.
///
/// # Panics
/// As [`float`].
pub(super) fn integer(case: &IntegerCase) -> &'static dyn IntegerForm {
    cheapest(INTEGER, case).expect("a form fits")
}

/// Whether 16-bit numbers are at least as fast as `f32` in products with this number of rows, if they represent every
/// number of the packed operand exactly.
pub fn prefers_half(rows: usize) -> bool {
    time_of_vector(Format::Float16, rows) <= time_of_vector(Format::Float32, rows)
}

/// Whether numbers of a matrix of `bf16` that are multiplied as `f32` stay in 16 bits, because products with this number of
/// rows take less time than in `f32`: one tile converts the numbers while it waits for memory.
pub fn prefers_rounded_half(isa: Isa, rows: usize) -> bool {
    prefers_half(rows) && rows <= Tiles::of(isa).rows()
}

/// The cost of the cheapest form of a product in `f32`: the expected time on one thread, where an instruction on a vector of
/// 16 numbers costs 1.
pub(crate) fn cost(case: &ProductCase) -> f64 {
    if case.sizes.m == 0 || case.sizes.n == 0 {
        return 0.0;
    }
    float(case).cost(case)
}

/// Returns every form that can compute a product in `f32`, by name, with its cost. An empty product has no form.
pub fn alternatives(case: &ProductCase) -> Vec<(String, f64)> {
    if case.sizes.m == 0 || case.sizes.n == 0 {
        return Vec::new();
    }
    listed(FLOAT, case)
}

/// Returns every form that can compute a product with codes of few bits, as [`alternatives`].
pub fn low_bit_alternatives(case: &LowBitCase) -> Vec<(String, f64)> {
    listed(LOW_BIT, case)
}

/// Returns every form that can compute a product with a matrix of `bf16`, as [`alternatives`].
pub fn rounded_alternatives(case: &RoundedCase) -> Vec<(String, f64)> {
    listed(ROUNDED, case)
}

/// Returns every form that can compute a product of 8-bit codes, as [`alternatives`]. The times do not include the time to
/// pack a matrix of codes.
pub fn integer_alternatives(case: &IntegerCase) -> Vec<(String, f64)> {
    listed(INTEGER, case)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{packed_name, PackedB, ProductSizes, RightCase};
    use crate::int8::{Dots, Integers, Multiplied};
    #[cfg(not(target_arch = "aarch64"))]
    use crate::rounded::PairSums;

    /// The choice by thresholds, which the costs must reproduce.
    fn by_thresholds(case: &ProductCase) -> &'static str {
        let (tiles, ProductSizes { m, n, k }) = (Tiles::of(case.isa), case.sizes);
        let is_row = n == 1 && m != 1 && case.a[0] == 1;
        match case.b {
            RightCase::Packed { format: Format::Float32, .. } if is_row => "transposed, as one row",
            RightCase::Packed { format, .. } => packed_name(format),
            RightCase::Plain(_) if is_row => "transposed, as one row",
            RightCase::Plain([_, column]) if column != 1 => "B packed on the way",
            RightCase::Plain(_) if k > 0 && m <= 4 && n > tiles.lanes * tiles.vectors(m.min(tiles.rows())) => {
                "B in place, row by row"
            }
            RightCase::Plain([row, _]) => match row < 1 << 24 && (k * row <= 8192 || m <= 2 * tiles.rows()) {
                true => "B in place",
                false => "B packed on the way",
            },
        }
    }

    /// The strides of a `rows x columns` matrix in each order, and inside a wider one.
    fn strides([rows, columns]: [usize; 2]) -> [[usize; 2]; 4] {
        [[columns, 1], [1, rows], [columns + 100, 1], [1 << 25, 1]]
    }

    #[test]
    fn the_cheapest_form_is_the_one_by_thresholds() {
        let formats = [Format::Float32, Format::Float16, Format::Bfloat16];
        for (isa, m) in Isa::available().flat_map(|isa| (1..40).chain([63, 200, 3000]).map(move |m| (isa, m))) {
            let tiles = Tiles::of(isa);
            let edges = tiles.lanes * tiles.vectors(m.min(tiles.rows()));
            for n in (1..20).chain([edges - 1, edges, edges + 1, 2 * edges, 2 * edges + 1, 500, 1024, 1025, 5000]) {
                for k in [0, 1, 2, 3, 8, 63, 64, 65, 256, 600, 8192, 8193, 100_000] {
                    let sizes = ProductSizes { m, n, k };
                    let packed = formats.map(|format| PackedB::case_of(isa, n, format));
                    for b in packed.into_iter().chain(strides([k, n]).map(RightCase::Plain)) {
                        for a in strides([m, k]).into_iter().take(3) {
                            let case = ProductCase { isa, sizes, a, b };
                            assert_eq!(float(&case).name(&case), by_thresholds(&case), "{case:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn few_rows_prefer_16_bits() {
        assert!((0..=8).all(prefers_half));
        assert!((9..100).chain([1 << 40]).all(|rows| !prefers_half(rows)));
        for isa in Isa::available() {
            let most = Tiles::of(isa).rows().min(8);
            assert!((0..100).all(|rows| prefers_rounded_half(isa, rows) == (rows <= most)), "{isa:?}");
        }
    }

    /// Sizes around every size at which a form might be preferred.
    fn every_size() -> impl Iterator<Item = ProductSizes> {
        let sizes = [1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1000];
        let pairs = (1..30).chain([63, 64, 65, 300, 4096]).flat_map(move |m| sizes.map(|n| (m, n)));
        pairs.flat_map(move |(m, n)| sizes.map(|k| ProductSizes { m, n, k }))
    }

    /// A product of codes of 4 bits in blocks of 32.
    fn codes(isa: Isa, sizes: ProductSizes, rounds: bool) -> LowBitCase {
        LowBitCase { isa, sizes, bits: 4, block: 32, rounds }
    }

    #[test]
    fn one_tile_of_rows_converts_codes_in_registers() {
        for (isa, sizes) in Isa::available().flat_map(|isa| every_size().map(move |sizes| (isa, sizes))) {
            let case = codes(isa, sizes, false);
            let rows = if isa == Isa::SCALAR { 2 } else { 6 };
            let expected =
                if sizes.m <= rows { "codes converted in registers" } else { "codes converted once for all rows" };
            assert_eq!(low_bit(&case).name(&case), expected, "{case:?}");
        }
    }

    /// Codes of 8 bits only with instructions for bytes that do not saturate. With few columns, rounding the rows takes a
    /// noticeable part of the time.
    #[test]
    fn rows_have_8_bits_where_the_caller_permits_it() {
        let wide = || every_size().filter(|sizes| sizes.n >= 63);
        for (isa, sizes) in Isa::available().flat_map(|isa| wide().map(move |sizes| (isa, sizes))) {
            for bits in [2, 4, 8] {
                let case = LowBitCase { bits, ..codes(isa, sizes, true) };
                let saturates = Dots::of(isa).saturates() && bits == 8;
                let is_rounded = low_bit(&case).name(&case).starts_with("rows in 8 bits");
                let is_slow = matches!(Dots::of(isa).name(), "NEON" | "NEON dotprod");
                assert!(is_rounded != saturates || is_slow, "{case:?}");
            }
        }
    }

    /// In a short column of an odd number of elements, the zero after the last one counts.
    #[test]
    #[cfg(not(target_arch = "aarch64"))]
    fn pairs_are_multiplied_where_that_takes_less_time() {
        let deep = || every_size().filter(|sizes| sizes.k % 2 == 0 || sizes.k > 8);
        for (isa, sizes) in Isa::available().flat_map(|isa| deep().map(move |sizes| (isa, sizes))) {
            for is_narrow in [false, true] {
                let case = RoundedCase { isa, sizes, is_narrow };
                let name = rounded(&case).name(&case);
                let is_fast = PairSums::of(isa).map(|sums| sums.time() == 1.0);
                let forms = rounded_alternatives(&case);
                let has_tiles = forms.iter().any(|(name, _)| name == "bfloat16, AMX");
                let others = forms.len() - usize::from(has_tiles);
                assert_eq!(others, 1 + usize::from(is_fast.is_some()), "{case:?}");
                if has_tiles {
                    let is_whole = sizes.n % 32 == 0 && sizes.k % 32 == 0;
                    if sizes.m >= 4 && is_whole || sizes.m.min(sizes.n).min(sizes.k) >= 32 {
                        assert_eq!(name, "bfloat16, AMX", "{case:?} {forms:?}");
                    }
                } else if is_fast == Some(true) {
                    assert_eq!(name, "bfloat16, AVX512_BF16", "{case:?}");
                } else if is_fast.is_none() || sizes.m >= 16 {
                    assert_eq!(name, "bfloat16 as float32", "{case:?}");
                }
            }
        }
    }

    /// For one row, vector instructions read the weights from memory in less time than those of AMX.
    #[test]
    fn tiles_of_halves_have_several_rows() {
        for (isa, m) in Isa::available().flat_map(|isa| [1, 4, 16, 128].map(|m| (isa, m))) {
            for [n, k] in [[768, 768], [3072, 768], [768, 3072]] {
                let case = RoundedCase { isa, sizes: ProductSizes { m, n, k }, is_narrow: true };
                if rounded_alternatives(&case).iter().any(|(name, _)| name == "bfloat16, AMX") {
                    assert_eq!(rounded(&case).name(&case) == "bfloat16, AMX", m > 1, "{case:?}");
                }
            }
        }
    }

    #[test]
    fn codes_have_tiles_from_32_bytes_on() {
        for (isa, sizes) in Isa::available().flat_map(|isa| every_size().map(move |sizes| (isa, sizes))) {
            let case = IntegerCase::new(isa, sizes, Integers::Codes);
            let Multiplied::Codes(dots) = integer(&case).multiplied(&case) else { panic!("{case:?}") };
            assert_eq!(dots, case.dots.for_depth(1, sizes.k), "{case:?}");
            assert_eq!(integer(&case).name(&case), format!("int8, {}", dots.name()));
        }
    }

    /// Only rows that a product converts to codes have 16 bits, and only where many pairs of products of bytes saturate.
    #[test]
    fn rows_are_multiplied_in_16_bits_where_many_bytes_saturate() {
        let deep = || every_size().filter(|sizes| sizes.k >= 63);
        for (isa, sizes) in Isa::available().flat_map(|isa| deep().map(move |sizes| (isa, sizes))) {
            for again in [0, 20, 30, 100] {
                let case = IntegerCase::new(isa, sizes, Integers::Rows { again });
                let is_wide = case.dots.name() == "AVX2" && again > 25;
                assert_eq!(integer(&case).name(&case) == "int8, AVX2, 16 bits", is_wide, "{case:?}");
            }
        }
    }

    #[test]
    fn exact_sums_are_in_float() {
        for (isa, sizes) in Isa::available().flat_map(|isa| every_size().map(move |sizes| (isa, sizes))) {
            for is_exact in [false, true] {
                let case = IntegerCase::new(isa, sizes, Integers::Differences { is_exact });
                let expected = if is_exact { Multiplied::Floats } else { Multiplied::Integers };
                assert_eq!(integer(&case).multiplied(&case), expected, "{case:?}");
            }
        }
    }
}
