//! Products of many rows: the first tile of a block converts a part of a panel while it multiplies, and stores the numbers
//! for the other tiles.

use std::cell::Cell;

use super::case::{LowBitCase, CONVERT};
use super::form::LowBitForm;
use super::pack::PackedCodes;
use super::product::Product;
use crate::form::Form;
use crate::gemm::Lines;

/// The form whose first tile converts a part of a panel for all rows of a block.
pub(crate) struct InAdvance;

/// The time to store a converted vector, and the part of the loads of a tile that takes time of its own. With these values,
/// two tiles cost less than two conversions.
const STORE: f64 = 0.8;
const LOAD: f64 = 0.1;
/// The numbers of a part of a panel. Tiles read half of the columns at a time, so that these stay in the L1 cache.
const NUMBERS: usize = 1 << 13;
/// The maximum depth of a part.
const DEPTH: usize = 256;
/// The elements of the left operand that are read again for every panel; they fit in the L2 cache.
const LEFT: usize = 1 << 17;

thread_local! {
    /// The buffer for the numbers of a part of a panel.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

impl Form<LowBitCase> for InAdvance {
    fn name(&self, _: &LowBitCase) -> String {
        "codes converted once for all rows".to_string()
    }

    fn fits(&self, _: &LowBitCase) -> bool {
        true
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        let others = case.tiles().saturating_sub(1);
        case.cost_of(case.sizes.m as f64 + CONVERT + STORE + LOAD * others as f64)
    }
}

impl LowBitForm for InAdvance {
    fn block(&self, product: &Product, rows: [usize; 2], panels: [usize; 2]) {
        let mut scratch = SCRATCH.take();
        scratch.overwrite(NUMBERS, |numbers| parts(product, rows, panels, numbers.as_mut_ptr()));
        SCRATCH.set(scratch);
    }
}

/// Computes the block in parts of the depth, whose numbers fit the scratch memory.
fn parts(product: &Product, rows: [usize; 2], panels: [usize; 2], numbers: *mut f32) {
    let (b, length) = (product.b, LEFT / (rows[1] - rows[0]));
    let mut first = 0;
    while first < b.k {
        // Whole parts, for one panel after the other: a panel is read from front to back.
        let mut end = first;
        while end < b.k && end - first < length {
            end = end_of_part(b, end);
        }
        for panel in panels[0]..panels[1] {
            let mut part = first;
            while part < end {
                let next = end_of_part(b, part);
                product.tiles(rows, panel, [part, next], numbers);
                part = next;
            }
        }
        first = end;
    }
}

/// The end of the part of the depth that begins at `first`: whole blocks of codes, or whole pieces of one block.
fn end_of_part(b: &PackedCodes, first: usize) -> usize {
    let (size, block, depth) = (b.block, first / b.block, DEPTH.min(NUMBERS / b.width));
    let end = if size <= depth { (block + depth / size) * size } else { (first + depth).min((block + 1) * size) };
    end.min(b.k)
}
