//! Products of few rows: each tile converts codes in registers, so that a product takes about as long as reading the codes.

use super::case::{LowBitCase, CONVERT};
use super::form::LowBitForm;
use super::product::Product;
use crate::form::Form;
use crate::threads::Threads;

/// The form whose tiles read the codes of each panel in their order.
pub(crate) struct InRegisters;

impl Form<LowBitCase> for InRegisters {
    fn name(&self, _: &LowBitCase) -> String {
        "codes converted in registers".to_string()
    }

    fn fits(&self, _: &LowBitCase) -> bool {
        true
    }

    fn cost(&self, case: &LowBitCase) -> f64 {
        case.cost_of(case.sizes.m as f64 + CONVERT * case.tiles() as f64)
    }
}

impl LowBitForm for InRegisters {
    fn run(&self, product: &Product, threads: &Threads) {
        product.for_each_block(threads, |rows, panels| {
            for panel in panels[0]..panels[1] {
                product.tiles(rows, panel, [0, product.b.k], std::ptr::null_mut());
            }
        });
    }
}
