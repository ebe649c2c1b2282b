//! Products in blocks: some rows, some panels of columns, and a part of the depth at a time.

use std::cell::Cell;

use super::cut::Cut;
use super::lines::Lines;
use super::operands::{ProductSizes, Shared};
use super::panels::{Panels, Source, DEPTH};
use super::problem::Problem;
use super::stored::Format;
use super::strip::{Kernel, Strip, STEPS};
use super::tile::Tile;
use super::tiles::Tiles;
use crate::threads::Threads;

/// A product that is computed by tiles.
pub(super) struct Product<'a> {
    problem: &'a Problem<'a>,
    source: &'a dyn Source,
    tiles: Tiles,
    /// The columns per panel.
    width: usize,
}

/// The maximum rows per block.
const ROWS: usize = 256;
/// The maximum rows per block that packs its panels: with more rows, packing pays off more.
const PACKING_ROWS: usize = 512;
/// The maximum panels per block: with so few, the block's output is still in the L2 cache when the epilogue runs.
const PANELS: usize = 8;
/// Blocks per thread, if there are several threads.
const SHARES: usize = 4;
/// The minimum number of panels and of tiles of rows in a block, if there are enough of them.
const LEAST: usize = 2;
/// The prefetch distance of the right operand for few rows, in bytes. The processor then starts the loads of many rows
/// of the right operand at once, and prefetching further ahead delays them.
const AHEAD: usize = 1024;
/// Few rows: up to this share of the lanes of a vector.
const FEW: usize = 4;
/// The elements of a right operand that is often still in the L2 cache when the next run multiplies one row with it. A
/// prefetch into this cache would not help.
const SMALL: usize = 1 << 17;
/// The number of tiles from which on prefetching into the L1 cache keeps up with memory. A core can have fewer loads
/// into this cache under way than loads into the L2 cache.
const NEAR: usize = 4;

