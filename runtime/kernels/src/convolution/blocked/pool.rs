//! Pooling over blocks of channels. A vector holds one pixel's channels, so a window is reduced pixel by pixel.

use crate::blocking::{dispatch_blocking, Blocking};
use crate::pool::window::{spans, Span};
use crate::pool::{Divisor, Window};
use crate::scratch::Scratch;
use crate::threads::Threads;
use crate::vector::Vector;

/// The reduction of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// The maximum. It ignores NaN, and a window without pixels gives −∞.
    Max,
    /// The sum divided by the number of pixels that the divisor counts.
    Average(Divisor),
}

/// Pixels read that are worth a separate task.
const TASK: usize = 1 << 12;
/// Vectors that are reduced in parallel.
const ABREAST: usize = 8;

/// Reduces every window of `x` `[P, H, W, B]` into `y`, where `P` is the number of blocks of all images.
///
/// # Panics
/// The lengths do not fit the windows.
pub fn pool(blocking: Blocking, threads: &Threads, pool: Pool, x: &[f32], [rows, columns]: [Window; 2], y: &mut [f32]) {
    let block = blocking.block();
    let row = columns.output * block;
    let (image, plane) = (rows.input * columns.input * block, rows.output * row);
    if plane == 0 || y.is_empty() {
        return;
    }
    assert!(y.len().is_multiple_of(plane) && x.len() == y.len() / plane * image, "input and output are as many planes");
    let by = if let Pool::Average(by) = pool { by } else { Divisor::Inside };
    let windows = Windows {
        pool,
        dilations: [rows.dilation, columns.dilation],
        rows: spans(&rows, by),
        columns: spans(&columns, by),
    };
    assert!(windows.columns.iter().all(|span| span.lies_in(columns.input, columns.dilation)));
    let together = (TASK / (columns.input.max(columns.output) * rows.kernel).max(1)).max(1);
    threads.for_each_chunk(y, together * row, |task, y| {
        let mut line = Scratch::filled(0.0, columns.input * block);
        for (i, y) in y.chunks_exact_mut(row).enumerate() {
            let i = task * together + i;
            let (x, span) = (&x[i / rows.output * image..][..image], windows.rows[i % rows.output]);
            let (windows, line) = (&windows, &mut line[..]);
            dispatch_blocking!(blocking, (windows: &Windows = windows, span: Span = span, x: &[f32] = x, line: &mut [f32] = line, y: &mut [f32] = y), V, BLOCK =>
                windows.row::<V, BLOCK>(span, x, line, y));
        }
    });
}

/// The windows of a plane.
struct Windows {
    pool: Pool,
    dilations: [usize; 2],
    rows: Scratch<Span>,
    /// All inside a row.
    columns: Scratch<Span>,
}

impl Windows {
    /// Reduces one row of windows: first along H into a line of partial results, then along W.
    #[inline(always)]
    fn row<V: Vector, const BLOCK: usize>(&self, row: Span, x: &[f32], line: &mut [f32], y: &mut [f32]) {
        match self.pool {
            Pool::Max => {
                let start = V::splat(f32::NEG_INFINITY);
                self.reduce_rows(row, x, line, start, V::greater);
                self.reduce_columns::<V, BLOCK>(line, y, start, V::greater, |largest, _| largest);
            }
            Pool::Average(_) => {
                let sum = |x: V, sum: V| sum + x;
                self.reduce_rows(row, x, line, V::splat(0.0), sum);
                let mean = |sum: V, column: Span| sum / V::splat(row.count * column.count);
                self.reduce_columns::<V, BLOCK>(line, y, V::splat(0.0), sum, mean);
            }
        }
    }

    /// Reduces the rows of a window into `line`.
    #[inline(always)]
    fn reduce_rows<V: Vector>(&self, row: Span, x: &[f32], line: &mut [f32], start: V, join: impl Fn(V, V) -> V) {
        let step = self.dilations[0] * line.len();
        let x = if row.taps == 0 { x } else { &x[row.from * line.len()..] };
        assert!(row.taps == 0 || (row.taps - 1) * step + line.len() <= x.len());
        for at in (0..line.len()).step_by(ABREAST * V::LANES) {
            let mut partials = [start; ABREAST];
            let count = ((line.len() - at) / V::LANES).min(ABREAST);
            for tap in 0..row.taps {
                for (i, partial) in partials.iter_mut().enumerate().take(count) {
                    // SAFETY: asserted above for the last tap.
                    *partial = join(unsafe { V::load(x.as_ptr().add(tap * step + at + i * V::LANES)) }, *partial);
                }
            }
            for (i, partial) in partials.iter().enumerate().take(count) {
                // SAFETY: the line has `count` more vectors from here.
                unsafe { partial.store(line.as_mut_ptr().add(at + i * V::LANES)) };
            }
        }
    }

    /// Reduces the windows of a line, and applies `finish` to each result.
    #[inline(always)]
    fn reduce_columns<V: Vector, const BLOCK: usize>(
        &self,
        line: &[f32],
        y: &mut [f32],
        start: V,
        join: impl Fn(V, V) -> V,
        finish: impl Fn(V, Span) -> V,
    ) {
        for (y, &column) in y.chunks_exact_mut(BLOCK).zip(self.columns.iter()) {
            for lane in (0..BLOCK).step_by(V::LANES) {
                let mut total = start;
                for tap in 0..column.taps {
                    let pixel = column.from + tap * self.dilations[1];
                    // SAFETY: the caller has asserted that the columns are inside the line.
                    total = join(unsafe { V::load(line.as_ptr().add(pixel * BLOCK + lane)) }, total);
                }
                // SAFETY: `y` is one block.
                unsafe { finish(total, column).store(y.as_mut_ptr().add(lane)) };
            }
        }
    }
}
