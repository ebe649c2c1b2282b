//! The interface of the forms of a matrix product: the ways to compute it.

use super::stored::Format;
use super::{Problem, Shared, Sizes};
use crate::isa::Isa;
use crate::threads::Threads;

/// The facts about a product that decide its form.
#[derive(Debug, Clone, Copy)]
pub struct ProductCase {
    /// The instruction set.
    pub isa: Isa,
    /// The sizes.
    pub sizes: Sizes,
    /// The strides of the left operand's rows and columns.
    pub a: [usize; 2],
    /// The right operand.
    pub b: RightCase,
}

/// The facts about the right operand that decide the form of a product.
#[derive(Debug, Clone, Copy)]
pub enum RightCase {
    /// It is packed in a format, in panels of `width` columns.
    Packed {
        /// The type of the packed numbers.
        format: Format,
        /// The columns per panel.
        width: usize,
    },
    /// It has these strides of rows and columns.
    Plain([usize; 2]),
}

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

impl ProductCase {
    /// The type of the right operand's numbers.
    pub(super) fn format(&self) -> Format {
        match self.b {
            RightCase::Packed { format, .. } => format,
            RightCase::Plain(_) => Format::Float32,
        }
    }

    /// The strides of the right operand, if it is not packed.
    pub(super) fn plain(&self) -> Option<[usize; 2]> {
        match self.b {
            RightCase::Packed { .. } => None,
            RightCase::Plain(strides) => Some(strides),
        }
    }
}
