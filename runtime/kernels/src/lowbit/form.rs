//! The interface of the forms of a product with codes of few bits.

use super::case::LowBitCase;
use super::product::Product;
use crate::form::Form;
use crate::threads::Threads;

/// A form of a product with codes of few bits. All forms compute the same bits, in the order that [`Product`] states.
pub(crate) trait LowBitForm: Form<LowBitCase> {
    /// Computes rows `rows[0] .. rows[1]` of the columns of panels `panels[0] .. panels[1]`.
    fn block(&self, product: &Product, rows: [usize; 2], panels: [usize; 2]);

    /// Computes a product that is not empty.
    fn run(&self, product: &Product, threads: &Threads) {
        product.for_each_block(threads, |rows, panels| self.block(product, rows, panels));
    }
}
