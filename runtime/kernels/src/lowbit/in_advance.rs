//! Products of many rows: the first tile of a block converts a part of a panel while it multiplies, and stores the numbers
//! for the other tiles.

use std::cell::Cell;

use super::case::{LowBitCase, CONVERT};
use super::form::LowBitForm;
use super::product::Product;
use crate::form::Form;
use crate::gemm::Lines;
use crate::threads::Threads;

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
    fn run(&self, product: &Product, threads: &Threads) {
        product.for_each_block(threads, |rows, panels| {
            let (length, most) = (LEFT / (rows[1] - rows[0]), DEPTH.min(NUMBERS / product.b.width));
            let mut scratch = SCRATCH.take();
            scratch.overwrite(NUMBERS, |numbers| {
                let numbers = numbers.as_mut_ptr();
                product.for_each_part(panels, length, most, |panel, depth| product.tiles(rows, panel, depth, numbers));
            });
            SCRATCH.set(scratch);
        });
    }
}
