//! Reads and writes of runs of elements at given places.
//!
//! The places are element positions that the caller has checked against the tensor they point into; a place outside it
//! panics.

use crate::strided::{copy_run, Word};
use crate::threads::Threads;

/// Rows of the middle dimension of `data`, `[outer, size, run]`, to `out`, `[outer, rows, run]`:
/// `out[o, i] = data[o, rows[i]]`.
///
/// # Panics
/// A row is not below `size`, or the lengths do not fit.
pub fn gather_rows<T: Word>(data: &[T], size: usize, run: usize, rows: &[usize], out: &mut [T], threads: &Threads) {
    if out.is_empty() {
        return;
    }
    let task = task_of::<T>(run, out.len(), threads);
    threads.for_each_chunk(out, task * run, |chunk, out| {
        for (i, out) in out.chunks_exact_mut(run).enumerate() {
            let i = chunk * task + i;
            let row = rows[i % rows.len()];
            assert!(row < size, "row {row} of {size}");
            copy_run(&data[(i / rows.len() * size + row) * run..][..run], out);
        }
    });
}

/// Runs of `run` elements that begin at `starts`: `out[i] = data[starts[i] .. starts[i] + run]`.
///
/// # Panics
/// A run leaves `data`, or `out` does not hold one run a start.
pub fn gather_runs<T: Word>(data: &[T], starts: &[usize], run: usize, out: &mut [T], threads: &Threads) {
    assert_eq!(starts.len() * run, out.len(), "one run a start");
    if out.is_empty() {
        return;
    }
    let task = task_of::<T>(run, out.len(), threads);
    threads.for_each_chunk(out, task * run, |chunk, out| {
        let starts = &starts[chunk * task..];
        out.chunks_exact_mut(run).zip(starts).for_each(|(out, &start)| copy_run(&data[start..start + run], out));
    });
}

/// Combines runs of updates, in order, with the runs of `data` that begin at `starts`:
/// `data[starts[i] + j] = combine(data[starts[i] + j], updates[i·run + j])`.
///
/// # Panics
/// A run leaves `data`, or there is not one run of updates a start.
pub fn scatter_runs<T: Copy>(data: &mut [T], starts: &[usize], run: usize, updates: &[T], combine: impl Fn(T, T) -> T) {
    assert_eq!(starts.len() * run, updates.len(), "one run a start");
    for (&start, updates) in starts.iter().zip(updates.chunks_exact(run.max(1))) {
        data[start..start + run].iter_mut().zip(updates).for_each(|(data, &update)| *data = combine(*data, update));
    }
}

/// How many runs a task copies.
fn task_of<T>(run: usize, elements: usize, threads: &Threads) -> usize {
    const WORTH_A_TASK: usize = 64 << 10;
    let runs = elements / run;
    if threads.count() == 1 {
        return runs;
    }
    runs.div_ceil(4 * threads.count()).max(WORTH_A_TASK.div_ceil(run * size_of::<T>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::for_overwrite;

    #[test]
    fn rows_and_runs_are_gathered() {
        for (outer, size, run, count) in [(1, 4, 1, 9), (3, 5, 2, 4), (2, 40, 700, 90), (1, 3, 60_000, 5), (2, 3, 4, 0)]
        {
            let data: Vec<u16> = (0..outer * size * run).map(|i| i as u16).collect();
            let rows: Vec<usize> = (0..count).map(|i| i * 7 % size).collect();
            let starts: Vec<usize> =
                (0..outer).flat_map(|o| rows.iter().map(move |row| (o * size + row) * run)).collect();
            let expected: Vec<u16> = starts.iter().flat_map(|&start| data[start..start + run].to_vec()).collect();
            for threads in [Threads::serial(), Threads::new(2).expect("two threads")] {
                let mut out = for_overwrite(expected.len());
                gather_rows(&data, size, run, &rows, &mut out, &threads);
                assert_eq!(out, expected);
                let mut out = for_overwrite(expected.len());
                gather_runs(&data, &starts, run, &mut out, &threads);
                assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn updates_combine_in_order() {
        let mut data = [1u32, 2, 3, 4, 5];
        scatter_runs(&mut data, &[3, 0, 3], 2, &[10, 20, 30, 40, 50, 60], |_, update| update);
        assert_eq!(data, [30, 40, 3, 50, 60]);
        scatter_runs(&mut data, &[1, 1], 1, &[5, 6], |a, b| a + b);
        assert_eq!(data, [30, 51, 3, 50, 60]);
    }
}
