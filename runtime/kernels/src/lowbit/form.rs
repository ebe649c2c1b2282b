//! The interface of the forms of a product with codes of few bits.

use super::case::LowBitCase;
use super::product::Product;
use crate::form::Form;
use crate::threads::Threads;

/// A form of a product with codes of few bits. All forms that do not round the left operand compute the same bits, in the
/// order that [`Product`] states; and so do all that round it.
pub(crate) trait LowBitForm: Form<LowBitCase> {
    /// Computes a product that is not empty.
    fn run(&self, product: &Product, threads: &Threads);
}
