//! Matrix products in `f32`: `out = a · b`. The sums start with a bias, and an epilogue processes each block while it
//! is in the cache.
//!
//! Every output is a sum of partial sums over short pieces of the depth, in order, whatever the number of threads or
//! the instruction set.

mod blocks;
mod cost;
mod form;
mod in_place;
mod lines;
mod pack;
mod packed;
mod packing;
mod panels;
mod plain;
mod planner;
mod rows;
mod stored;
mod strip;
mod table;
pub(crate) mod tile;
pub(crate) mod tiles;
mod turned;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use cost::UNIT;
pub use form::{ProductCase, RightCase};
pub(crate) use lines::Lines;
pub use pack::PackedB;
pub use packed::{packed_name, prefers_half};
pub use plain::{product, Plain, Term};
pub use planner::alternatives;
pub use stored::Format;

use crate::isa::Isa;
use crate::threads::Threads;
use tile::Start;

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// The row stride.
    pub row: usize,
    /// The column stride.
    pub column: usize,
}

/// The right operand of a product.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// Packed in advance; the product uses its first rows and columns.
    Packed(&'a PackedB),
    /// Not packed.
    Plain(Matrix<'a>),
}

/// The start values of the sums.
#[derive(Debug, Clone, Copy)]
pub enum Bias<'a> {
    /// Zero.
    None,
    /// `[m]`: one value per row of the output.
    Rows(&'a [f32]),
    /// `[n]`: one value per column of the output.
    Columns(&'a [f32]),
}

/// Rewrites a finished run of the output; the second argument is its offset in the output.
pub type Finish<'a> = &'a (dyn Fn(&mut [f32], usize) + Sync);

/// The sizes `[m, n, k]` of a product of an `m × k` and a `k × n` matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the output.
    pub m: usize,
    /// Columns of the output.
    pub n: usize,
    /// The depth: the number of terms in a sum.
    pub k: usize,
}

impl Matrix<'_> {
    /// A matrix with contiguous rows.
    pub fn contiguous(data: &[f32], columns: usize) -> Matrix<'_> {
        Matrix { data, row: columns, column: 1 }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        let last = || {
            let down = rows.checked_sub(1)?.checked_mul(self.row)?;
            down.checked_add(columns.checked_sub(1)?.checked_mul(self.column)?)
        };
        rows == 0 || columns == 0 || last().is_some_and(|last| last < self.data.len())
    }
}

/// Multiplications that are worth several threads.
const SPLIT: usize = 1 << 20;

/// `out = a · b + bias`, where `out` is `[m, n]`. Calls `finish` on every row of every block.
///
/// # Panics
/// The slices are too short for the sizes, or `b` was packed from a smaller matrix.
#[allow(clippy::too_many_arguments)]
pub fn gemm(
    isa: Isa,
    threads: &Threads,
    sizes: Sizes,
    a: &Matrix,
    b: &Right,
    bias: Bias,
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let Sizes { m, n, k } = sizes;
    assert!(a.holds(m, k) && out.len() == m * n, "the slices do not fit a product of {sizes:?}");
    match bias {
        Bias::Rows(bias) => assert_eq!(bias.len(), m),
        Bias::Columns(bias) => assert_eq!(bias.len(), n),
        Bias::None => {}
    }
    match b {
        Right::Packed(b) => assert!(b.k >= k && b.n >= n && b.isa == isa, "b is packed as {} x {}", b.k, b.n),
        Right::Plain(b) => assert!(b.holds(k, n), "b does not fit a product of {sizes:?}"),
    }
    if m == 0 || n == 0 {
        return;
    }
    let serial = Threads::serial();
    let threads = if m * n * k > SPLIT { threads } else { &serial };
    let problem = Problem { isa, sizes, a: *a, b: *b, bias, finish };
    planner::choose(&problem.case()).run(&problem, threads, Shared::new(out));
}

/// A product whose operands fit the sizes.
#[derive(Clone, Copy)]
struct Problem<'a> {
    isa: Isa,
    sizes: Sizes,
    a: Matrix<'a>,
    b: Right<'a>,
    bias: Bias<'a>,
    finish: Option<Finish<'a>>,
}

impl<'a> Problem<'a> {
    /// The case of this product.
    fn case(&self) -> ProductCase {
        let b = match self.b {
            Right::Packed(b) => b.case(),
            Right::Plain(b) => RightCase::Plain([b.row, b.column]),
        };
        ProductCase { isa: self.isa, sizes: self.sizes, a: [self.a.row, self.a.column], b }
    }

    /// The right operand of a form that fits only operands that are not packed.
    fn plain(&self) -> Matrix<'a> {
        match self.b {
            Right::Plain(b) => b,
            Right::Packed(_) => unreachable!("the form fits operands that are not packed"),
        }
    }

    /// Returns the start values of the tile at a row and column, after `depth` terms have been summed.
    fn start(&self, row: usize, column: usize, depth: usize) -> Start {
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
    unsafe fn finish(&self, out: Shared, rows: [usize; 2], columns: [usize; 2]) {
        let Some(finish) = self.finish else { return };
        for row in rows[0]..rows[1] {
            let offset = row * self.sizes.n + columns[0];
            // SAFETY: guaranteed by the caller.
            finish(unsafe { std::slice::from_raw_parts_mut(out.at(offset), columns[1] - columns[0]) }, offset);
        }
    }
}

/// The output, shared by tasks that write disjoint parts of it.
#[derive(Clone, Copy)]
pub(crate) struct Shared(*mut f32);

// SAFETY: tasks that share it write disjoint elements.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn new(out: &mut [f32]) -> Shared {
        Shared(out.as_mut_ptr())
    }

    pub fn at(self, offset: usize) -> *mut f32 {
        self.0.wrapping_add(offset)
    }
}
