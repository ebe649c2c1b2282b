//! The forms of a product of codes: the instructions that sum it.

use super::instructions::Dots;
use super::tiles::Tiles;
use crate::form::Form;
use crate::gemm::{ProductSizes, UNIT};
use crate::isa::Isa;

/// The facts that decide the form of a product of 8-bit codes.
#[derive(Debug, Clone, Copy)]
pub struct IntegerCase {
    /// The instruction set.
    pub isa: Isa,
    /// The instructions for codes that this processor has.
    pub(crate) dots: Dots,
    /// The sizes.
    pub sizes: ProductSizes,
    /// The operands.
    pub operands: Integers,
}

/// The operands of a product of 8-bit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integers {
    /// Rows of codes with one zero point, and a matrix of codes with one zero point for all columns or for each.
    Codes,
    /// Other operands, as differences of codes and zero points. `is_exact` if `f32` represents all sums of products exactly.
    Differences {
        /// Whether `f32` represents all sums of products exactly.
        is_exact: bool,
    },
}

impl IntegerCase {
    /// A case of these sizes.
    pub fn new(isa: Isa, sizes: ProductSizes, operands: Integers) -> IntegerCase {
        IntegerCase { isa, dots: Dots::of(isa), sizes, operands }
    }
}

/// The factors of a form of a product of 8-bit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Multiplied {
    /// Codes, by these instructions.
    Codes(Dots),
    /// Differences as `f32`.
    Floats,
    /// Differences as `i32`.
    Integers,
}

/// A form of a product of 8-bit codes with sums in `i32`. All forms compute the same sums.
pub(crate) trait IntegerForm: Form<IntegerCase> {
    /// Returns the factors of the form.
    fn multiplied(&self, case: &IntegerCase) -> Multiplied;
}

/// The form that sums products of codes with dot-product instructions.
pub(crate) struct DotForm {
    /// Whether the instructions multiply tiles (AMX) instead of vectors.
    has_tiles: bool,
}

impl DotForm {
    /// With instructions on vectors.
    pub const VECTORS: DotForm = DotForm { has_tiles: false };
    /// With instructions on tiles, which need more depth to be faster.
    pub const TILES: DotForm = DotForm { has_tiles: true };

    fn dots(&self, case: &IntegerCase) -> Dots {
        if self.has_tiles {
            case.dots
        } else {
            case.dots.without_tiles()
        }
    }
}

impl Form<IntegerCase> for DotForm {
    fn name(&self, case: &IntegerCase) -> String {
        format!("int8, {}", self.dots(case).name())
    }

    fn fits(&self, case: &IntegerCase) -> bool {
        case.operands == Integers::Codes && (!self.has_tiles || case.dots.has_tiles())
    }

    fn cost(&self, case: &IntegerCase) -> f64 {
        let (dots, ProductSizes { m, n, k }) = (self.dots(case), case.sizes);
        let lanes = Tiles::of(dots).lanes;
        m as f64 * n.next_multiple_of(lanes) as f64 / UNIT * dots.time(1, k) as f64
    }
}

impl IntegerForm for DotForm {
    fn multiplied(&self, case: &IntegerCase) -> Multiplied {
        Multiplied::Codes(self.dots(case))
    }
}
