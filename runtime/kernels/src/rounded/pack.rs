//! A matrix of `bf16`, packed for a form.

#[cfg(target_arch = "x86_64")]
use super::amx::PackedTiles;
use super::case::Halves;
use super::panels::panels;
#[cfg(target_arch = "aarch64")]
use super::quads::PackedQuads;
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
    /// For instructions that sum products of pairs in tiles.
    #[cfg(target_arch = "x86_64")]
    Tiles(PackedTiles),
    /// For instructions that sum products of quads.
    #[cfg(target_arch = "aarch64")]
    Quads(PackedQuads),
    /// For products in `f32`.
    Widened(PackedB),
}

impl PackedRounded {
    /// The size of the packed matrix in bytes.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Stored::Pairs(pairs) => size_of_val(&pairs.words[..]),
            #[cfg(target_arch = "x86_64")]
            Stored::Tiles(tiles) => tiles.bytes(),
            #[cfg(target_arch = "aarch64")]
            Stored::Quads(quads) => quads.bytes(),
            Stored::Widened(packed) => packed.bytes(),
        }
    }

    /// The form, and how the matrix is stored.
    pub fn name(&self) -> String {
        match &self.0 {
            Stored::Pairs(_) => PAIRS.to_string(),
            #[cfg(target_arch = "x86_64")]
            Stored::Tiles(_) => TILES.to_string(),
            #[cfg(target_arch = "aarch64")]
            Stored::Quads(_) => QUADS.to_string(),
            Stored::Widened(packed) => format!("{WIDENED}, {}", packed_name(packed.format())),
        }
    }
}

/// The names of the forms.
pub(super) const PAIRS: &str = "bfloat16, AVX512_BF16";
#[cfg(target_arch = "x86_64")]
pub(super) const TILES: &str = "bfloat16, AMX";
#[cfg(target_arch = "aarch64")]
pub(super) const QUADS: &str = "bfloat16, NEON BFMMLA";
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

impl PackedPairs {
    /// Packs a matrix.
    ///
    /// # Panics
    /// The data do not fit the sizes.
    pub fn new(sums: PairSums, threads: &Threads, matrix: &Halves) -> PackedPairs {
        let Halves { k, n, .. } = *matrix;
        let vectors = n.div_ceil(LANES).max(1);
        let width = vectors.div_ceil(vectors.div_ceil(VECTORS)) * LANES;
        PackedPairs { sums, k, n, width, words: panels(threads, matrix, width, k.div_ceil(2)) }
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
