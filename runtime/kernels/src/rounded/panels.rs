//! A matrix of `bf16` in panels: groups of adjacent columns, in pairs of numbers.

use half::bf16;

use super::case::Halves;
use crate::gemm::Lines;
use crate::threads::Threads;

/// Pairs that are worth several threads.
const SPLIT: usize = 1 << 16;

/// Returns `[panel][pair][column]`, where a panel has `width` columns, and a column `pairs` pairs. Zeros follow the
/// last row and the last column.
///
/// # Panics
/// The data do not fit the sizes.
pub(super) fn panels(threads: &Threads, matrix: &Halves, width: usize, pairs: usize) -> Lines {
    let Halves { k, n, data, .. } = *matrix;
    assert_eq!(data.len(), k * n, "{k} x {n} numbers");
    let len = n.div_ceil(width) * width * pairs;
    let serial = Threads::serial();
    let threads = if len > SPLIT { threads } else { &serial };
    Lines::overwritten(len, |words| {
        threads.for_each_chunk(bytemuck::cast_slice_mut(words), width * pairs, |panel, words| {
            words.fill(0);
            pack(matrix, panel * width, width, words);
        });
    })
}

/// Writes the columns from `first` on to a panel of zeros.
fn pack(matrix: &Halves, first: usize, width: usize, words: &mut [u32]) {
    let Halves { k, n, data, transposed } = *matrix;
    let count = width.min(n - first);
    if transposed {
        for (column, data) in data[first * k..].chunks_exact(k).take(count).enumerate() {
            let words = words[column..].iter_mut().step_by(width);
            data.chunks(2).zip(words).for_each(|(pair, word)| *word = joined(pair[0], pair.get(1)));
        }
    } else {
        for (rows, words) in data.chunks(2 * n).zip(words.chunks_exact_mut(width)) {
            let (upper, lower) = rows.split_at(n);
            for (i, word) in words[..count].iter_mut().enumerate() {
                *word = joined(upper[first + i], lower.get(first + i));
            }
        }
    }
}

/// The word of a pair, whose second number is 0 if it is absent.
fn joined(upper: bf16, lower: Option<&bf16>) -> u32 {
    u32::from(upper.to_bits()) | lower.map_or(0, |lower| u32::from(lower.to_bits()) << 16)
}
