//! Products that read the panels of the right operand in place.

use super::blocks::Product;
use super::case::ProductCase;
use super::cost::{Cover, JUMP};
use super::form::ProductForm;
use super::lines::Lines;
use super::operands::{Matrix, Shared};
use super::panels::{Panels, Source, DEPTH};
use super::problem::Problem;
use crate::form::Form;
use crate::threads::Threads;

/// The form that reads the right operand in place. Its columns are contiguous.
pub(crate) struct InPlace;

/// The maximum row stride that a tile's table of offsets can represent.
const FARTHEST: usize = u32::MAX as usize / DEPTH;
/// Up to this number of elements, the right operand fits in the L1 cache.
const NEAR: usize = 8192;
/// The tiles of rows that read a larger operand without a delay.
const PROMPT: f64 = 2.0;
/// The cost of waiting for a row of a panel, for each further tile of rows. With this value, a third tile costs more than
/// packing the rows.
const WAIT: f64 = 12.0;

impl Form<ProductCase> for InPlace {
    fn name(&self, _: &ProductCase) -> String {
        "B in place".to_string()
    }

    fn fits(&self, case: &ProductCase) -> bool {
        case.plain().is_some_and(|[row, column]| column == 1 && row <= FARTHEST)
    }

    fn cost(&self, case: &ProductCase) -> f64 {
        let cover = Cover::of(case);
        let is_near = case.plain().is_some_and(|[row, _]| case.sizes.k.saturating_mul(row) <= NEAR);
        let waits = if is_near { 0.0 } else { (cover.tiles - PROMPT).max(0.0) * cover.panels };
        cover.tiled(cover.rows) + cover.depth * ((cover.panels - 1.0) * JUMP + waits * WAIT)
    }
}

impl ProductForm for InPlace {
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared) {
        Product::new(problem, &Lying(problem.plain())).run(threads, out);
    }
}

/// A right operand whose panels are read in place.
struct Lying<'a>(Matrix<'a>);

impl Source for Lying<'_> {
    fn panels(&self, width: usize, _: [usize; 2], _: [usize; 2], _: &mut Lines) -> Panels {
        let Matrix { data, row, .. } = self.0;
        let offsets = Some(std::array::from_fn(|i| (i * row) as u32));
        Panels { offsets, ..Panels::new(data.as_ptr(), width, row) }
    }
}
