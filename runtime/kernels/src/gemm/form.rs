//! The interface of the forms of a matrix product: the ways to compute it.

use super::case::ProductCase;
use super::operands::Shared;
use super::problem::Problem;
use crate::threads::Threads;

/// A form of a matrix product.
///
/// All forms compute the same bits. A form divides each sum into pieces of [`PIECE`](super::tile::PIECE) terms. It sums
/// each piece from zero, in order, with one [`mul_add`](crate::vector::Vector::mul_add) per term. Then it adds the piece
/// to the start value ([`Problem::start`]) or to the sum of the pieces before it.
pub(super) trait ProductForm: Sync {
    /// The form's name for a case that fits.
    fn name(&self, case: &ProductCase) -> &'static str;

    /// Whether the form can compute the product. A product has at least one row and one column.
    fn fits(&self, case: &ProductCase) -> bool;

    /// The expected time of a product that fits, on one thread. An instruction on a vector of `lanes` numbers costs
    /// `lanes / 16`.
    fn cost(&self, case: &ProductCase) -> f64;

    /// Writes every element of the output. Calls [`Problem::finish`] once for every element, on a run of a row, after
    /// the whole depth has been summed.
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared);
}
