//! The index of the largest element of a window.

use super::window::Window;
use crate::reduce::Ordered;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Elements read that are worth a separate task.
pub(super) const TASK: usize = 1 << 16;

/// Like [`max`](super::max), and writes the index of the largest element to `indices`: the first one in row-major order
/// if several are equal, or the window's first element if none is larger than [`Ordered::LEAST`]. `columns_first`
/// counts a plane's elements column by column. The indices of a plane start at the index of its first element in `x`.
///
/// # Panics
/// The lengths do not fit the windows.
pub fn max_with_indices<T: Ordered>(
    threads: &Threads,
    x: &[T],
    windows: [Window; 2],
    columns_first: bool,
    y: &mut [T],
    indices: &mut [i64],
) {
    let [rows, columns] = windows;
    let [plane, image] = [rows.output * columns.output, rows.input * columns.input];
    assert_eq!(y.len(), indices.len(), "every output has its index");
    assert!(plane == 0 || x.len() == y.len() / plane * image, "input and output are as many planes");
    let planes = y.chunks_mut(plane.max(1)).zip(indices.chunks_mut(plane.max(1))).enumerate();
    let mut planes = Scratch::of(planes);
    let together = (TASK / plane.saturating_mul(rows.kernel).saturating_mul(columns.kernel).max(1)).max(1);
    threads.for_each_chunk(&mut planes, together, |_, planes| {
        for (p, (y, indices)) in planes {
            let x = &x[*p * image..][..image];
            for (at, (y, index)) in y.iter_mut().zip(indices.iter_mut()).enumerate() {
                let (value, number) = largest(x, windows, columns_first, at);
                (*y, *index) = (value, (*p * image + number) as i64);
            }
        }
    });
}

/// Returns the largest element of window `at` of a plane, and its index in the plane.
fn largest<T: Ordered>(x: &[T], [rows, columns]: [Window; 2], columns_first: bool, at: usize) -> (T, usize) {
    let number = |row: usize, column: usize| match columns_first {
        true => column * rows.input + row,
        false => row * columns.input + column,
    };
    let (row_taps, first_row) = rows.inside(at / columns.output);
    let (column_taps, first_column) = columns.inside(at % columns.output);
    let mut best = (T::LEAST, number(first_row, first_column));
    for row in (first_row..).step_by(rows.dilation).take(row_taps) {
        for column in (first_column..).step_by(columns.dilation).take(column_taps) {
            let value = x[row * columns.input + column];
            if value > best.0 {
                best = (value, number(row, column));
            }
        }
    }
    best
}
