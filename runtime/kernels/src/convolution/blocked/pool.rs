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
        row: columns.input * block,
        dilations: [rows.dilation, columns.dilation],
        has_lines: has_lines(&rows, &columns),
        rows: spans(&rows, by),
        columns: spans(&columns, by),
    };
    assert!(windows.rows.iter().all(|span| span.lies_in(rows.input, rows.dilation)));
    assert!(windows.columns.iter().all(|span| span.lies_in(columns.input, columns.dilation)));
    let together = (TASK / (columns.input.max(columns.output) * rows.kernel).max(1)).max(1);
    threads.for_each_chunk(y, together * row, |task, y| {
        let mut line = Scratch::filled(0.0, if windows.has_lines { windows.row } else { 0 });
        for (i, y) in y.chunks_exact_mut(row).enumerate() {
            let i = task * together + i;
            let (x, span) = (&x[i / rows.output * image..][..image], windows.rows[i % rows.output]);
            let (windows, line) = (&windows, &mut line[..]);
            dispatch_blocking!(blocking, (windows: &Windows = windows, span: Span = span, x: &[f32] = x, line: &mut [f32] = line, y: &mut [f32] = y), V, BLOCK =>
                windows.row::<V, BLOCK>(span, x, line, y));
        }
    });
}

/// Whether a line of partial results, each reduced along H, takes fewer loads and stores than whole windows, which load
/// a pixel once for each window that contains it.
fn has_lines(rows: &Window, columns: &Window) -> bool {
    rows.kernel * columns.kernel > columns.stride * (rows.kernel + 2) + columns.kernel
}

/// The windows of a plane.
struct Windows {
    pool: Pool,
    /// The elements of a row of the input.
    row: usize,
    dilations: [usize; 2],
    has_lines: bool,
    /// All inside a plane.
    rows: Scratch<Span>,
    /// All inside a row.
    columns: Scratch<Span>,
}

impl Windows {
    /// Reduces one row of windows: first along H, then along W.
    #[inline(always)]
    fn row<V: Vector, const BLOCK: usize>(&self, row: Span, x: &[f32], line: &mut [f32], y: &mut [f32]) {
        match self.pool {
            Pool::Max => {
                let start = V::splat(f32::NEG_INFINITY);
                self.reduce::<V, BLOCK>(row, x, line, y, start, V::greater, |largest, _| largest);
            }
            Pool::Average(_) => {
                let sum = |x: V, sum: V| sum + x;
                let mean = |sum: V, column: Span| sum / V::splat(row.count * column.count);
                self.reduce::<V, BLOCK>(row, x, line, y, V::splat(0.0), sum, mean);
            }
        }
    }

    /// Reduces one row of windows, and applies `finish` to each result.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // a structure would not be inlined
    fn reduce<V: Vector, const BLOCK: usize>(
        &self,
        row: Span,
        x: &[f32],
        line: &mut [f32],
        y: &mut [f32],
        start: V,
        join: impl Fn(V, V) -> V + Copy,
        finish: impl Fn(V, Span) -> V,
    ) {
        let x = if row.taps == 0 { x } else { &x[row.from * self.row..] };
        let (down, across) = (self.dilations[0] * self.row, self.dilations[1] * BLOCK);
        let (x, rows) = match self.has_lines {
            true => {
                reduce_rows(row.taps, down, x, line, start, join);
                (&*line, 1)
            }
            false => (x, row.taps),
        };
        for (y, &column) in y.chunks_exact_mut(BLOCK).zip(self.columns.iter()) {
            for lane in (0..BLOCK).step_by(V::LANES) {
                let x = x.as_ptr().wrapping_add(column.from * BLOCK + lane);
                // SAFETY: `pool` has asserted that the windows are inside the plane, and a line is a row. `y` is one
                // block.
                unsafe {
                    // The compiler unrolls the loops of common windows.
                    let total = match [rows, column.taps] {
                        [1, 3] => window(x, [1, 3], [down, across], start, join),
                        [2, 2] => window(x, [2, 2], [down, across], start, join),
                        [3, 3] => window(x, [3, 3], [down, across], start, join),
                        taps => window(x, taps, [down, across], start, join),
                    };
                    finish(total, column).store(y.as_mut_ptr().add(lane));
                }
            }
        }
    }
}

/// Reduces `taps` rows at a distance `down` into `line`, several vectors at a time.
#[inline(always)]
fn reduce_rows<V: Vector>(
    taps: usize,
    down: usize,
    x: &[f32],
    line: &mut [f32],
    start: V,
    join: impl Fn(V, V) -> V + Copy,
) {
    assert!(taps == 0 || (taps - 1) * down + line.len() <= x.len());
    let whole = line.len() - line.len() % (ABREAST * V::LANES);
    for at in (0..whole).step_by(ABREAST * V::LANES) {
        // SAFETY: asserted above for the last tap; a line is whole vectors.
        unsafe { reduce_vectors::<V, ABREAST>(taps, down, x.as_ptr().add(at), line.as_mut_ptr().add(at), start, join) };
    }
    for at in (whole..line.len()).step_by(V::LANES) {
        // SAFETY: as above.
        unsafe { reduce_vectors::<V, 1>(taps, down, x.as_ptr().add(at), line.as_mut_ptr().add(at), start, join) };
    }
}

/// Reduces `N` vectors of each of `taps` rows.
///
/// # Safety
/// They can be read from `x` on, and written to `line`.
#[inline(always)]
unsafe fn reduce_vectors<V: Vector, const N: usize>(
    taps: usize,
    down: usize,
    x: *const f32,
    line: *mut f32,
    start: V,
    join: impl Fn(V, V) -> V,
) {
    let mut partials = [start; N];
    for tap in 0..taps {
        for (i, partial) in partials.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *partial = join(unsafe { V::load(x.add(tap * down + i * V::LANES)) }, *partial);
        }
    }
    for (i, partial) in partials.iter().enumerate() {
        // SAFETY: as above.
        unsafe { partial.store(line.add(i * V::LANES)) };
    }
}

/// Reduces one vector of each pixel of a window: each column, then the results of the columns.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn window<V: Vector>(
    x: *const f32,
    [rows, columns]: [usize; 2],
    [down, across]: [usize; 2],
    start: V,
    join: impl Fn(V, V) -> V,
) -> V {
    let mut total = start;
    for j in 0..columns {
        let mut partial = start;
        for i in 0..rows {
            // SAFETY: guaranteed by the caller.
            partial = join(unsafe { V::load(x.add(i * down + j * across)) }, partial);
        }
        total = join(partial, total);
    }
    total
}
