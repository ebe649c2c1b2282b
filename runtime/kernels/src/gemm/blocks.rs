//! Products in blocks: some rows, some panels of columns, some of the depth at a time.

use std::cell::Cell;

use super::lines::Lines;
use super::pack::{pack, PackedB};
use super::strip::{Strip, FEW, STEPS};
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

/// The most rows of a block.
const ROWS: usize = 256;
/// The most rows of a block that packs its panels: more make up for the packing.
const PACKING_ROWS: usize = 512;
/// The most panels of a block: with so many, its output is still in the second-level cache when it is finished.
const PANELS: usize = 8;
/// Blocks for each of several threads: who is held up leaves some to the others.
const SHARES: usize = 4;
/// The fewest panels and tiles of rows of a block that could be larger.
const LEAST: usize = 2;
/// The depth that is walked before the next tile's turn: what is read of the right side stays near.
pub(super) const DEPTH: usize = 256;
/// How far ahead of few rows the right side is fetched.
const AHEAD: usize = 2048;
/// Elements of the left side that are read again for every panel: they stay in the second-level cache.
const LEFT: usize = 1 << 18;

thread_local! {
    /// Where blocks pack their panels.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// Panels of the right side.
struct Panels {
    /// Where the first row of the first panel is, or would be.
    origin: *const f32,
    /// The distance from one panel to the next.
    panel: usize,
    /// The distance from one row to the next.
    row: usize,
    /// Whether what comes next is worth fetching.
    ahead: bool,
    /// Where each row begins, if they end with the matrix; else they are filled up to whole vectors.
    offsets: Option<[u32; DEPTH]>,
}

impl Panels {
    fn at(&self, panel: usize, depth: usize) -> *const f32 {
        self.origin.wrapping_add(panel * self.panel).wrapping_add(depth * self.row)
    }
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
        let (high, panels) = (self.tiles.rows(), n.div_ceil(self.width));
        let [down, across] = self.cut(threads.count(), m.div_ceil(high), panels);
        threads.for_each(down * across, |task| {
            // Blocks with the same panels follow one another.
            let (i, j) = (task % down, task / down);
            let rows = [i, i + 1].map(|i| m.min(m.div_ceil(high) * i / down * high));
            let panels = [j, j + 1].map(|j| panels * j / across);
            let mut scratch = SCRATCH.take();
            self.block(out, rows, panels, &mut scratch);
            SCRATCH.set(scratch);
        });
    }

    /// How many blocks lie one below the other, and side by side.
    fn cut(&self, threads: usize, tiles: usize, panels: usize) -> [usize; 2] {
        let most = if matches!(self.source, Source::Packing(_)) { PACKING_ROWS } else { ROWS };
        let [mut down, mut across] = [tiles.div_ceil(most.div_ceil(self.tiles.rows())), panels.div_ceil(PANELS)];
        if threads > 1 {
            let more =
                |count: usize, other: usize, most: usize| (SHARES * threads).div_ceil(other).min(most).max(count);
            across = more(across, down, panels.div_ceil(LEAST));
            // Every block packs its panels: no more of them one below the other than threads need.
            if across < threads || !matches!(self.source, Source::Packing(_)) {
                down = more(down, across, tiles.div_ceil(LEAST));
            }
        }
        [down, across]
    }

    /// Rows `rows[0] .. rows[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, out: Shared, rows: [usize; 2], panels: [usize; 2], scratch: &mut Lines) {
        let Sizes { n, k, .. } = self.problem.sizes;
        let length = match &self.source {
            Source::Packed(_) => (LEFT / (rows[1] - rows[0]).max(1)).next_multiple_of(DEPTH),
            Source::Direct(_) | Source::Packing(_) => DEPTH,
        };
        for first in (0..k.max(1)).step_by(length) {
            let end = k.min(first + length);
            let b = self.panels(panels, [first, end], scratch);
            for panel in panels[0]..panels[1] {
                for depth in (first..end.max(first + 1)).step_by(DEPTH) {
                    let next = match depth + DEPTH < end {
                        true => b.at(panel, depth + DEPTH),
                        false if panel + 1 < panels[1] => b.at(panel + 1, first),
                        false if end < k => b.at(panels[0], end),
                        false => b.at(panels[1], 0),
                    };
                    self.part(out, rows, panel, [depth, end.min(depth + DEPTH)], &b, next);
                }
            }
        }
        // SAFETY: the columns lie in this block, which no other task touches.
        unsafe { self.problem.finish(out, rows, panels.map(|panel| n.min(panel * self.width))) }
    }

    /// Some panels, over part of the depth.
    fn panels(&self, panels: [usize; 2], depth: [usize; 2], scratch: &mut Lines) -> Panels {
        let (n, width) = (self.problem.sizes.n, self.width);
        match &self.source {
            Source::Packed(b) => {
                Panels { origin: b.data.as_ptr(), panel: b.k * width, row: width, ahead: true, offsets: None }
            }
            Source::Direct(b) => {
                let offsets = Some(std::array::from_fn(|i| (i * b.row) as u32));
                Panels { origin: b.data.as_ptr(), panel: width, row: b.row, ahead: false, offsets }
            }
            Source::Packing(b) => {
                let length = depth[1] - depth[0];
                let size = (panels[1] - panels[0]) * length * width;
                if scratch.len() < size {
                    *scratch = Lines::for_overwrite(size);
                }
                let columns = panels.map(|panel| n.min(panel * width));
                pack(self.problem.isa, &mut scratch[..size], width, b, depth, columns);
                let origin = scratch.as_ptr().wrapping_sub(panels[0] * length * width).wrapping_sub(depth[0] * width);
                Panels { origin, panel: length * width, row: width, ahead: false, offsets: None }
            }
        }
    }

    /// A block of rows of a panel, over part of the depth; `next` is read after it.
    fn part(&self, out: Shared, rows: [usize; 2], panel: usize, depth: [usize; 2], b: &Panels, next: *const f32) {
        let (a, n) = (self.problem.a, self.problem.sizes.n);
        let length = depth[1] - depth[0];
        let mut strip = self.strip(out, rows[0], panel, depth, b);
        let count = (rows[1] - rows[0]).div_ceil(self.tiles.rows());
        let (least, longer) = ((rows[1] - rows[0]) / count, (rows[1] - rows[0]) % count);
        if b.ahead && count == 1 && least <= FEW {
            (strip.ahead, strip.ahead_step) = (strip.tile.b.wrapping_add(AHEAD), STEPS * b.row);
        } else if b.ahead {
            // Each tile fetches its share of what comes next.
            (strip.ahead, strip.ahead_step) = (next, (length * self.width).div_ceil((length / STEPS * count).max(1)));
        }
        let vectors = strip.tile.width.div_ceil(self.tiles.lanes);
        let masked = b.offsets.as_ref().filter(|_| strip.tile.width < vectors * self.tiles.lanes);
        for i in 0..count {
            let rows = least + usize::from(i < longer);
            // SAFETY: `gemm` checked that the sizes fit the slices; the block belongs to this task alone; the panel is no wider than
            // a tile of the most rows.
            unsafe {
                match masked {
                    Some(offsets) => self.tiles.run(rows, Tile { offsets: &offsets[..length], ..strip.tile }),
                    None => self.tiles.strips[rows - 1][vectors - 1](&strip),
                }
                strip.tile.start = strip.tile.start.below(rows);
            }
            strip.tile.a = strip.tile.a.wrapping_add(rows * a.row);
            strip.tile.out = strip.tile.out.wrapping_add(rows * n);
            strip.ahead = strip.ahead.wrapping_add(length / STEPS * strip.ahead_step);
        }
    }

    /// The tile at a row and a panel, over part of the depth.
    fn strip(&self, out: Shared, row: usize, panel: usize, depth: [usize; 2], b: &Panels) -> Strip<'_> {
        let (a, n, column) = (self.problem.a, self.problem.sizes.n, panel * self.width);
        let tile = Tile {
            a: a.data.as_ptr().wrapping_add(row * a.row + depth[0] * a.column),
            a_row: a.row,
            a_step: a.column,
            b: b.at(panel, depth[0]),
            offsets: &[],
            start: self.problem.start(row, column, depth[0]),
            out: out.at(row * n + column),
            out_row: n,
            width: self.width.min(n - column),
        };
        Strip { b_step: b.row, depth: depth[1] - depth[0], ahead: tile.b, ahead_step: 0, tile }
    }
}
