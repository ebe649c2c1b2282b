//! A matrix of `bf16`, packed in tiles.

use super::shape::{steps, PAIRS, WIDTH};
use crate::gemm::Lines;
use crate::rounded::case::Halves;
use crate::rounded::panels::panels;
use crate::rounded::sums::TileSums;
use crate::threads::Threads;

/// A matrix in panels of two tiles of columns.
#[derive(Debug, Clone)]
pub(crate) struct PackedTiles {
    pub(super) sums: TileSums,
    pub(super) k: usize,
    pub(super) n: usize,
    /// `[panel][pair][column]`. Zeros follow the last row up to whole tiles, and the last column.
    words: Lines,
}

impl PackedTiles {
    /// Packs a matrix.
    ///
    /// # Panics
    /// The data do not fit the sizes.
    pub fn new(sums: TileSums, threads: &Threads, matrix: &Halves) -> PackedTiles {
        let words = panels(threads, matrix, WIDTH, steps(matrix.k) * PAIRS);
        PackedTiles { sums, k: matrix.k, n: matrix.n, words }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    /// The tiles along the depth.
    pub(super) fn steps(&self) -> usize {
        steps(self.k)
    }

    /// The words of a panel.
    pub(super) fn panel(&self) -> usize {
        self.steps() * PAIRS * WIDTH
    }

    /// Two tiles of a panel, of adjacent columns: the first of `count` such pairs of tiles along the depth.
    pub(super) fn tiles(&self, panel: usize, first: usize, count: usize) -> *const u32 {
        let size = PAIRS * WIDTH;
        self.words[panel * self.panel() + first * size..][..count * size].as_ptr().cast()
    }
}
