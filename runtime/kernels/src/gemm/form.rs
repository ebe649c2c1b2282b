//! The interface of the forms of a matrix product in `f32`: the ways to compute it.

use super::case::ProductCase;
use super::operands::Shared;
use super::problem::Problem;
use crate::form::Form;
use crate::threads::Threads;

/// A form of a matrix product in `f32`. A product has at least one row and one column.
///
/// All forms compute the same bits. A form divides each sum into pieces of [`PIECE`](super::tile::PIECE) terms. It sums
/// each piece from zero, in order, with one [`mul_add`](crate::vector::Vector::mul_add) per term. Then it adds the piece
/// to the start value ([`Problem::start`]) or to the sum of the pieces before it.
pub(crate) trait ProductForm: Form<ProductCase> {
    /// Writes every element of the output. Calls [`Problem::finish`] once for every element, on a run of a row, after
    /// the whole depth has been summed.
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared);
}
