//! Matrix products of codes.

use std::ops::Range;

use super::codes::{Codes, SIGN};
use super::each_row::EachRow;
use super::finish::{Finish, Out, Sink};
use super::operands::Tile;
use super::tiles::{configured, Tiles};
use super::weights::{Panel, Weights};
use crate::buffer::is_cached;
use crate::scratch::Scratch;
use crate::threads::{is_worth_splitting, Threads};

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
    Product { m, b, rows, out_row: b.n, each: None }.run(threads, shifted_zero(&a), bias, &mut out, 0);
}

/// The zero point of codes as unsigned bytes.
pub(super) fn shifted_zero(codes: &Codes) -> i32 {
    codes.zero + if codes.signed { 128 } else { 0 }
}

/// Panels whose columns are finished together, while the output is in the L2 cache.
const TOGETHER: usize = 8;

/// The left operand, as unsigned bytes, or as 16-bit numbers if the weights' instructions multiply these.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// Contiguous rows of [`Weights::depth`] bytes. Any padding has arbitrary values.
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
    /// The zero point and the scale of each row, if rows have their own.
    pub each: Option<&'a EachRow<'a>>,
}

/// Bytes of a left operand that fit in a core's L2 cache together with a panel.
pub(super) const BLOCK: usize = 1 << 17;

impl Weights {
    /// The most rows of the left operand that are computed together, before they are rounded up to whole tiles.
    fn most_rows(&self) -> usize {
        (BLOCK / (self.depth() + 1)).clamp(16, 512)
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
            assert!(a.len() == m * b.depth(), "the rows do not fit");
        }
        if let Some(each) = self.each {
            assert!(each.zeros.len() == m && self.out_row == b.n && b.zeros.is_empty(), "the rows do not fit");
        }
        if m == 0 || b.n == 0 {
            return;
        }
        let mut finish = b.finish(zero, bias, out, first);
        if self.each.is_some() {
            finish.zeros = Scratch::of(b.sums.iter().copied());
        }
        let parts = if is_worth_splitting(m * b.n * b.k, b.bytes()) { threads.count() * 2 } else { 1 };
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
        let own_sums = self.row_sums(a, finish);
        let row_sums = self.each.map_or(&own_sums[..], |each| &each.zeros[rows.clone()]);
        let dots = b.dots.for_rows(rows.len());
        let (pieces, quads) = dots.cut(&[0], row / 4);
        let _configured = configured(dots, quads);
        for start in panels.clone().step_by(TOGETHER) {
            let group = start..panels.end.min(start + TOGETHER);
            for panel in group.clone() {
                let (Panel { data, again }, column) = (b.panel(panel, &pieces, quads), panel * b.width());
                let tile = Tile {
                    a: a.as_ptr(),
                    a_row: row,
                    pieces: &pieces,
                    quads,
                    again: &again,
                    panel: data.as_ptr(),
                    finish,
                    row_sums: if row_sums.is_empty() { std::ptr::null() } else { row_sums.as_ptr() },
                    column,
                    columns: (b.n - column).min(b.width()),
                    out: rows.start * self.out_row + first + column,
                    out_row: self.out_row,
                };
                // SAFETY: `run` checked that the rows and the output have the stated sizes, and panels are whole. The
                // blocks of tasks are disjoint. `dots` proves that the processor has the instructions of the tiles.
                unsafe { Tiles::of(dots).run(rows.len(), b.vectors, &tile) };
            }
            self.finish_each(finish, &rows, group);
        }
    }

    /// The sum of each row's bytes; empty if the weights have no zero points.
    fn row_sums(&self, a: &[u8], finish: &Finish) -> Scratch<i32> {
        let (k, row) = (self.b.k, self.b.depth());
        let sum = |row: &[u8]| row[..k].iter().map(|&a| u32::from(a)).sum::<u32>() as i32;
        let needed = finish.needs_row_sums() && self.each.is_none() && k > 0;
        if needed {
            Scratch::of(a.chunks_exact(row).map(sum))
        } else {
            Scratch::new()
        }
    }

    /// Finishes rows that have their own scales, in some panels that this task has computed.
    fn finish_each(&self, finish: &Finish, rows: &Range<usize>, panels: Range<usize>) {
        if let (Some(each), Sink::Floats(out)) = (self.each, finish.sink) {
            let columns = [panels.start, panels.end].map(|panel| self.b.n.min(panel * self.b.width()));
            // SAFETY: this task has written these elements, and no other task accesses them.
            unsafe { each.finish(out, self.b.n, rows.clone(), columns) };
        }
    }
}
