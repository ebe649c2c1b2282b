//! Products in blocks: some rows, and some panels of columns.

use super::case::LowBitCase;
use super::kernels::Kernels;
use super::output::Output;
use super::pack::PackedCodes;
use super::tile::Tile;
use crate::gemm::{Cut, Finish, ProductSizes, Shared};
use crate::threads::Threads;

/// The maximum rows per block.
const ROWS: usize = 256;
/// The maximum panels per block.
const PANELS: usize = 8;
/// Blocks of rows and of panels per thread, if there are several threads: the rows are cut only as often as the threads
/// need.
const SHARES: [usize; 2] = [1, 4];
/// The minimum rows and panels per block, if the product is cut for several threads.
const LEAST: [usize; 2] = [4, 1];

/// `out = a · Wᵀ`, where `a` is `[m, k]` and `out` is `[m, n]`, and a function that finishes each row of each block.
///
/// In the forms that do not round `a`, a sum consists of pieces: blocks of codes, or parts of them with at most 64 terms. A piece is `Σₖ a[k] · (code[k] −
/// zero)`, from zero and in order, with one fused multiply-add per term. The sum of all pieces, each times the scale of
/// its block, is computed in order, with one fused multiply-add per piece.
pub(crate) struct Product<'a> {
    pub(super) m: usize,
    pub(super) a: &'a [f32],
    pub(super) b: &'a PackedCodes,
    out: Shared,
    finish: Option<Finish<'a>>,
    pub(super) kernels: &'static Kernels,
}

impl<'a> Product<'a> {
    /// A product of `m` rows.
    ///
    /// # Panics
    /// The slices do not fit the sizes.
    pub fn new(
        m: usize,
        a: &'a [f32],
        b: &'a PackedCodes,
        out: &'a mut [f32],
        finish: Option<Finish<'a>>,
    ) -> Product<'a> {
        assert!(
            a.len() == m * b.k && out.len() == m * b.n,
            "the slices do not fit a product of {m} x {} x {}",
            b.n,
            b.k
        );
        if b.k == 0 {
            out.fill(0.0);
        }
        Product { m, a, b, out: Shared::new(out), finish, kernels: Kernels::of(b.isa) }
    }

    /// The facts that decide the form. `rounds` if the left operand may be rounded to 8 bits.
    pub fn case(&self, rounds: bool) -> LowBitCase {
        let PackedCodes { isa, n, k, bits, block, .. } = *self.b;
        LowBitCase { isa, sizes: ProductSizes { m: self.m, n, k }, bits, block, rounds }
    }

    /// Calls `compute(rows, panels)` for every block of a product that is not empty. Then it finishes the block.
    pub(super) fn for_each_block(&self, threads: &Threads, compute: impl Fn([usize; 2], [usize; 2]) + Sync) {
        let counts = [self.m, self.b.panels()];
        let cut = Cut { counts, most: [ROWS, PANELS], least: LEAST, shares: SHARES, prefers_panels: true };
        cut.for_each(threads, |rows, panels| {
            compute(rows, panels);
            self.finish(rows, panels);
        });
    }

    /// Calls `compute(panel, depth)` for every part of the depth, which has at most `depth` codes. It completes about
    /// `length` elements of the depth for all panels before it continues, so that the left operand stays in a cache.
    pub(super) fn for_each_part(
        &self,
        panels: [usize; 2],
        length: usize,
        depth: usize,
        mut compute: impl FnMut(usize, [usize; 2]),
    ) {
        let (b, mut first) = (self.b, 0);
        while first < b.k {
            // Whole parts, for one panel after the other: a panel is read from front to back.
            let mut end = first;
            while end < b.k && end - first < length {
                end = b.end_of_part(end, depth);
            }
            for panel in panels[0]..panels[1] {
                let mut part = first;
                while part < end {
                    let next = b.end_of_part(part, depth);
                    compute(panel, [part, next]);
                    part = next;
                }
            }
            first = end;
        }
    }

    /// Computes some rows of a panel over a part of the depth, tile after tile. If there are several tiles, the first one
    /// stores the numbers of the codes in `numbers`, and the others read them.
    pub(super) fn tiles(&self, rows: [usize; 2], panel: usize, depth: [usize; 2], numbers: *mut f32) {
        let k = self.b.k;
        let (packed, unpacked) = (self.kernels.packed(self.b), self.kernels.unpacked);
        let count = (rows[1] - rows[0]).div_ceil(packed.len());
        for i in 0..count {
            let [row, end] = [i, i + 1].map(|i| rows[0] + (rows[1] - rows[0]) * i / count);
            let tile = Tile {
                b: self.b,
                a: self.a[row * k..].as_ptr(),
                a_row: k,
                panel,
                numbers: if count > 1 { numbers } else { std::ptr::null_mut() },
                depth,
                out: self.output(row, panel),
            };
            let kernels = if i == 0 || numbers.is_null() { packed } else { unpacked };
            // SAFETY: `new` checked that the sizes fit the slices. The part of the output belongs to this task alone.
            // `numbers` holds those of this part of the panel. The matrix is packed for an `Isa`, which proves that the
            // processor has the instructions of `kernels`.
            unsafe { kernels[end - row - 1](&tile) };
        }
    }

    /// The part of the output from a row of a panel on.
    pub(super) fn output(&self, row: usize, panel: usize) -> Output {
        let (n, column) = (self.b.n, panel * self.b.width);
        Output { first: self.out.at(row * n + column), row: n, columns: self.b.width.min(n - column) }
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
