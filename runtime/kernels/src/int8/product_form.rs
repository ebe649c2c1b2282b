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
    /// Rows in `f32`, which the product converts to codes, and a matrix of codes with the zero point 0.
    Rows {
        /// The percentage of quads that instructions that saturate multiply twice.
        again: usize,
    },
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

/// A form that sums products of codes with dot-product instructions.
pub(crate) enum DotForm {
    /// With instructions on 16-bit numbers, to which a product converts its rows. They multiply no quad twice.
    Words,
    /// With instructions on vectors of bytes.
    Vectors,
    /// With instructions on tiles (AMX), which need more depth to be faster.
    Tiles,
}

impl DotForm {
    /// The instructions; `None` if the form does not fit.
    fn dots(&self, case: &IntegerCase) -> Option<Dots> {
        match self {
            DotForm::Words => case.dots.in_words().filter(|_| matches!(case.operands, Integers::Rows { .. })),
            DotForm::Vectors => Some(case.dots.without_tiles()),
            DotForm::Tiles => Some(case.dots).filter(|dots| dots.has_tiles()),
        }
    }

    /// The instructions of a form that fits.
    fn chosen(&self, case: &IntegerCase) -> Dots {
        self.dots(case).unwrap_or_else(|| unreachable!("the form fits"))
    }
}

impl Form<IntegerCase> for DotForm {
    fn name(&self, case: &IntegerCase) -> String {
        format!("int8, {}", self.chosen(case).name())
    }

    fn fits(&self, case: &IntegerCase) -> bool {
        matches!(case.operands, Integers::Codes | Integers::Rows { .. }) && self.dots(case).is_some()
    }

    fn cost(&self, case: &IntegerCase) -> f64 {
        let (dots, ProductSizes { m, n, k }) = (self.chosen(case), case.sizes);
        let lanes = Tiles::of(dots).lanes;
        let again = match case.operands {
            Integers::Rows { again } if dots.saturates() => again as f64 / 100.0,
            _ => 0.0,
        };
        m as f64 * n.next_multiple_of(lanes) as f64 / UNIT * dots.time(1, k) as f64 * (1.0 + again)
    }
}

impl IntegerForm for DotForm {
    fn multiplied(&self, case: &IntegerCase) -> Multiplied {
        Multiplied::Codes(self.chosen(case))
    }
}
