//! Forms of products of 8-bit codes that the instructions for codes cannot compute: products of the differences of codes and
//! zero points.

use crate::form::Form;
use crate::gemm::tiles::Tiles;
use crate::gemm::{ProductCase, ProductSizes, RightCase, UNIT};
use crate::int8::{IntegerCase, IntegerForm, Integers, Multiplied};

/// The form that multiplies the differences as `f32`.
pub(super) struct AsFloats {
    /// The cost of a product in `f32`.
    pub product: fn(&ProductCase) -> f64,
}

/// The form that multiplies the differences as `i32`, by definition.
pub(super) struct AsIntegers;

/// The instructions that convert a vector of differences to `i32`, or of sums.
const CONVERT: f64 = 2.0;
/// The instructions for a vector of products by definition: the processor loads and stores the sums for each of them. With
/// this value, products of all sizes whose sums are exact take less time as `f32`.
const TERM: f64 = 10.0;

/// The cost of converting some matrices.
fn conversion(lens: &[usize]) -> f64 {
    lens.iter().map(|&len| len as f64 / UNIT * CONVERT).sum()
}

impl Form<IntegerCase> for AsFloats {
    fn name(&self, _: &IntegerCase) -> String {
        "as float32, if all sums are exact".to_string()
    }

    fn fits(&self, case: &IntegerCase) -> bool {
        case.operands == Integers::Differences { is_exact: true }
    }

    fn cost(&self, case: &IntegerCase) -> f64 {
        let IntegerCase { isa, sizes, .. } = *case;
        let ProductSizes { m, n, k } = sizes;
        let product = ProductCase { isa, sizes, a: [k, 1], b: RightCase::Plain([n, 1]) };
        (self.product)(&product) + conversion(&[m.saturating_mul(n)])
    }
}

impl IntegerForm for AsFloats {
    fn multiplied(&self, _: &IntegerCase) -> Multiplied {
        Multiplied::Floats
    }
}

impl Form<IntegerCase> for AsIntegers {
    fn name(&self, _: &IntegerCase) -> String {
        "as int32".to_string()
    }

    fn fits(&self, case: &IntegerCase) -> bool {
        matches!(case.operands, Integers::Differences { .. })
    }

    fn cost(&self, case: &IntegerCase) -> f64 {
        let ProductSizes { m, n, k } = case.sizes;
        let lanes = Tiles::of(case.isa).lanes;
        let vectors = n.next_multiple_of(lanes) as f64 / UNIT;
        TERM * m as f64 * k as f64 * vectors + conversion(&[m.saturating_mul(k), k.saturating_mul(n)])
    }
}

impl IntegerForm for AsIntegers {
    fn multiplied(&self, _: &IntegerCase) -> Multiplied {
        Multiplied::Integers
    }
}
