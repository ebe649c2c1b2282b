//! Products in tiles, in blocks: some rows, and some panels of columns at a time.

use super::left::Left;
use super::pack::PackedTiles;
use super::shape::{PAIRS, SIDE, WIDTH};
use super::tile::{Tiles, AHEAD};
use crate::gemm::{Cut, Finish, Shared};
use crate::int8::Configured;
use crate::threads::Threads;

/// The rows that are multiplied together: two tiles.
const ROWS: usize = 2 * SIDE;
/// The most tiles along the depth that are multiplied together. Sums of a deeper product are written to the output and read
/// again.
const DEPTH: usize = 96;
/// The most words of a block's rows, and of its panels. Both stay in the L2 cache.
const LEFT: usize = 1 << 18;
const RIGHT: usize = 1 << 17;
/// Blocks per thread, if there are several threads.
const SHARES: [usize; 2] = [4, 4];
/// Multiplications of two tiles of rows that are worth several threads.
const SPLIT: usize = 1 << 19;

/// `out = round(a) · b`, where `a` is `[m, k]` and `out` is `[m, n]`, and a function that finishes each row of each block.
pub(crate) struct Product<'a> {
    m: usize,
    a: &'a [f32],
    b: &'a PackedTiles,
    out: Shared,
    finish: Option<Finish<'a>>,
}

impl<'a> Product<'a> {
    /// A product of `m` rows.
    ///
    /// # Panics
    /// The slices do not fit the sizes.
    pub fn new(m: usize, a: &'a [f32], b: &'a PackedTiles, out: &'a mut [f32], finish: Option<Finish<'a>>) -> Self {
        let fits = a.len() == m * b.k && out.len() == m * b.n;
        assert!(fits, "the slices do not fit a product of {m} x {} x {}", b.n, b.k);
        Product { m, a, b, out: Shared::new(out), finish }
    }

    /// Computes a product that is not empty.
    pub fn run(&self, threads: &Threads) {
        let counts = [self.m.div_ceil(ROWS), self.b.n.div_ceil(WIDTH)];
        let serial = Threads::serial();
        let threads = if (counts[0] * self.b.n).saturating_mul(self.b.k) > SPLIT { threads } else { &serial };
        let left = Left::new(self.b.sums, threads, self.m, self.b.k, self.a);
        let depth = self.b.steps().min(DEPTH) * PAIRS;
        let most = [LEFT / (ROWS * depth), RIGHT / (WIDTH * depth)].map(|most| most.max(1));
        let cut = Cut { counts, most, least: [1, 1], shares: SHARES, prefers_panels: true };
        cut.for_each(threads, |rows, panels| self.block(&left, rows, panels));
    }

    /// Computes rows `ROWS · rows[0] .. ROWS · rows[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, left: &Left, rows: [usize; 2], panels: [usize; 2]) {
        let (steps, parts) = (self.b.steps(), self.b.steps().div_ceil(DEPTH));
        // SAFETY: the matrix is packed with a proof that the processor has AMX, and that the process may use it.
        let configured = unsafe { Configured::new(PAIRS) };
        for part in 0..parts {
            let depth = [part, part + 1].map(|part| steps * part / parts);
            for panel in panels[0]..panels[1] {
                (rows[0]..rows[1]).for_each(|i| self.tiles(left, i, panel, depth));
            }
        }
        drop(configured);
        let rows = rows.map(|i| self.m.min(i * ROWS));
        let columns = panels.map(|panel| self.b.n.min(panel * WIDTH));
        // SAFETY: this task has written these elements, and no other task accesses them.
        unsafe { self.out.finish(self.finish, self.b.n, rows, columns) }
    }

    /// Computes up to two tiles of rows of a panel, over a part of the depth. Four pairs of tiles prefetch the next panel.
    fn tiles(&self, left: &Left, i: usize, panel: usize, depth: [usize; 2]) {
        let (n, row, column) = (self.b.n, i * ROWS, panel * WIDTH);
        let (rows, steps) = (ROWS.min(self.m - row), depth[1] - depth[0]);
        let lower = usize::from(rows > SIDE);
        let b = self.b.tiles(panel, depth[0], steps);
        let tiles = Tiles {
            a: [0, lower].map(|below| left.tiles(2 * i + below, depth[0], steps)),
            b,
            steps,
            ahead: b.wrapping_add(self.b.panel()).wrapping_byte_add(i % 4 * steps * AHEAD),
            adds: depth[0] > 0,
            out: self.out.at(row * n + column),
            out_row: n,
            rows,
            columns: WIDTH.min(n - column),
        };
        // SAFETY: `new` checked that the sizes fit the slices. The part of the output belongs to this task alone. The tiles
        // are configured.
        unsafe { tiles.compute() };
    }
}
