//! Matrix products in `f32`: `out = a · b`, begun with a bias and finished by an epilogue while a block is hot.
//!
//! Every output is a sum of sums over short pieces of the depth, in its order, whatever the thread or the instruction set.

mod pack;
mod plain;
pub(crate) mod tile;

#[cfg(test)]
pub(crate) mod tests;

pub use pack::PackedB;
pub use plain::{product, Plain, Term};

use crate::isa::Isa;
use crate::threads::Threads;
use tile::{Start, Tile, Tiles};

/// A matrix inside a slice: element `(i, j)` is `data[i · row + j · column]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// The distance from one row to the next.
    pub row: usize,
    /// The distance from one column to the next.
    pub column: usize,
}

/// The right side of a product.
#[derive(Debug, Clone, Copy)]
pub enum Right<'a> {
    /// Packed before: a constant.
    Packed(&'a PackedB),
    /// As it stands.
    Plain(Matrix<'a>),
}

/// What the sums begin with.
#[derive(Debug, Clone, Copy)]
pub enum Bias<'a> {
    /// Zero.
    None,
    /// `[m]`: a value for each row of the output.
    Rows(&'a [f32]),
    /// `[n]`: a value for each column.
    Columns(&'a [f32]),
}

/// Rewrites a finished run of the output, given its offset in the output.
pub type Finish<'a> = &'a (dyn Fn(&mut [f32], usize) + Sync);

/// The sizes `[m, n, k]` of a product of an `m × k` and a `k × n` matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the output.
    pub m: usize,
    /// Columns of the output.
    pub n: usize,
    /// The depth: terms in a sum.
    pub k: usize,
}

impl Matrix<'_> {
    /// A matrix whose rows follow one another.
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
/// Rows, and panels of columns, of the output in a block: what stays in the second-level cache.
const BLOCK_ROWS: usize = 64;
const BLOCK_PANELS: usize = 8;
/// The depth that is walked before the next columns' turn: a panel of it stays in the second-level cache.
const BLOCK_DEPTH: usize = 2048;

/// `out = a · b + bias`, then `finish` over every row of every block. `out` is `[m, n]`.
///
/// # Panics
/// The slices are too short for the sizes, or `b` was packed for others.
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
    if m == 0 || n == 0 {
        return;
    }
    match b {
        Right::Packed(b) => {
            assert!(b.k == k && b.n == n && b.isa == isa, "b is packed as {} x {}", b.k, b.n);
            let panels = Panels { data: &b.data, offsets: &b.offsets, width: b.width, stride: b.width * k };
            Product { isa, sizes, a, panels, bias, finish }.run(threads, out);
        }
        Right::Plain(b) if b.column == 1 && m <= PACK_ROWS => {
            assert!(b.holds(k, n));
            let tiles = Tiles::of(isa);
            let width = tiles.lanes * tiles.vectors(m.min(tiles.rows()));
            let offsets = pack::offsets(k, b.row);
            let panels = Panels { data: b.data, offsets: &offsets, width, stride: width };
            Product { isa, sizes, a, panels, bias, finish }.run(threads, out);
        }
        Right::Plain(b) => {
            let packed = PackedB::new(isa, threads, k, n, b);
            gemm(isa, threads, sizes, a, &Right::Packed(&packed), bias, out, finish);
        }
    }
}

/// Up to this many rows of the output, packing the right side costs more than it saves.
const PACK_ROWS: usize = 8;

/// The right side as panels of `width` columns, `stride` apart.
struct Panels<'a> {
    data: &'a [f32],
    offsets: &'a [u32],
    width: usize,
    stride: usize,
}

struct Product<'a> {
    isa: Isa,
    sizes: Sizes,
    a: &'a Matrix<'a>,
    panels: Panels<'a>,
    bias: Bias<'a>,
    finish: Option<Finish<'a>>,
}

/// The output, shared by tasks that write disjoint parts of it.
#[derive(Clone, Copy)]
pub(crate) struct Shared(*mut f32);

// SAFETY: the tasks that share it write disjoint elements.
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

impl Product<'_> {
    fn run(&self, threads: &Threads, out: &mut [f32]) {
        let Sizes { m, n, k } = self.sizes;
        let panels = n.div_ceil(self.panels.width);
        let serial = Threads::serial();
        let threads = if m * n * k > SPLIT { threads } else { &serial };
        let rows = BLOCK_ROWS.min(m);
        // Few rows: the blocks are narrower, so that every thread has some.
        let columns = panels.div_ceil(threads.count() * m.div_ceil(rows)).clamp(1, BLOCK_PANELS);
        let (down, across) = (m.div_ceil(rows), panels.div_ceil(columns));
        let out = Shared::new(out);
        threads.for_each(down * across, |task| {
            let (i, j) = (task % down, task / down);
            self.block(out, [i * rows, m.min((i + 1) * rows)], [j * columns, panels.min((j + 1) * columns)]);
        });
    }

    /// Rows `rows[0] .. rows[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, out: Shared, rows: [usize; 2], panels: [usize; 2]) {
        let Sizes { n, k, .. } = self.sizes;
        let mut depth = 0;
        loop {
            let end = k.min(depth + BLOCK_DEPTH);
            for panel in panels[0]..panels[1] {
                self.panel(out, rows, panel, [depth, end]);
            }
            depth = end;
            if depth == k {
                break;
            }
        }
        if let Some(finish) = self.finish {
            let (first, end) = (panels[0] * self.panels.width, n.min(panels[1] * self.panels.width));
            for row in rows[0]..rows[1] {
                let offset = row * n + first;
                // SAFETY: the run lies in this block, which no other task touches.
                finish(unsafe { std::slice::from_raw_parts_mut(out.at(offset), end - first) }, offset);
            }
        }
    }

    /// A block of rows of one panel, over part of the depth.
    fn panel(&self, out: Shared, rows: [usize; 2], panel: usize, depth: [usize; 2]) {
        let n = self.sizes.n;
        let tiles = Tiles::of(self.isa);
        let column = panel * self.panels.width;
        let count = (rows[1] - rows[0]).div_ceil(tiles.rows());
        for i in 0..count {
            let [row, end] = [i, i + 1].map(|i| rows[0] + (rows[1] - rows[0]) * i / count);
            // SAFETY: `gemm` checked that the sizes fit the slices; the block belongs to this task alone.
            unsafe {
                tiles.run(
                    end - row,
                    Tile {
                        a: self.a.data.as_ptr().wrapping_add(row * self.a.row + depth[0] * self.a.column),
                        a_row: self.a.row,
                        a_step: self.a.column,
                        b: self.panels.data.as_ptr().wrapping_add(panel * self.panels.stride),
                        offsets: &self.panels.offsets[depth[0]..depth[1]],
                        start: self.start(row, column, depth[0]),
                        out: out.at(row * n + column),
                        out_row: n,
                        width: self.panels.width.min(n - column),
                    },
                );
            }
        }
    }

    fn start(&self, row: usize, column: usize, depth: usize) -> Start {
        match self.bias {
            _ if depth > 0 => Start::Output,
            Bias::None => Start::Zero,
            Bias::Rows(bias) => Start::Rows(bias[row..].as_ptr()),
            Bias::Columns(bias) => Start::Columns(bias[column..].as_ptr()),
        }
    }
}
