//! Products with a right operand that is packed in advance, in panels.

use super::blocks::Product;
use super::case::ProductCase;
use super::cost::Cover;
use super::form::ProductForm;
use super::lines::Lines;
use super::operands::{ProductSizes, Shared};
use super::pack::PackedB;
use super::panels::{Panels, Source, DEPTH};
use super::problem::{Problem, Right};
use super::stored::Format;
use super::tiles::Tiles;
use crate::form::Form;
use crate::threads::Threads;

/// The form with panels that are packed in advance.
pub(crate) struct PackedPanels;

impl Form<ProductCase> for PackedPanels {
    fn name(&self, case: &ProductCase) -> String {
        packed_name(case.format()).to_string()
    }

    fn fits(&self, case: &ProductCase) -> bool {
        case.plain().is_none()
    }

    fn cost(&self, case: &ProductCase) -> f64 {
        Cover::of(case).tiled(time_of_vector(case.format(), case.sizes.m))
    }
}

impl ProductForm for PackedPanels {
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared) {
        match problem.b {
            Right::Packed(b) => Product::new(problem, b).run(threads, out),
            Right::Plain(_) => unreachable!("the form fits packed operands"),
        }
    }
}

/// The time to fetch a vector of `f32` from memory, in instructions. Weights are too large for a cache.
const FETCH: f64 = 11.0;
/// The instructions that convert a vector of 16-bit numbers to `f32`.
const WIDEN: f64 = 3.0;

/// The time for a vector of the right operand, in instructions: `rows` multiply-adds, while the next vector is fetched.
/// Two measurements determine the constants. Half the bytes take half the time for one row and the same time for eight,
/// and a sixth more for 16 rows.
pub(crate) fn time_of_vector(format: Format, rows: usize) -> f64 {
    let rows = rows as f64;
    match format {
        Format::Float32 => rows.max(FETCH),
        Format::Float16 | Format::Bfloat16 => (rows + WIDEN).max(FETCH / 2.0),
    }
}

/// The name of a right operand that is packed in a format.
pub fn packed_name(format: Format) -> &'static str {
    match format {
        Format::Float32 => "B prepacked",
        Format::Float16 => "B prepacked as float16",
        Format::Bfloat16 => "B prepacked as bfloat16",
    }
}

/// Elements of the left operand that are read again for every panel; they fit in the L2 cache.
const LEFT: usize = 1 << 18;

impl Source for PackedB {
    fn width(&self, _: Tiles, _: ProductSizes) -> usize {
        self.width
    }

    fn length(&self, rows: usize) -> usize {
        (LEFT / rows.max(1)).next_multiple_of(DEPTH)
    }

    fn panels(&self, width: usize, _: [usize; 2], _: [usize; 2], _: &mut Lines) -> Panels {
        Panels { format: self.format, ahead: true, ..Panels::new(self.data.as_ptr(), self.k * width, width) }
    }

    fn widened<'s>(&self, panel: usize, depth: [usize; 2], width: usize, scratch: &'s mut Lines) -> Option<&'s [f32]> {
        if self.format == Format::Float32 {
            return None;
        }
        let first = (panel * self.k + depth[0]) * width;
        Some(scratch.overwrite((depth[1] - depth[0]) * width, |wide| self.widen(first, wide)))
    }
}
