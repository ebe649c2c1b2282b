//! Matrix products of codes.

use std::ops::Range;

use super::codes::{Codes, SIGN, SPLIT};
use super::finish::{Finish, Out};
use super::operands::Tile;
use super::tiles::{configured, Tiles};
use super::weights::{Panel, Weights};
use crate::buffer::is_cached;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// `sum[i, j] = Σₖ (a[i, k] − a.zero) · (b[k, j] − b.zero[j]) + bias[j]`. Converts the sums as `out` `[m, n]`
/// specifies.
///
/// # Panics
/// The slices do not fit the weights' sizes.
pub fn product(threads: &Threads, a: Codes, b: &Weights, bias: Option<&[i32]>, mut out: Out) {
    assert!(
        b.n == 0 || (out.len().is_multiple_of(b.n) && a.bits.len() == out.len() / b.n * b.k),
        "a and out do not fit"
    );
    if out.len() == 0 {
        return;
    }
    let m = out.len() / b.n;
    let copy = |rows: Range<usize>, panel: &mut [u8]| {
        let (flip, row) = (if a.signed { SIGN } else { 0 }, b.depth());
        for (i, to) in rows.zip(panel.chunks_exact_mut(row.max(1))) {
            let from = &a.bits[i * b.k..(i + 1) * b.k];
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ flip);
        }
    };
    let lies = !a.signed && b.depth() == b.k;
    let rows = if lies { Rows::Lying(a.bits) } else { Rows::Gathered(&copy) };
    Product { m, b, rows, out_row: b.n }.run(threads, shifted_zero(&a), bias, &mut out, 0);
}

/// The zero point of codes as unsigned bytes.
pub(super) fn shifted_zero(codes: &Codes) -> i32 {
    codes.zero + if codes.signed { 128 } else { 0 }
}

/// The left operand, as unsigned bytes.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// Contiguous rows of [`Weights::depth`] bytes without padding.
    Lying(&'a [u8]),
    /// A function that writes some rows, each padded to [`Weights::depth`] bytes with arbitrary values.
    Gathered(&'a (dyn Fn(Range<usize>, &mut [u8]) + Sync)),
}

/// The product of `m` rows and `b`.
pub(super) struct Product<'a> {
    pub m: usize,
    pub b: &'a Weights,
    pub rows: Rows<'a>,
    /// The row stride of the output.
    pub out_row: usize,
}

/// Bytes of a left operand that fit in a core's L2 cache together with a panel.
pub(super) const BLOCK: usize = 1 << 17;

impl Weights {
    /// The most rows of the left operand that are computed together, before they are rounded up to whole tiles.
    fn most_rows(&self) -> usize {
        (BLOCK / (self.k + 1)).clamp(16, 512)
    }

    /// Whether every buffer of a product fits a cache: rows of the left operand, and a number for each column.
    pub fn is_cached(&self) -> bool {
        is_cached::<u8>(self.dots.whole_tiles(self.most_rows()) * self.depth()) && is_cached::<i32>(self.sums.len())
    }
}

impl Product<'_> {
    /// Writes columns `first .. first + b.n` of every row of `out`, which has `m` rows.
    pub fn run(&self, threads: &Threads, zero: i32, bias: Option<&[i32]>, out: &mut Out, first: usize) {
        let Product { m, b, .. } = *self;
        assert!(out.len() == m * self.out_row && first + b.n <= self.out_row, "the output does not fit");
        if let Rows::Lying(a) = self.rows {
            assert!(a.len() == m * b.k && b.depth() == b.k, "the rows do not fit");
        }
        if m == 0 || b.n == 0 {
            return;
        }
        let finish = b.finish(zero, bias, out, first);
        let parts = if m * b.n * b.k > SPLIT { threads.count() * 2 } else { 1 };
        let height = b.dots.whole_tiles(b.most_rows().min(m.div_ceil(parts).next_multiple_of(12)));
        let blocks = m.div_ceil(height);
        let panels = b.panels();
        let shares = parts.div_ceil(blocks).min(panels);
        threads.for_each(blocks * shares, |task| {
            let (block, share) = (task / shares, task % shares);
            let rows = block * height..m.min((block + 1) * height);
            self.block(rows, panels * share / shares..panels * (share + 1) / shares, &finish, first);
        });
    }

    /// Computes some rows in some panels.
    fn block(&self, rows: Range<usize>, panels: Range<usize>, finish: &Finish, first: usize) {
        let (b, row) = (self.b, self.b.depth());
        let gathered;
        let a = match self.rows {
            Rows::Lying(a) => &a[rows.start * row..rows.end * row],
            Rows::Gathered(write) => {
                gathered = Scratch::overwritten(rows.len() * row, |gathered| write(rows.clone(), gathered));
                &gathered[..]
            }
        };
        let sum = |row: &[u8]| row[..b.k].iter().map(|&a| u32::from(a)).sum::<u32>() as i32;
        let needed = finish.needs_row_sums() && b.k > 0;
        let row_sums = if needed { Scratch::of(a.chunks_exact(row).map(sum)) } else { Scratch::new() };
        let dots = b.dots.for_rows(rows.len());
        let (pieces, quads) = dots.cut(&[0], row / 4);
        let _configured = configured(dots, quads);
        let width = b.width();
        for panel in panels {
            let Panel { data, again } = b.panel(panel, &pieces, quads);
            let tile = Tile {
                a: a.as_ptr(),
                a_row: row,
                pieces: &pieces,
                quads,
                again: &again,
                panel: data.as_ptr(),
                finish,
                row_sums: if row_sums.is_empty() { std::ptr::null() } else { row_sums.as_ptr() },
                column: panel * width,
                columns: (b.n - panel * width).min(width),
                out: rows.start * self.out_row + first + panel * width,
                out_row: self.out_row,
            };
            // SAFETY: `run` checked that the rows and the output have the stated sizes, and panels are whole. The
            // blocks of tasks are disjoint. `dots` proves that the processor has the instructions of the tiles.
            unsafe { Tiles::of(dots).run(rows.len(), b.vectors, &tile) };
        }
    }
}
