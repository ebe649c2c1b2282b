//! Gathers and scatters of runs of elements.
//!
//! The caller has checked the positions against the tensor; a position outside it panics.

use crate::strided::copy_run;
use crate::threads::Threads;
use candle_plan_descriptors::word::Word;

/// Copies runs of `run` elements. Each block of `block` elements has one run per element of `starts`:
/// `out[b, i, j] = data[b·block + starts[i] + j]`, where `out` is `[blocks, starts, run]`.
///
/// # Panics
/// A run exceeds its block, or `out` does not hold one run per block and start.
pub fn gather_runs<T: Word>(data: &[T], block: usize, starts: &[usize], run: usize, out: &mut [T], threads: &Threads) {
    if out.is_empty() {
        return;
    }
    assert_eq!(data.len() / block * starts.len() * run, out.len(), "one run a block and start");
    let task = task_of::<T>(run, out.len(), threads);
    threads.for_each_chunk(out, task * run, |chunk, mut out| {
        let (mut at, mut first) = (chunk * task / starts.len(), chunk * task % starts.len());
        while !out.is_empty() {
            let count = (starts.len() - first).min(out.len() / run);
            let (head, tail) = out.split_at_mut(count * run);
            gather_block(&data[at * block..][..block], &starts[first..][..count], run, head);
            (at, first, out) = (at + 1, 0, tail);
        }
    });
}

fn gather_block<T: Word>(block: &[T], starts: &[usize], run: usize, out: &mut [T]) {
    match run {
        1 => gather_arrays::<T, 1>(block, starts, out),
        2 => gather_arrays::<T, 2>(block, starts, out),
        3 => gather_arrays::<T, 3>(block, starts, out),
        4 => gather_arrays::<T, 4>(block, starts, out),
        8 => gather_arrays::<T, 8>(block, starts, out),
        16 => gather_arrays::<T, 16>(block, starts, out),
        _ => out.chunks_exact_mut(run).zip(starts).for_each(|(out, &start)| copy_run(&block[start..][..run], out)),
    }
}

/// [`gather_block`] for runs of `N` elements, which take a few moves each.
fn gather_arrays<T: Word, const N: usize>(block: &[T], starts: &[usize], out: &mut [T]) {
    for (out, &start) in out.chunks_exact_mut(N).zip(starts) {
        out.copy_from_slice(&block[start..][..N]);
    }
}

/// Copies runs of updates, in order, to `data`: `data[starts[i] + j] = updates[i, j]`.
///
/// # Panics
/// A run exceeds `data`, or the number of runs in `updates` is not that of `starts`.
pub fn scatter_runs<T: Word>(data: &mut [T], starts: &[usize], run: usize, updates: &[T]) {
    assert_eq!(starts.len() * run, updates.len(), "one run a start");
    if run == 1 {
        return starts.iter().zip(updates).for_each(|(&start, &update)| data[start] = update);
    }
    let runs = updates.chunks_exact(run.max(1));
    starts.iter().zip(runs).for_each(|(&start, updates)| copy_run(updates, &mut data[start..][..run]));
}

/// Combines runs of updates, in order, with runs of `data`:
/// `data[starts[i] + j] = combine(data[starts[i] + j], updates[i·run + j])`.
///
/// # Panics
/// A run exceeds `data`, or the number of runs in `updates` is not that of `starts`.
pub fn combine_runs<T: Copy>(data: &mut [T], starts: &[usize], run: usize, updates: &[T], combine: impl Fn(T, T) -> T) {
    assert_eq!(starts.len() * run, updates.len(), "one run a start");
    for (&start, updates) in starts.iter().zip(updates.chunks_exact(run.max(1))) {
        data[start..start + run].iter_mut().zip(updates).for_each(|(data, &update)| *data = combine(*data, update));
    }
}

/// The number of runs that a task copies.
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
    use crate::uninit::Uninit;

    #[test]
    fn runs_of_every_block_are_gathered() {
        for (blocks, block, run, count) in [
            (1, 4, 1, 9),
            (3, 10, 2, 4),
            (2, 28_000, 700, 90),
            (1, 180_000, 60_000, 5),
            (5, 9, 1, 40_000),
            (2, 12, 4, 0),
        ] {
            let data: Vec<u16> = (0..blocks * block).map(|i| i as u16).collect();
            let starts: Vec<usize> = (0..count).map(|i| i * 7 % (block - run + 1)).collect();
            let runs = (0..blocks).flat_map(|b| starts.iter().map(move |start| b * block + start));
            let expected: Vec<u16> = runs.flat_map(|start| data[start..start + run].to_vec()).collect();
            for threads in [Threads::serial(), Threads::new(2).expect("two threads")] {
                let gather = |out: &mut [u16]| gather_runs(&data, block, &starts, run, out, &threads);
                let out = Uninit::new(expected.len()).overwrite(gather);
                assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn updates_are_written_in_order() {
        let mut data = [1u32, 2, 3, 4, 5];
        scatter_runs(&mut data, &[3, 0, 3], 2, &[10, 20, 30, 40, 50, 60]);
        assert_eq!(data, [30, 40, 3, 50, 60]);
        scatter_runs(&mut data, &[2, 2], 1, &[7, 8]);
        assert_eq!(data, [30, 40, 8, 50, 60]);
        combine_runs(&mut data, &[1, 1], 1, &[5, 6], |a, b| a + b);
        assert_eq!(data, [30, 51, 8, 50, 60]);
    }
}
