//! Products of one column, computed as the product of the transposed operands. If the columns of the left operand are
//! contiguous, they become the contiguous rows of a right operand.

use super::case::{ProductCase, RightCase};
use super::form::ProductForm;
use super::operands::{Bias, Matrix, ProductSizes, Shared};
use super::problem::{Problem, Right};
use super::stored::Format;
use crate::form::Form;
use crate::threads::Threads;

/// The form that transposes the product of a single column, which has the elements of a row in memory.
pub(crate) struct Turned {
    /// The choice of the form of the transposed product, which has one row.
    pub choose: fn(&ProductCase) -> &'static dyn ProductForm,
}

impl Form<ProductCase> for Turned {
    fn name(&self, _: &ProductCase) -> String {
        "transposed, as one row".to_string()
    }

    fn fits(&self, case: &ProductCase) -> bool {
        case.sizes.n == 1 && case.sizes.m != 1 && case.a[0] == 1 && case.format() == Format::Float32
    }

    fn cost(&self, case: &ProductCase) -> f64 {
        let column = match case.b {
            RightCase::Packed { width, .. } => width,
            RightCase::Plain([row, _]) => row,
        };
        let [row, step] = case.a;
        let turned =
            ProductCase { isa: case.isa, sizes: turned(case.sizes), a: [0, column], b: RightCase::Plain([step, row]) };
        (self.choose)(&turned).cost(&turned)
    }
}

impl ProductForm for Turned {
    fn run(&self, problem: &Problem, threads: &Threads, out: Shared) {
        let Matrix { data, row, column } = problem.a;
        let (left, step) = match problem.b {
            Right::Packed(b) => (&b.data[..], b.width),
            Right::Plain(b) => (b.data, b.row),
        };
        let turned = Problem {
            sizes: turned(problem.sizes),
            a: Matrix { data: left, row: 0, column: step },
            b: Right::Plain(Matrix { data, row: column, column: row }),
            bias: match problem.bias {
                Bias::Rows(bias) => Bias::Columns(bias),
                Bias::Columns(bias) => Bias::Rows(bias),
                Bias::None => Bias::None,
            },
            ..*problem
        };
        (self.choose)(&turned.case()).run(&turned, threads, out);
    }
}

fn turned(ProductSizes { m, n, k }: ProductSizes) -> ProductSizes {
    ProductSizes { m: n, n: m, k }
}
