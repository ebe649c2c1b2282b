//! Products of many rows: each block converts a part of a panel, then multiplies the numbers with all of its rows.

use std::cell::Cell;

use super::case::{LowBitCase, CONVERT};
use super::form::LowBitForm;
use super::kernels::Kernels;
use super::pack::PackedCodes;
use super::product::Product;
use super::unpack::unpack;
use crate::form::Form;
use crate::gemm::Lines;

/// The form that converts a part of a panel once for all rows of a block.
pub(crate) struct InAdvance;

/// The instructions that store a converted vector, and the part of the loads of a tile that takes time of its own. With
/// these values, five rows cost less than their conversion in registers, with the tiles of every instruction set.
const STORE: f64 = 0.5;
const LOAD: f64 = 0.4;
/// The depth of the numbers that a block computes at a time, if a block of codes is not deeper.
const DEPTH: usize = 256;

thread_local! {
    /// The buffer for the numbers of a panel.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

impl Form<LowBitCase> for InAdvance {
    fn name(&self, _: &LowBitCase) -> String {
        "codes converted before the product".to_string()
    }

    fn fits(&self, _: &LowBitCase) -> bool {
        true
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        let rows = case.sizes.m;
        let tiles = rows.div_ceil(Kernels::of(case.isa).unpacked.len());
        case.cost_of(rows as f64 + CONVERT + STORE + LOAD * tiles as f64)
    }
}

impl LowBitForm for InAdvance {
    fn block(&self, product: &Product, rows: [usize; 2], panels: [usize; 2]) {
        let (mut scratch, b) = (SCRATCH.take(), product.b);
        let mut first = 0;
        while first < b.k {
            let depth = [first, end_of_part(b, first)];
            for panel in panels[0]..panels[1] {
                let length = (depth[1] - depth[0]) * b.width;
                let numbers = scratch.overwrite(length, |numbers| unpack(b, panel, depth, numbers));
                product.tiles(rows, panel, depth, numbers.as_ptr(), product.kernels.unpacked);
            }
            first = depth[1];
        }
        SCRATCH.set(scratch);
    }
}

/// The end of the part of the depth that begins at `first`: whole blocks of codes, or whole pieces of one block.
fn end_of_part(b: &PackedCodes, first: usize) -> usize {
    let (size, block) = (b.block, first / b.block);
    let end = if size <= DEPTH { (block + DEPTH / size) * size } else { (first + DEPTH).min((block + 1) * size) };
    end.min(b.k)
}
