//! Matrix products in `f32`: `out = a · b`. The sums start with a bias, and an epilogue processes each block while it
//! is in the cache.
//!
//! Every output is a sum of partial sums over short pieces of the depth, in order, whatever the number of threads or
//! the instruction set.

mod blocks;
mod lines;
mod pack;
mod panels;
mod plain;
mod rows;
mod stored;
mod strip;
mod table;
pub(crate) mod tile;
pub(crate) mod tiles;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use lines::Lines;
pub use pack::PackedB;
pub use plain::{product, Plain, Term};
pub use stored::Format;

use crate::isa::Isa;
use crate::threads::Threads;
use blocks::Product;
use panels::Source;
use rows::Rows;
use tile::Start;
use tiles::Tiles;

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
    Problem { isa, sizes, a: *a, b: *b, bias, finish }.run(threads, Shared::new(out));
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

impl Problem<'_> {
    fn run(&self, threads: &Threads, out: Shared) {
        let Sizes { m, n, k } = self.sizes;
        if let Some(turned) = self.turned() {
            return turned.run(threads, out);
        }
        let tiles = Tiles::of(self.isa);
        let source = match self.b {
            Right::Packed(b) => Source::Packed(b),
            Right::Plain(b) if b.column != 1 => Source::Packing(b),
            Right::Plain(b) => {
                let one_panel = n <= tiles.lanes * tiles.vectors(m.min(tiles.rows()));
                if k > 0 && !one_panel && m <= rows::MOST {
                    return Rows { problem: self, b }.run(threads, out);
                }
                let is_near = k.saturating_mul(b.row) <= NEAR;
                match b.row <= FARTHEST && (is_near || m <= DIRECT_TILES * tiles.rows()) {
                    true => Source::Direct(b),
                    false => Source::Packing(b),
                }
            }
        };
        Product::new(self, source).run(threads, out);
    }

    /// The product of the transposed operands, for one column, which has the elements of a row in memory: the columns
    /// of the left side become rows that follow one another, where they do.
    fn turned(&self) -> Option<Self> {
        let Sizes { m, n, k } = self.sizes;
        let (data, column) = match self.b {
            _ if n != 1 || m == 1 || self.a.row != 1 => return None,
            Right::Packed(b) if b.format != Format::Float32 => return None,
            Right::Packed(b) => (&b.data[..], b.width),
            Right::Plain(b) => (b.data, b.row),
        };
        let bias = match self.bias {
            Bias::Rows(bias) => Bias::Columns(bias),
            Bias::Columns(bias) => Bias::Rows(bias),
            Bias::None => Bias::None,
        };
        let b = Right::Plain(Matrix { data: self.a.data, row: self.a.column, column: self.a.row });
        Some(Problem { sizes: Sizes { m: n, n: m, k }, a: Matrix { data, row: 0, column }, b, bias, ..*self })
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

/// Up to this number of tiles of rows, packing the right operand costs more than it saves.
const DIRECT_TILES: usize = 2;
/// The maximum row stride that a tile's table of offsets can represent.
const FARTHEST: usize = u32::MAX as usize / panels::DEPTH;
/// Up to this number of elements, the right operand is read in place, because it fits in the L1 cache.
const NEAR: usize = 8192;

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
