//! A matrix of `bf16`, packed for a form.

use half::bf16;

use super::case::Halves;
use super::sums::{PairSums, LANES, VECTORS};
use crate::gemm::{packed_name, Lines, PackedB};
use crate::threads::Threads;

/// A `[k, n]` matrix of `bf16`, packed for the form that the planner chose.
#[derive(Debug, Clone)]
pub struct PackedRounded(pub(crate) Stored);

/// How a matrix is stored.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    /// For instructions that sum products of pairs.
    Pairs(PackedPairs),
    /// For products in `f32`.
    Widened(PackedB),
}

impl PackedRounded {
    /// The size of the packed matrix in bytes.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Stored::Pairs(pairs) => size_of_val(&pairs.words[..]),
            Stored::Widened(packed) => packed.bytes(),
        }
    }

    /// The form, and how the matrix is stored.
    pub fn name(&self) -> String {
        match &self.0 {
            Stored::Pairs(_) => PAIRS.to_string(),
            Stored::Widened(packed) => format!("{WIDENED}, {}", packed_name(packed.format())),
        }
    }
}

/// The names of the forms.
pub(super) const PAIRS: &str = "bfloat16, AVX512_BF16";
pub(super) const WIDENED: &str = "bfloat16 as float32";

/// A matrix in panels of at most [`VECTORS`] vectors of columns. Numbers of two adjacent rows form a pair, the upper one in
/// the low bits.
#[derive(Debug, Clone)]
pub(crate) struct PackedPairs {
    pub(super) sums: PairSums,
    pub(super) k: usize,
    pub(super) n: usize,
    /// The columns of a panel: whole vectors.
    pub(super) width: usize,
    /// `[panel][pair][column]`. Zeros follow the last row of an odd number, and the last column.
    words: Lines,
}

/// Pairs that are worth several threads.
const SPLIT: usize = 1 << 16;

impl PackedPairs {
    /// Packs a matrix.
    ///
    /// # Panics
    /// The data do not fit the sizes.
    pub fn new(sums: PairSums, threads: &Threads, matrix: &Halves) -> PackedPairs {
        let Halves { k, n, data, .. } = *matrix;
        assert_eq!(data.len(), k * n, "{k} x {n} numbers");
        let vectors = n.div_ceil(LANES).max(1);
        let width = vectors.div_ceil(vectors.div_ceil(VECTORS)) * LANES;
        let len = n.div_ceil(width) * width * k.div_ceil(2);
        let serial = Threads::serial();
        let threads = if len > SPLIT { threads } else { &serial };
        let words = Lines::overwritten(len, |words| {
            let words: &mut [u32] = bytemuck::cast_slice_mut(words);
            threads.for_each_chunk(words, width * k.div_ceil(2), |panel, words| {
                words.fill(0);
                pack(matrix, panel * width, width, words);
            });
        });
        PackedPairs { sums, k, n, width, words }
    }

    /// The pairs of a column.
    pub(super) fn pairs(&self) -> usize {
        self.k.div_ceil(2)
    }

    /// The address of a pair of a panel.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn at(&self, panel: usize, pair: usize) -> *const u32 {
        self.words.as_ptr().cast::<u32>().wrapping_add((panel * self.pairs() + pair) * self.width)
    }
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
