//! Products in blocks: some rows, some panels of columns, some of the depth at a time.

use std::cell::Cell;

use super::lines::Lines;
use super::pack::{pack, PackedB};
use super::tile::{Tile, Tiles};
use super::{Matrix, Problem, Shared, Sizes};
use crate::threads::Threads;

/// Where the panels of the right side come from.
pub(super) enum Source<'a> {
    /// Packed before.
    Packed(&'a PackedB),
    /// They are read where they are: columns that follow one another.
    Direct(Matrix<'a>),
    /// Each block packs its own.
    Packing(Matrix<'a>),
}

/// A product by tiles.
pub(super) struct Product<'a> {
    problem: &'a Problem<'a>,
    source: Source<'a>,
    tiles: Tiles,
    /// The columns of a panel.
    width: usize,
}

/// Rows of a block: with so many, what is read of the left side stays in the second-level cache.
const ROWS: usize = 64;
/// Rows of a block that packs its panels: more make up for the packing.
const PACKING_ROWS: usize = 512;
/// Panels of a block.
const PANELS: usize = 8;
/// The depth that is walked before the next tile's turn: a panel of it stays in the first-level cache.
pub(super) const DEPTH: usize = 128;

thread_local! {
    /// Where blocks pack their panels.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// Some panels of the right side, over part of the depth.
struct Slab {
    data: *const f32,
    /// The distance from one panel to the next.
    panel: usize,
    /// Where each row of a panel begins.
    offsets: [u32; DEPTH],
}

impl<'a> Product<'a> {
    pub fn new(problem: &'a Problem<'a>, source: Source<'a>) -> Product<'a> {
        let tiles = Tiles::of(problem.isa);
        let Sizes { m, n, .. } = problem.sizes;
        let width = match &source {
            Source::Packed(b) => b.width,
            Source::Direct(_) | Source::Packing(_) => tiles.panel_width(m, n),
        };
        Product { problem, source, tiles, width }
    }

    pub fn run(&self, threads: &Threads, out: Shared) {
        let Sizes { m, n, .. } = self.problem.sizes;
        let panels = n.div_ceil(self.width);
        let most = if matches!(self.source, Source::Packing(_)) { PACKING_ROWS } else { ROWS };
        let mut rows = most.min(m);
        // Few rows: the blocks are narrower, so that every thread has some.
        let columns = panels.div_ceil(threads.count() * m.div_ceil(rows)).clamp(1, PANELS);
        let across = panels.div_ceil(columns);
        if across < threads.count() {
            rows = m.div_ceil(threads.count().div_ceil(across)).next_multiple_of(self.tiles.rows()).min(rows);
        }
        let down = m.div_ceil(rows);
        threads.for_each(down * across, |task| {
            let (i, j) = (task % down, task / down);
            let mut scratch = SCRATCH.take();
            self.block(
                out,
                [i * rows, m.min((i + 1) * rows)],
                [j * columns, panels.min((j + 1) * columns)],
                &mut scratch,
            );
            SCRATCH.set(scratch);
        });
    }

    /// Rows `rows[0] .. rows[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, out: Shared, rows: [usize; 2], panels: [usize; 2], scratch: &mut Lines) {
        let Sizes { n, k, .. } = self.problem.sizes;
        for first in (0..k.max(1)).step_by(DEPTH) {
            let depth = [first, k.min(first + DEPTH)];
            let slab = self.slab(panels, depth, scratch);
            for panel in panels[0]..panels[1] {
                let b = slab.data.wrapping_add((panel - panels[0]) * slab.panel);
                self.panel(out, rows, panel * self.width, depth[0], b, &slab.offsets[..depth[1] - depth[0]]);
            }
        }
        // SAFETY: the columns lie in this block, which no other task touches.
        unsafe { self.problem.finish(out, rows, panels.map(|panel| n.min(panel * self.width))) }
    }

    fn slab(&self, panels: [usize; 2], depth: [usize; 2], scratch: &mut Lines) -> Slab {
        let n = self.problem.sizes.n;
        let length = depth[1] - depth[0];
        let (data, panel, step) = match &self.source {
            Source::Packed(b) => {
                let first = (panels[0] * b.k + depth[0]) * self.width;
                (b.data.as_ptr().wrapping_add(first), b.k * self.width, self.width)
            }
            Source::Direct(b) => {
                (b.data.as_ptr().wrapping_add(depth[0] * b.row + panels[0] * self.width), self.width, b.row)
            }
            Source::Packing(b) => {
                let size = (panels[1] - panels[0]) * length * self.width;
                if scratch.len() < size {
                    *scratch = Lines::for_overwrite(size);
                }
                let columns = panels.map(|panel| n.min(panel * self.width));
                pack(self.problem.isa, &mut scratch[..size], self.width, b, depth, columns);
                (scratch.as_ptr(), length * self.width, self.width)
            }
        };
        let mut offsets = [0; DEPTH];
        for (i, offset) in offsets[..length].iter_mut().enumerate() {
            *offset = (i * step) as u32;
        }
        Slab { data, panel, offsets }
    }

    /// A block of rows of the panel that begins at a column, over part of the depth.
    fn panel(&self, out: Shared, rows: [usize; 2], column: usize, depth: usize, b: *const f32, offsets: &[u32]) {
        let Problem { a, sizes: Sizes { n, .. }, .. } = *self.problem;
        let count = (rows[1] - rows[0]).div_ceil(self.tiles.rows());
        for i in 0..count {
            let [row, end] = [i, i + 1].map(|i| rows[0] + (rows[1] - rows[0]) * i / count);
            // SAFETY: `gemm` checked that the sizes fit the slices; the block belongs to this task alone.
            unsafe {
                self.tiles.run(
                    end - row,
                    Tile {
                        a: a.data.as_ptr().wrapping_add(row * a.row + depth * a.column),
                        a_row: a.row,
                        a_step: a.column,
                        b,
                        offsets,
                        start: self.problem.start(row, column, depth),
                        out: out.at(row * n + column),
                        out_row: n,
                        width: self.width.min(n - column),
                    },
                );
            }
        }
    }
}
