//! Products in `f32` of numbers that are rounded to `bf16`, on every processor.

use half::bf16;

use super::case::{Halves, RoundedCase, ROUND};
use super::form::RoundedForm;
use super::pack::{PackedRounded, Stored, WIDENED};
use crate::form::Form;
use crate::gemm::{Matrix, PackedB, ProductCase, ProductSizes, UNIT};
use crate::scratch::Scratch;
use crate::threads::Threads;
use crate::vector::Half;

/// The form for processors without instructions for `bf16`. It rounds the left operand, and multiplies as a product in `f32`
/// with a packed matrix does.
pub(crate) struct Widened {
    /// The cost of a product in `f32`.
    pub product: fn(&ProductCase) -> f64,
}

impl Form<RoundedCase> for Widened {
    fn name(&self, _: &RoundedCase) -> String {
        WIDENED.to_string()
    }

    fn fits(&self, _: &RoundedCase) -> bool {
        true
    }

    fn cost(&self, case: &RoundedCase) -> f64 {
        let RoundedCase { isa, sizes, .. } = *case;
        let ProductSizes { m, n, k } = sizes;
        let product = ProductCase { isa, sizes, a: [k, 1], b: PackedB::case_of(isa, n, case.format()) };
        (self.product)(&product) + ROUND * m as f64 * k as f64 / UNIT
    }
}

impl RoundedForm for Widened {
    fn pack(&self, case: &RoundedCase, threads: &Threads, matrix: &Halves) -> PackedRounded {
        let Halves { k, n, data, transposed } = *matrix;
        let wide = Scratch::overwritten(data.len(), |wide| bf16::widen(case.isa, data, wide));
        let (row, column) = if transposed { (1, k) } else { (n, 1) };
        let matrix = Matrix { data: &wide, row, column };
        let packed = PackedB::of(case.format(), case.isa, threads, k, n, &matrix);
        PackedRounded(Stored::Widened(packed))
    }
}
