//! The register tiles of an instruction set, and how they cover a block of any size.

use super::strip;
use super::tile::{self, Kernel, Tile};
use crate::isa::Isa;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;

/// The tiles of one instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Tiles {
    /// Elements per vector.
    pub lanes: usize,
    /// Indexed by number of rows - 1, then by number of vectors - 1.
    kernels: &'static [&'static [Kernel]],
    /// The tiles over a panel.
    pub(super) strips: &'static strip::Strips,
}

impl Tiles {
    pub fn of(isa: Isa) -> Tiles {
        match isa.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Tiles { lanes: 16, kernels: tile::x86::AVX512, strips: &strip::x86::AVX512 },
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Tiles { lanes: 8, kernels: tile::x86::AVX2, strips: &strip::x86::AVX2 },
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Tiles { lanes: 8, kernels: tile::NEON, strips: &strip::neon::NEON },
            _ => Tiles { lanes: 1, kernels: tile::SCALAR, strips: &strip::SCALAR },
        }
    }

    /// The maximum number of rows.
    pub fn rows(&self) -> usize {
        self.kernels.len()
    }

    /// The maximum number of vectors in a tile of `rows` rows.
    pub fn vectors(&self, rows: usize) -> usize {
        self.kernels[rows - 1].len()
    }

    /// The width of the panels that `n` columns are divided into, for a product of `m` rows: whole vectors, of similar
    /// size.
    pub fn panel_width(&self, m: usize, n: usize) -> usize {
        let vectors = n.div_ceil(self.lanes);
        let panels = vectors.div_ceil(self.vectors(m.clamp(1, self.rows())));
        vectors.div_ceil(panels.max(1)).max(1) * self.lanes
    }

    /// Divides `width` columns of `rows` rows into tiles: for each, the number of vectors, the first column and the
    /// number of columns.
    pub(super) fn cut(self, rows: usize, width: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let vectors = width.div_ceil(self.lanes);
        let count = vectors.div_ceil(self.vectors(rows));
        (0..count).map(move |i| {
            let (first, end) = (vectors * i / count, vectors * (i + 1) / count);
            let column = first * self.lanes;
            (end - first, column, width.min(end * self.lanes) - column)
        })
    }

    /// Computes a block of `rows` rows and any width, tile after tile.
    ///
    /// # Safety
    /// As for [`Kernel`], with `tile.width` as the width of the block; `rows` is at most [`Tiles::rows`].
    pub unsafe fn run(&self, rows: usize, tile: Tile) {
        for (vectors, column, width) in self.cut(rows, tile.width) {
            // SAFETY: the tiles are adjacent and inside the block.
            unsafe { self.kernels[rows - 1][vectors - 1](&tile.at(column, width)) };
        }
    }
}