thread_local! {
    /// The buffer in which blocks pack or widen their panels.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// Some rows of the output of one panel or two, over a part of the depth.
struct Part {
    rows: [usize; 2],
    panel: usize,
    /// The tile over this panel and the next one, if there is such a tile.
    pair: Option<Kernel>,
    depth: [usize; 2],
    /// The address that is read after this part.
    next: *const u8,
}

impl<'a> Product<'a> {
    pub fn new(problem: &'a Problem<'a>, source: &'a dyn Source) -> Product<'a> {
        let tiles = Tiles::of(problem.isa);
        Product { problem, source, tiles, width: source.width(tiles, problem.sizes) }
    }

    pub fn run(&self, threads: &Threads, out: Shared) {
        let (m, high) = (self.problem.sizes.m, self.tiles.rows());
        self.cut().for_each(threads, |tiles, panels| {
            let mut scratch = SCRATCH.take();
            self.block(out, tiles.map(|tile| m.min(tile * high)), panels, &mut scratch);
            SCRATCH.set(scratch);
        });
    }

    /// The blocks of the output, in tiles of rows.
    fn cut(&self) -> Cut {
        let (ProductSizes { m, n, .. }, high) = (self.problem.sizes, self.tiles.rows());
        // If every block packs its panels, there are only as many blocks along the rows as the threads need.
        let prefers_panels = self.source.is_packed_by_blocks();
        let most = if prefers_panels { PACKING_ROWS } else { ROWS };
        Cut {
            counts: [m.div_ceil(high), n.div_ceil(self.width)],
            most: [most.div_ceil(high), PANELS],
            least: [LEAST; 2],
            shares: [SHARES; 2],
            prefers_panels,
        }
    }

    /// Computes rows `rows[0] .. rows[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, out: Shared, rows: [usize; 2], panels: [usize; 2], scratch: &mut Lines) {
        let ProductSizes { n, k, .. } = self.problem.sizes;
        let length = self.source.length(rows[1] - rows[0]);
        for first in (0..k.max(1)).step_by(length) {
            let end = k.min(first + length);
            let b = self.source.panels(self.width, panels, [first, end], scratch);
            let mut panel = panels[0];
            while panel < panels[1] {
                let pair = self.pair(&b, rows[1] - rows[0], panel, panels[1]);
                let following = panel + if pair.is_some() { 2 } else { 1 };
                for depth in (first..end.max(first + 1)).step_by(DEPTH) {
                    let next = match depth + DEPTH < end {
                        true => b.at(panel, depth + DEPTH),
                        false if following < panels[1] => b.at(following, first),
                        false if end < k => b.at(panels[0], end),
                        false => b.at(panels[1], 0),
                    };
                    let part = Part { rows, panel, pair, depth: [depth, end.min(depth + DEPTH)], next };
                    self.part(out, &part, &b, scratch);
                }
                panel = following;
            }
        }
        // SAFETY: the columns are inside this block, which no other task accesses.
        unsafe { self.problem.finish(out, rows, panels.map(|panel| n.min(panel * self.width))) }
    }

    /// Returns the tile of `rows` rows over a panel and the next one. The next one must be in the block, and have as many
    /// vectors.
    fn pair(&self, b: &Panels, rows: usize, panel: usize, end: usize) -> Option<Kernel> {
        let vectors = self.width.div_ceil(self.tiles.lanes);
        let pair = if b.ahead { self.tiles.strips.pair(b.format, rows, vectors) } else { None };
        let columns = self.problem.sizes.n.saturating_sub((panel + 1) * self.width);
        pair.filter(|_| panel + 1 < end && columns > (vectors - 1) * self.tiles.lanes)
    }

    /// Computes one part, tile after tile.
    fn part(&self, out: Shared, part: &Part, b: &Panels, scratch: &mut Lines) {
        let (a, n, rows) = (self.problem.a, self.problem.sizes.n, part.rows[1] - part.rows[0]);
        let length = part.depth[1] - part.depth[0];
        let count = rows.div_ceil(self.tiles.rows());
        let (least, longer) = (rows / count, rows % count);
        let (from, format) = self.near(part, b, count, scratch);
        let mut strip = self.strip(out, part, from, b);
        // The conversion of a panel reads it once, from front to back.
        strip.near = count >= NEAR || format != b.format || (rows == 1 && self.is_small());
        if b.ahead && count == 1 && least * FEW <= self.tiles.lanes {
            (strip.ahead, strip.ahead_step) = (from.wrapping_add(AHEAD), STEPS * b.row * format.size());
        } else if b.ahead {
            // Each tile prefetches its share of the rows that are read next.
            let bytes = length * self.width * b.format.size();
            (strip.ahead, strip.ahead_step) = (part.next, bytes.div_ceil((length / STEPS * count).max(1)));
        }
        if let Some(pair) = part.pair {
            // SAFETY: as below.
            return unsafe { pair(&strip) };
        }
        let vectors = strip.tile.width.div_ceil(self.tiles.lanes);
        let masked = b.offsets.as_ref().filter(|_| strip.tile.width < vectors * self.tiles.lanes);
        for i in 0..count {
            let rows = least + usize::from(i < longer);
            // SAFETY: `Problem::new` checked that the sizes fit the slices. The block belongs to this task alone. The panel is
            // at most as wide as a tile with the most rows. If rows end with the matrix, they are `f32`. `tiles` belong
            // to an `Isa`, which proves that the processor has their instructions.
            unsafe {
                match masked {
                    Some(offsets) => self.tiles.run(rows, Tile { offsets: &offsets[..length], ..strip.tile }),
                    None => self.tiles.strips.kernel(format, rows, vectors)(&strip),
                }
                strip.tile.start = strip.tile.start.below(rows);
            }
            strip.tile.a = strip.tile.a.wrapping_add(rows * a.row);
            strip.tile.out = strip.tile.out.wrapping_add(rows * n);
            strip.ahead = strip.ahead.wrapping_add(length / STEPS * strip.ahead_step);
        }
    }

    /// Returns the rows of the right operand that the tiles of a part read, and their type. If several tiles read
    /// 16-bit numbers, these are converted to `f32` once in advance: a tile that converts its numbers takes a quarter
    /// longer, unless memory is the bottleneck.
    fn near(&self, part: &Part, b: &Panels, tiles: usize, scratch: &mut Lines) -> (*const u8, Format) {
        let widened = if tiles > 1 { self.source.widened(part.panel, part.depth, self.width, scratch) } else { None };
        match widened {
            Some(widened) => (widened.as_ptr().cast(), Format::Float32),
            None => (b.at(part.panel, part.depth[0]), b.format),
        }
    }

    fn is_small(&self) -> bool {
        let ProductSizes { n, k, .. } = self.problem.sizes;
        n.saturating_mul(k) <= SMALL
    }

    /// Returns the first tile of a part, whose rows of the right operand start at `from`.
    fn strip(&self, out: Shared, part: &Part, from: *const u8, b: &Panels) -> Strip<'_> {
        let (a, n, column) = (self.problem.a, self.problem.sizes.n, part.panel * self.width);
        let (row, depth) = (part.rows[0], part.depth);
        let tile = Tile {
            a: a.data.as_ptr().wrapping_add(row * a.row + depth[0] * a.column),
            a_row: a.row,
            a_step: a.column,
            b: from.cast(),
            offsets: &[],
            start: self.problem.start(row, column, depth[0]),
            out: out.at(row * n + column),
            out_row: n,
            width: (if part.pair.is_some() { 2 * self.width } else { self.width }).min(n - column),
        };
        Strip {
            b: from,
            b_step: b.row,
            b_panel: b.panel,
            depth: depth[1] - depth[0],
            ahead: from,
            ahead_step: 0,
            near: false,
            tile,
        }
    }
}
