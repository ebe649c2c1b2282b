//! The form of products with `BFMMLA`.

use super::case::{Halves, RoundedCase, ROUND};
use super::form::RoundedForm;
use super::pack::{PackedRounded, Stored, QUADS};
use super::quads::sizes::{PAIR, QUAD, ROWS, WIDTH};
use super::quads::{PackedQuads, QuadSums};
use crate::form::Form;
use crate::gemm::{time_of_vector, Format, ProductSizes, UNIT};
use crate::threads::Threads;

/// The form for ARM's extension `bf16`.
pub(crate) struct InQuads;

/// The time of an instruction, in those that multiply and add registers of `f32`. It is assumed, not measured: no machine
/// with ARM was available. If both took the same time, the planner would choose the same form for panels without padding.
const TIME: f64 = 2.0;
/// The time of an instruction on one register.
const ONE: f64 = 4.0 / UNIT;

impl Form<RoundedCase> for InQuads {
    fn name(&self, _: &RoundedCase) -> String {
        QUADS.to_string()
    }

    fn fits(&self, case: &RoundedCase) -> bool {
        QuadSums::of(case.isa).is_some()
    }

    /// For each quad of a panel: its products, while the next quad is fetched. Each tile loads the quad, and each pair of rows
    /// is loaded once. A quad of a panel has as many bytes as a vector of `f32` whose instructions cost 1.
    fn cost(&self, case: &RoundedCase) -> f64 {
        let ProductSizes { m, n, k } = case.sizes;
        let (pairs, registers) = (m.div_ceil(PAIR), WIDTH / PAIR);
        let products = ONE * TIME * (pairs * registers) as f64;
        let loads = ONE * (m.div_ceil(ROWS) * registers + pairs) as f64;
        let each = products.max(time_of_vector(Format::Float32, 1)) + loads;
        (n.div_ceil(WIDTH) * k.div_ceil(QUAD)) as f64 * each + ROUND * m as f64 * k as f64 / UNIT
    }
}

impl RoundedForm for InQuads {
    fn pack(&self, case: &RoundedCase, threads: &Threads, matrix: &Halves) -> PackedRounded {
        let sums = QuadSums::of(case.isa).unwrap_or_else(|| unreachable!("the form fits"));
        PackedRounded(Stored::Quads(PackedQuads::new(sums, threads, matrix)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::products::rounded_alternatives;

    /// With fewer columns than a panel has, most of a panel is padding.
    #[test]
    fn whole_panels_are_multiplied_in_quads() {
        for isa in Isa::available() {
            for (m, n, k) in
                [(1, 8, 8), (1, 4096, 4096), (2, 64, 64), (5, 1000, 300), (130, 4096, 1024), (1000, 16, 32)]
            {
                let case = RoundedCase { isa, sizes: ProductSizes { m, n, k }, is_narrow: m < 4 };
                let forms = rounded_alternatives(&case);
                let best = forms.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.as_str());
                let expected = if QuadSums::of(isa).is_some() { QUADS } else { "bfloat16 as float32" };
                assert_eq!(best, Some(expected), "{case:?}: {forms:?}");
            }
        }
    }
}
