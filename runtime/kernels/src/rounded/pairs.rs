//! Products of pairs: an instruction multiplies two numbers of a row by two of a column, and adds both products to a sum.

use super::case::{Halves, RoundedCase, ROUND};
use super::form::RoundedForm;
use super::pack::{PackedPairs, PackedRounded, Stored, PAIRS};
use super::sums::{PairSums, LANES, ROWS, VECTORS};
use crate::form::Form;
use crate::gemm::{time_of_vector, Format, ProductSizes, UNIT};
use crate::threads::Threads;

/// The form for AVX512_BF16.
pub(crate) struct Pairs;

impl Form<RoundedCase> for Pairs {
    fn name(&self, _: &RoundedCase) -> String {
        PAIRS.to_string()
    }

    fn fits(&self, case: &RoundedCase) -> bool {
        PairSums::of(case.isa).is_some()
    }

    /// As for a product in `f32` of half the depth, whose instructions may take longer.
    fn cost(&self, case: &RoundedCase) -> f64 {
        let ProductSizes { m, n, k } = case.sizes;
        let vectors = n.div_ceil(LANES);
        let loads = vectors * m.div_ceil(ROWS) + m * vectors.div_ceil(VECTORS);
        let time = PairSums::of(case.isa).map_or(1.0, PairSums::time) * time_of_vector(Format::Float32, m);
        let products = time * vectors as f64 + loads as f64;
        k.div_ceil(2) as f64 * products + ROUND * m as f64 * k as f64 / UNIT
    }
}

impl RoundedForm for Pairs {
    fn pack(&self, case: &RoundedCase, threads: &Threads, matrix: &Halves) -> PackedRounded {
        let sums = PairSums::of(case.isa).unwrap_or_else(|| unreachable!("the form fits"));
        PackedRounded(Stored::Pairs(PackedPairs::new(sums, threads, matrix)))
    }
}
