//! Products in quads, in blocks: some tiles of rows, and some panels of columns at a time.

use super::left::Left;
use super::pack::PackedQuads;
use super::sizes::{PAIR, ROWS, WIDTH};
use super::tile::{kernel, Tile};
use crate::gemm::{Cut, Finish, Shared};
use crate::threads::Threads;

/// The quads that a tile sums from zero. Then it adds the sum to that of the quads before. Those of a panel stay in the L1
/// cache for all rows of a block.
const DEPTH: usize = 256;
/// The maximum tiles of rows, and panels, per block. A part of these rows stays in the L2 cache for all panels.
const MOST: [usize; 2] = [8, 32];
/// Blocks per thread, if there are several threads.
const SHARES: [usize; 2] = [4, 4];

/// `out = round(a) · b`, where `a` is `[m, k]` and `out` is `[m, n]`, and a function that finishes each row of each block.
///
/// A sum consists of parts of [`DEPTH`] quads. Each part is summed from zero, in order, with one instruction for a quad. The
/// parts are added in order.
pub(crate) struct Product<'a> {
    m: usize,
    a: &'a [f32],
    b: &'a PackedQuads,
    out: Shared,
    finish: Option<Finish<'a>>,
}

impl<'a> Product<'a> {
    /// A product of `m` rows.
    ///
    /// # Panics
    /// The slices do not fit the sizes.
    pub fn new(m: usize, a: &'a [f32], b: &'a PackedQuads, out: &'a mut [f32], finish: Option<Finish<'a>>) -> Self {
        let fits = a.len() == m * b.k && out.len() == m * b.n;
        assert!(fits, "the slices do not fit a product of {m} x {} x {}", b.n, b.k);
        Product { m, a, b, out: Shared::new(out), finish }
    }

    /// Computes the product.
    pub fn run(&self, threads: &Threads) {
        let counts = [self.m.div_ceil(ROWS), self.b.n.div_ceil(WIDTH)];
        if !counts.contains(&0) {
            let left = Left::new(self.b.sums, threads, self.m, self.b.k, self.a);
            let cut = Cut { counts, most: MOST, least: [1, 1], shares: SHARES, prefers_panels: true };
            cut.for_each(threads, |tiles, panels| self.block(&left, tiles, panels));
        }
    }

    /// Computes the tiles of rows `tiles[0] .. tiles[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, left: &Left, tiles: [usize; 2], panels: [usize; 2]) {
        let parts = self.b.quads().div_ceil(DEPTH).max(1);
        for part in 0..parts {
            let depth = [part, part + 1].map(|part| self.b.quads().min(part * DEPTH));
            for panel in panels[0]..panels[1] {
                (tiles[0]..tiles[1]).for_each(|i| self.tile(left, i, panel, depth));
            }
        }
        let (rows, columns) = (tiles.map(|i| self.m.min(i * ROWS)), panels.map(|panel| self.b.n.min(panel * WIDTH)));
        // SAFETY: this task has written these elements, and no other task accesses them.
        unsafe { self.out.finish(self.finish, self.b.n, rows, columns) }
    }

    /// Computes a tile over the quads `depth[0] .. depth[1]`.
    fn tile(&self, left: &Left, i: usize, panel: usize, depth: [usize; 2]) {
        let (n, row, column) = (self.b.n, i * ROWS, panel * WIDTH);
        let rows = ROWS.min(self.m - row);
        let pairs = rows.div_ceil(PAIR);
        let tile = Tile {
            a: left.at(i, pairs, depth[0]),
            b: self.b.at(panel, depth[0]),
            quads: depth[1] - depth[0],
            adds: depth[0] > 0,
            out: self.out.at(row * n + column),
            out_row: n,
            rows,
            columns: WIDTH.min(n - column),
        };
        // SAFETY: `new` checked that the sizes fit the slices. The part of the output belongs to this task alone. The matrix
        // is packed with a proof that the processor has the instructions.
        unsafe { kernel(self.b.sums, pairs)(&tile) };
    }
}
