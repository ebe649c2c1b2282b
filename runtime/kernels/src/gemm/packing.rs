//! Products that pack the right operand on the way: each block packs its panels.

use super::blocks::Product;
use super::case::ProductCase;
use super::cost::{Cover, JUMP};
use super::form::ProductForm;
use super::lines::Lines;
use super::operands::{Matrix, Shared};
use super::pack::pack;
use super::panels::{Panels, Source};
use super::problem::Problem;
use crate::form::Form;
use crate::threads::Threads;

/// The form that packs the right operand, whose strides are arbitrary, on the way.
pub(crate) struct Packing;

/// The instructions for a packed vector: a load and a store if columns are contiguous, and a share of a transposition
/// if they are not.
const COPY: f64 = 2.0;
const TRANSPOSE: f64 = 6.0;

impl Form<ProductCase> for Packing {
    fn name(&self, _: &ProductCase) -> String {
        "B packed on the way".to_string()
    }

    fn fits(&self, case: &ProductCase) -> bool {
        case.plain().is_some()
    }

    fn cost(&self, case: &ProductCase) -> f64 {
        let cover = Cover::of(case);
        let is_contiguous = case.plain().is_some_and(|[_, column]| column == 1);
        let each = if is_contiguous { COPY } else { TRANSPOSE };
        let packing = cover.panels * JUMP + each * cover.vectors * cover.instruction;
        cover.tiled(cover.rows) + cover.depth * packing
    }
}

impl ProductForm for Packing {
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared) {
        Product::new(problem, &Plain { problem, b: problem.plain() }).run(threads, out);
    }
}

/// A right operand whose panels are packed by the blocks that read them.
struct Plain<'a> {
    problem: &'a Problem<'a>,
    b: Matrix<'a>,
}

impl Source for Plain<'_> {
    fn is_packed_by_blocks(&self) -> bool {
        true
    }

    fn panels(&self, width: usize, panels: [usize; 2], depth: [usize; 2], buffer: &mut Lines) -> Panels {
        let length = depth[1] - depth[0];
        let columns = panels.map(|panel| self.problem.sizes.n.min(panel * width));
        let packed = buffer.overwrite((panels[1] - panels[0]) * length * width, |packed| {
            pack(self.problem.isa, packed, width, &self.b, depth, columns);
        });
        let origin = packed.as_ptr().wrapping_sub(panels[0] * length * width).wrapping_sub(depth[0] * width);
        Panels::new(origin, length * width, width)
    }
}
