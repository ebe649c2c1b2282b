//! Products of pairs in blocks: some rows, some panels of columns, and a part of the depth at a time.

use super::pack::PackedPairs;
use super::sums::ROWS;
use crate::gemm::{Cut, Finish, Shared};
use crate::scratch::Scratch;
use crate::threads::Threads;

/// The pairs that a tile sums from zero. Then it adds the sum to that of the pairs before.
const DEPTH: usize = 256;
/// Pairs of the left operand that are read again for every panel; they fit in the L2 cache.
const LEFT: usize = 1 << 17;
/// The maximum tiles of rows, and panels, per block.
const MOST: [usize; 2] = [32, 8];
/// The minimum of both where the product is cut for the threads.
const LEAST: [usize; 2] = [2, 2];
/// Blocks per thread, if there are several threads.
const SHARES: [usize; 2] = [4, 4];
/// Pairs that one task rounds, and that are worth several threads.
const TASK: usize = 1 << 13;
const SPLIT: usize = 1 << 16;

/// `out = round(a) · b`, where `a` is `[m, k]` and `out` is `[m, n]`, and a function that finishes each row of each block.
///
/// A sum consists of parts of [`DEPTH`] pairs. Each part is summed from zero, in order, with one instruction for a pair. The
/// parts are added in order.
pub(crate) struct Product<'a> {
    m: usize,
    a: &'a [f32],
    b: &'a PackedPairs,
    out: Shared,
    finish: Option<Finish<'a>>,
}

impl<'a> Product<'a> {
    /// A product of `m` rows.
    ///
    /// # Panics
    /// The slices do not fit the sizes.
    pub fn new(m: usize, a: &'a [f32], b: &'a PackedPairs, out: &'a mut [f32], finish: Option<Finish<'a>>) -> Self {
        let fits = a.len() == m * b.k && out.len() == m * b.n;
        assert!(fits, "the slices do not fit a product of {m} x {} x {}", b.n, b.k);
        Product { m, a, b, out: Shared::new(out), finish }
    }

    /// Computes a product that is not empty.
    pub fn run(&self, threads: &Threads) {
        let left = self.rounded(threads);
        let counts = [self.m.div_ceil(ROWS), self.b.n.div_ceil(self.b.width)];
        let cut = Cut { counts, most: MOST, least: LEAST, shares: SHARES, prefers_panels: false };
        cut.for_each(threads, |tiles, panels| {
            self.block(&left, tiles.map(|tile| self.m.min(tile * ROWS)), panels);
        });
    }

    /// The left operand in pairs.
    fn rounded(&self, threads: &Threads) -> Scratch<u32> {
        let (k, pairs) = (self.b.k, self.b.pairs());
        let serial = Threads::serial();
        let threads = if self.m * pairs > SPLIT { threads } else { &serial };
        let rows = (TASK / pairs.max(1)).max(1);
        Scratch::overwritten(self.m * pairs, |words| {
            threads.for_each_chunk(words, rows * pairs, |i, words| {
                let from = &self.a[i * rows * k..][..words.len() / pairs * k];
                self.round(from, words);
            });
        })
    }

    /// Computes rows `rows[0] .. rows[1]` of panels `panels[0] .. panels[1]`.
    fn block(&self, left: &[u32], rows: [usize; 2], panels: [usize; 2]) {
        let pairs = self.b.pairs();
        let length = (LEFT / (rows[1] - rows[0])).next_multiple_of(DEPTH);
        for first in (0..pairs.max(1)).step_by(length) {
            let end = pairs.min(first + length);
            for panel in panels[0]..panels[1] {
                for depth in (first..end.max(first + 1)).step_by(DEPTH) {
                    self.part(left, rows, panel, [depth, end.min(depth + DEPTH)]);
                }
            }
        }
        let columns = panels.map(|panel| self.b.n.min(panel * self.b.width));
        // SAFETY: this task has written these elements, and no other task accesses them.
        unsafe { self.out.finish(self.finish, self.b.n, rows, columns) }
    }

    #[cfg(target_arch = "x86_64")]
    fn round(&self, from: &[f32], to: &mut [u32]) {
        super::round::round_pairs(self.b.sums, from, self.b.k, to);
    }

    /// Computes some rows of a panel over a part of the depth, tile after tile.
    #[cfg(target_arch = "x86_64")]
    fn part(&self, left: &[u32], rows: [usize; 2], panel: usize, depth: [usize; 2]) {
        use super::sums::LANES;
        use super::tile::{kernel, Tile};

        let (n, pairs, column) = (self.b.n, self.b.pairs(), panel * self.b.width);
        let columns = self.b.width.min(n - column);
        let count = (rows[1] - rows[0]).div_ceil(ROWS);
        for i in 0..count {
            let [row, end] = [i, i + 1].map(|i| rows[0] + (rows[1] - rows[0]) * i / count);
            let tile = Tile {
                a: left[row * pairs + depth[0]..end * pairs].as_ptr(),
                a_row: pairs,
                b: self.b.at(panel, depth[0]),
                b_step: self.b.width,
                pairs: depth[1] - depth[0],
                adds: depth[0] > 0,
                out: self.out.at(row * n + column),
                out_row: n,
                columns,
            };
            // SAFETY: `new` checked that the sizes fit the slices. The part of the output belongs to this task alone. The
            // matrix is packed with a proof that the processor has the instructions.
            unsafe { kernel(self.b.sums, end - row, columns.div_ceil(LANES))(&tile) };
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn round(&self, _: &[f32], _: &mut [u32]) {
        self.b.sums.never()
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn part(&self, _: &[u32], _: [usize; 2], _: usize, _: [usize; 2]) {
        self.b.sums.never()
    }
}
