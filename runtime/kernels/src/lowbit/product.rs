//! Products in blocks: some rows, some panels of columns, and a part of the depth at a time.

use std::cell::Cell;

use super::kernels::Kernels;
use super::pack::PackedCodes;
use super::tile::{Kernel, Tile};
use super::unpack::unpack;
use crate::gemm::{Finish, Lines, Shared};
use crate::threads::Threads;

/// Multiplications that are worth several threads.
const SPLIT: usize = 1 << 20;
/// The maximum number of rows whose tiles read the codes. With more rows, a block first computes the numbers of a panel.
const FEW: usize = 4;
/// The maximum rows per block.
const ROWS: usize = 256;
/// The maximum panels per block.
const PANELS: usize = 8;
/// Blocks per thread, if there are several threads, so that others take over work from a delayed thread.
const SHARES: usize = 4;
/// The depth of the numbers that a block computes at a time, if a block of codes is not deeper.
const DEPTH: usize = 256;

thread_local! {
    /// The buffer for the numbers of a panel.
    static SCRATCH: Cell<Lines> = const { Cell::new(Lines::new()) };
}

/// `out = a · Wᵀ`, where `a` is `[m, k]` and `out` is `[m, n]`. Calls `finish` on every row of every block.
///
/// A sum consists of pieces: blocks of codes, or parts of them with at most 64 terms. A piece is `Σₖ a[k] · (code[k] −
/// zero)`, from zero and in order, with one fused multiply-add per term. The sum of all pieces, each times the scale of
/// its block, is computed in order, with one fused multiply-add per piece.
///
/// # Panics
/// The slices do not fit the sizes.
pub fn product(threads: &Threads, m: usize, a: &[f32], b: &PackedCodes, out: &mut [f32], finish: Option<Finish>) {
    assert!(a.len() == m * b.k && out.len() == m * b.n, "the slices do not fit a product of {m} x {} x {}", b.n, b.k);
    if out.is_empty() {
        return;
    }
    if b.k == 0 {
        out.fill(0.0);
    }
    let serial = Threads::serial();
    let threads = if (m * b.n).saturating_mul(b.k) > SPLIT { threads } else { &serial };
    Product { m, a, b, out: Shared::new(out), finish, kernels: Kernels::of(b.isa) }.run(threads);
}

struct Product<'a> {
    m: usize,
    a: &'a [f32],
    b: &'a PackedCodes,
    out: Shared,
    finish: Option<Finish<'a>>,
    kernels: &'static Kernels,
}

impl Product<'_> {
    fn run(&self, threads: &Threads) {
        let panels = self.b.panels();
        let (mut down, mut across) = (self.m.div_ceil(ROWS), panels.div_ceil(PANELS));
        if threads.count() > 1 {
            across = (SHARES * threads.count()).div_ceil(down).min(panels).max(across);
            down = threads.count().div_ceil(across).min(self.m.div_ceil(FEW)).max(down);
        }
        threads.for_each(down * across, |task| {
            // Blocks with the same panels are consecutive.
            let (i, j) = (task % down, task / down);
            let (rows, panels) = ([i, i + 1].map(|i| self.m * i / down), [j, j + 1].map(|j| panels * j / across));
            if self.m <= FEW {
                self.stream(rows, panels);
            } else {
                let mut scratch = SCRATCH.take();
                self.block(rows, panels, &mut scratch);
                SCRATCH.set(scratch);
            }
            self.finish(rows, panels);
        });
    }

    /// Computes a few rows. Reads the codes of each panel in their order.
    fn stream(&self, rows: [usize; 2], panels: [usize; 2]) {
        for panel in panels[0]..panels[1] {
            self.tiles(rows, panel, [0, self.b.k], std::ptr::null(), self.kernels.packed(self.b));
        }
    }

    /// Computes many rows. Computes the numbers of a part of a panel, then multiplies them with all rows.
    fn block(&self, rows: [usize; 2], panels: [usize; 2], scratch: &mut Lines) {
        let mut first = 0;
        while first < self.b.k {
            let depth = [first, self.part(first)];
            for panel in panels[0]..panels[1] {
                let length = (depth[1] - depth[0]) * self.b.width;
                let numbers = scratch.overwrite(length, |numbers| unpack(self.b, panel, depth, numbers));
                self.tiles(rows, panel, depth, numbers.as_ptr(), self.kernels.unpacked);
            }
            first = depth[1];
        }
    }

    /// The end of the part of the depth that begins at `first`: whole blocks of codes, or whole pieces of one block.
    fn part(&self, first: usize) -> usize {
        let (size, block) = (self.b.block, first / self.b.block);
        let end = if size <= DEPTH { (block + DEPTH / size) * size } else { (first + DEPTH).min((block + 1) * size) };
        end.min(self.b.k)
    }

    /// Computes some rows of a panel over a part of the depth, tile after tile. `kernels` are the tiles by number of rows.
    fn tiles(&self, rows: [usize; 2], panel: usize, depth: [usize; 2], numbers: *const f32, kernels: &[Kernel]) {
        let (n, k, column) = (self.b.n, self.b.k, panel * self.b.width);
        let count = (rows[1] - rows[0]).div_ceil(kernels.len());
        for i in 0..count {
            let [row, end] = [i, i + 1].map(|i| rows[0] + (rows[1] - rows[0]) * i / count);
            let tile = Tile {
                b: self.b,
                a: self.a[row * k..].as_ptr(),
                a_row: k,
                panel,
                numbers,
                depth,
                out: self.out.at(row * n + column),
                out_row: n,
                columns: self.b.width.min(n - column),
            };
            // SAFETY: `product` checked that the sizes fit the slices. The part of the output belongs to this task alone.
            // `numbers` holds those of this part of the panel. The matrix is packed for an `Isa`, which proves that the
            // processor has the instructions of `kernels`.
            unsafe { kernels[end - row - 1](&tile) };
        }
    }

    /// Calls the function that finishes the output with the columns of `panels` of each row.
    fn finish(&self, rows: [usize; 2], panels: [usize; 2]) {
        let Some(finish) = self.finish else { return };
        let [first, end] = panels.map(|panel| self.b.n.min(panel * self.b.width));
        for row in rows[0]..rows[1] {
            let offset = row * self.b.n + first;
            // SAFETY: this task has written these elements, and no other task accesses them.
            finish(unsafe { std::slice::from_raw_parts_mut(self.out.at(offset), end - first) }, offset);
        }
    }
}
