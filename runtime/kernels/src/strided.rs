//! Copies between layouts: strided slices, broadcasts, permutations of axes.
//!
//! The elements are only moved, so one instantiation per width ([`Word`]) serves every element type.

#[cfg(test)]
mod tests;

pub use candle_plan_descriptors::strided::View;

use crate::isa::Isa;
use crate::threads::Threads;
use crate::transpose::{transpose, Plane};
use candle_plan_descriptors::word::Word;

/// Copies the elements of a view, in row-major order, to `out`.
///
/// # Panics
/// An element of the view is outside `source`, or `out` is not as long as the view.
pub fn copy<T: Word>(source: &[T], view: &View, out: &mut [T], threads: &Threads) {
    copy_on(source, view, out, threads, Isa::get());
}

fn copy_on<T: Word>(source: &[T], view: &View, out: &mut [T], threads: &Threads, isa: Isa) {
    assert!(view.fits(source.len()) && view.len() == out.len(), "a copy of {view:?} leaves its source");
    if out.is_empty() {
        return;
    }
    let view = view.merged();
    let walk = Walk { source, dims: &view.dims, strides: &view.strides, crossed: crossed_axis(&view), isa };
    let (level, rows) = split(&view, size_of_val(out), threads.count());
    let length: usize = view.dims[level + 1..].iter().product();
    threads.for_each_chunk(out, rows * length, |chunk, out| {
        let mut row = chunk * rows;
        let mut out = out;
        while !out.is_empty() {
            let count = (view.dims[level] - row % view.dims[level]).min(out.len() / length);
            let (head, tail) = out.split_at_mut(count * length);
            walk.rows(level, count, walk.start_of(view.offset, level, row), head);
            out = tail;
            row += count;
        }
    });
}

/// Returns the level whose rows the tasks share, and the number of rows per task.
fn split(view: &View, bytes: usize, threads: usize) -> (usize, usize) {
    const WORTH_A_TASK: usize = 128 << 10;
    let tasks = (bytes / WORTH_A_TASK).min(4 * threads);
    if threads == 1 || tasks < 2 {
        return (0, view.dims[0]);
    }
    let mut rows = 1usize;
    let level = view.dims.iter().position(|&dim| {
        rows *= dim;
        rows >= tasks
    });
    let level = level.unwrap_or(view.dims.len() - 1);
    // Whole tiles of a transpose.
    (level, rows.div_ceil(tasks).next_multiple_of(16))
}

/// The dimension that is contiguous in the source, if it is not the last one. A copy that reads along it and writes
/// along the last one works in square tiles.
fn crossed_axis(view: &View) -> Option<usize> {
    let last = view.dims.len() - 1;
    // Smaller planes are not worth the setup.
    let tiled = |axis: &usize| view.strides[*axis] == 1 && view.dims[*axis] * view.dims[last] >= 16;
    (view.strides[last] > 1).then(|| (0..last).find(tiled)).flatten()
}

/// A copy in progress: walks a merged view from its outermost dimension inwards.
struct Walk<'a, T> {
    source: &'a [T],
    dims: &'a [usize],
    strides: &'a [isize],
    crossed: Option<usize>,
    isa: Isa,
}

impl<T: Word> Walk<'_, T> {
    /// Returns the index in the source where row `row` of dimensions `0 ..= level` starts.
    fn start_of(&self, offset: usize, level: usize, row: usize) -> isize {
        let mut rest = row;
        (0..=level).rev().fold(offset as isize, |start, axis| {
            let i = rest % self.dims[axis];
            rest /= self.dims[axis];
            start + i as isize * self.strides[axis]
        })
    }

    /// Copies `count` rows of dimension `level`, starting at index `start` of the source.
    fn rows(&self, level: usize, count: usize, start: isize, out: &mut [T]) {
        if level + 1 == self.dims.len() {
            return self.run(count, start, out);
        }
        if self.crossed == Some(level) {
            return self.tiles(level, count, start, out);
        }
        if level + 2 == self.dims.len() && self.strides[level + 1] == 1 && self.strides[level] > 0 {
            let run = self.dims[level + 1];
            return copy_runs(&self.source[start as usize..], self.strides[level] as usize, out, run, run);
        }
        for (i, row) in out.chunks_exact_mut(out.len() / count).enumerate() {
            self.rows(level + 1, self.dims[level + 1], start + i as isize * self.strides[level], row);
        }
    }

    /// Copies `count` elements along the last dimension.
    fn run(&self, count: usize, start: isize, out: &mut [T]) {
        let stride = self.strides[self.dims.len() - 1];
        match stride {
            1 => copy_run(&self.source[start as usize..start as usize + count], out),
            0 => out.fill(self.source[start as usize]),
            _ => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = self.source[(start + i as isize * stride) as usize];
                }
            }
        }
    }

    /// Copies the planes spanned by the crossed dimension (`level`, `count` of its elements) and the last one, for
    /// every index of the dimensions between them.
    fn tiles(&self, level: usize, count: usize, start: isize, out: &mut [T]) {
        let last = self.dims.len() - 1;
        let columns = self.dims[last];
        let plane = Plane { rows: count, columns, from: self.strides[last] as usize, to: out.len() / count };
        for between in 0..plane.to / columns {
            let mut rest = between;
            let start = (level + 1..last).rev().fold(start, |start, axis| {
                let i = rest % self.dims[axis];
                rest /= self.dims[axis];
                start + i as isize * self.strides[axis]
            });
            transpose(&self.source[start as usize..], &mut out[between * columns..], plane, self.isa);
        }
    }
}

/// A copy that avoids calling the C library for a few elements.
pub(crate) fn copy_run<T: Copy>(source: &[T], out: &mut [T]) {
    if source.len() <= 8 {
        out.iter_mut().zip(source).for_each(|(out, value)| *out = *value);
    } else {
        out.copy_from_slice(source);
    }
}

/// Copies runs of `run` elements. A run starts every `from` elements of the source, where runs may overlap, and every
/// `to` elements of the result. Stops at the end of the result, whose last run need not be followed by other elements.
///
/// # Panics
/// A run does not fit.
pub(crate) fn copy_runs<T: Copy>(source: &[T], from: usize, out: &mut [T], to: usize, run: usize) {
    let runs = out.len().div_ceil(to);
    assert!(runs == 0 || (runs - 1) * from + run <= source.len(), "{runs} runs of {run} elements leave their source");
    match run {
        0 => {}
        1 => out.iter_mut().step_by(to).zip(source.iter().step_by(from)).for_each(|(out, value)| *out = *value),
        2 => copy_arrays::<T, 2>(source, from, out, to),
        3 => copy_arrays::<T, 3>(source, from, out, to),
        4 => copy_arrays::<T, 4>(source, from, out, to),
        6 => copy_arrays::<T, 6>(source, from, out, to),
        8 => copy_arrays::<T, 8>(source, from, out, to),
        16 => copy_arrays::<T, 16>(source, from, out, to),
        _ => out
            .chunks_mut(to)
            .zip(source.windows(run).step_by(from))
            .for_each(|(out, source)| copy_run(source, &mut out[..run])),
    }
}

/// [`copy_runs`] for runs of `N` elements, which take a few moves each.
fn copy_arrays<T: Copy, const N: usize>(source: &[T], from: usize, out: &mut [T], to: usize) {
    for (out, source) in out.chunks_mut(to).zip(source.windows(N).step_by(from)) {
        let run: [T; N] = std::array::from_fn(|i| source[i]);
        out[..N].copy_from_slice(&run);
    }
}
