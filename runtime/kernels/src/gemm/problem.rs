//! A matrix product to compute.

use super::case::{ProductCase, RightCase};
use super::operands::{Bias, Finish, Matrix, ProductSizes, Shared};
use super::pack::PackedB;
use super::tile::Start;
use crate::isa::Isa;

/// The right operand of a product.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// Packed in advance; the product uses its first rows and columns.
    Packed(&'a PackedB),
    /// Not packed.
    Plain(Matrix<'a>),
}

/// A product whose operands fit the sizes.
#[derive(Clone, Copy)]
pub(crate) struct Problem<'a> {
    pub isa: Isa,
    pub sizes: ProductSizes,
    pub a: Matrix<'a>,
    pub b: Right<'a>,
    pub bias: Bias<'a>,
    pub finish: Option<Finish<'a>>,
}

impl<'a> Problem<'a> {
    /// A product of these operands, whose sums start with a bias. `finish` is called on every row of every block.
    ///
    /// # Panics
    /// The slices are too short for the sizes, or `b` was packed from a smaller matrix.
    pub fn new(
        isa: Isa,
        sizes: ProductSizes,
        a: &Matrix<'a>,
        b: &Right<'a>,
        bias: Bias<'a>,
        finish: Option<Finish<'a>>,
    ) -> Problem<'a> {
        let ProductSizes { m, n, k } = sizes;
        assert!(a.holds(m, k), "a does not fit a product of {sizes:?}");
        match bias {
            Bias::Rows(bias) => assert_eq!(bias.len(), m),
            Bias::Columns(bias) => assert_eq!(bias.len(), n),
            Bias::None => {}
        }
        match b {
            Right::Packed(b) => assert!(b.k >= k && b.n >= n && b.isa == isa, "b is packed as {} x {}", b.k, b.n),
            Right::Plain(b) => assert!(b.holds(k, n), "b does not fit a product of {sizes:?}"),
        }
        Problem { isa, sizes, a: *a, b: *b, bias, finish }
    }

    /// The case of this product.
    pub fn case(&self) -> ProductCase {
        let b = match self.b {
            Right::Packed(b) => b.case(),
            Right::Plain(b) => RightCase::Plain([b.row, b.column]),
        };
        ProductCase { isa: self.isa, sizes: self.sizes, a: [self.a.row, self.a.column], b }
    }

    /// The right operand of a form that fits only operands that are not packed.
    pub fn plain(&self) -> Matrix<'a> {
        match self.b {
            Right::Plain(b) => b,
            Right::Packed(_) => unreachable!("the form fits operands that are not packed"),
        }
    }

    /// Returns the start values of the tile at a row and column, after `depth` terms have been summed.
    pub fn start(&self, row: usize, column: usize, depth: usize) -> Start {
        match self.bias {
            _ if depth > 0 => Start::Output,
            Bias::None => Start::Zero,
            Bias::Rows(bias) => Start::Rows(bias[row..].as_ptr()),
            Bias::Columns(bias) => Start::Columns(bias[column..].as_ptr()),
        }
    }

    /// Calls `finish` with columns `columns[0] .. columns[1]` of each row in `rows`.
    ///
    /// # Safety
    /// They are inside the output, have been written, and belong to no other task.
    pub unsafe fn finish(&self, out: Shared, rows: [usize; 2], columns: [usize; 2]) {
        // SAFETY: guaranteed by the caller.
        unsafe { out.finish(self.finish, self.sizes.n, rows, columns) }
    }
}
