//! Joins tensors along an axis.

use crate::strided::{copy_run, copy_runs};
use crate::threads::Threads;
use candle_plan_descriptors::word::Word;

/// An input of a concatenation: each joined row takes `run` elements from it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a, T> {
    /// The tensor, in row-major order.
    pub data: &'a [T],
    /// The elements that each joined row takes from it.
    pub run: usize,
}

/// Fills the rows of `out`, each with one run of every part: `out[row] = part0[row] ‖ part1[row] ‖ …`.
///
/// # Panics
/// The parts do not fill `out`.
pub fn concat<T: Word>(parts: &[Part<T>], out: &mut [T], threads: &Threads) {
    let width: usize = parts.iter().map(|part| part.run).sum();
    if width == 0 || out.is_empty() {
        return;
    }
    let rows = out.len() / width;
    assert!(
        rows * width == out.len() && parts.iter().all(|p| p.data.len() == rows * p.run),
        "the parts do not fill it"
    );
    let task = (out.len() / (4 * threads.count())).max((128 << 10) / size_of::<T>());
    let task = if threads.count() == 1 { rows * width } else { task };
    if width > SHORT * parts.len() {
        return threads.for_each_chunk(out, task, |chunk, out| fill(parts, width, chunk * task, out));
    }
    let task = task.div_ceil(width);
    threads.for_each_chunk(out, task * width, |chunk, out| fill_rows(parts, width, chunk * task, out));
}

/// Up to this average length, runs are copied without calling the C library.
const SHORT: usize = 16;
/// Elements that stay in the L1 cache while every part is copied to them.
const TILE: usize = 4096;

/// Fills `out`, whose first element is element `at` of the joined tensor.
fn fill<T: Word>(parts: &[Part<T>], width: usize, at: usize, mut out: &mut [T]) {
    let (mut row, mut column) = (at / width, at % width);
    while !out.is_empty() {
        for part in parts {
            if column >= part.run {
                column -= part.run;
                continue;
            }
            let count = (part.run - column).min(out.len());
            let (head, tail) = out.split_at_mut(count);
            copy_run(&part.data[row * part.run + column..][..count], head);
            out = tail;
            column = 0;
        }
        row += 1;
    }
}

/// Fills whole rows, starting with row `row`: part by part, in tiles.
fn fill_rows<T: Word>(parts: &[Part<T>], width: usize, mut row: usize, out: &mut [T]) {
    for out in out.chunks_mut(TILE.div_ceil(width) * width) {
        let mut column = 0;
        for part in parts.iter().filter(|part| part.run > 0) {
            copy_runs(&part.data[row * part.run..], part.run, &mut out[column..], width, part.run);
            column += part.run;
        }
        row += out.len() / width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uninit::Uninit;

    #[test]
    fn rows_are_joined_in_order() {
        for (rows, runs) in [
            (1, vec![5]),
            (3, vec![1, 2, 3]),
            (2, vec![0, 9, 0]),
            (9, vec![1; 3]),
            (5000, vec![2, 0, 3, 16, 5]),
            (30_000, vec![4, 4]),
            (40_000, vec![1, 1]),
            (100, vec![700, 1, 2000]),
            (1, vec![90_000, 70_000]),
        ] {
            let data: Vec<Vec<u32>> = runs
                .iter()
                .enumerate()
                .map(|(p, run)| (0..rows * run).map(|i| (i * 10 + p) as u32).collect())
                .collect();
            let parts: Vec<Part<u32>> = data.iter().zip(&runs).map(|(data, &run)| Part { data, run }).collect();
            let expected: Vec<u32> = (0..rows)
                .flat_map(|row| parts.iter().flat_map(move |p| p.data[row * p.run..][..p.run].to_vec()))
                .collect();
            for threads in [Threads::serial(), Threads::new(2).expect("two threads")] {
                let out = Uninit::new(expected.len()).overwrite(|out| concat(&parts, out, &threads));
                assert_eq!(out, expected, "{rows} rows of {runs:?}");
            }
        }
    }
}
