//! The register tiles of each instruction set, and how they cover any number of rows.

#[cfg(target_arch = "x86_64")]
use super::amx::{self, Configured};
use super::dot::{Dot, Scalar};
use super::instructions::{Dots, Instructions};
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::operands::Tile;
use super::tile::{self, Kernel};

/// Returns a guard that a task holds while it runs tiles with pieces of `quads` quads.
#[cfg(target_arch = "x86_64")]
pub(super) fn configured(dots: Dots, quads: usize) -> Option<Configured> {
    // SAFETY: `dots` proves that the processor has AMX, and that the operating system permits its use.
    (dots.instructions() == Instructions::Amx).then(|| unsafe { Configured::new(quads) })
}

/// Returns the guard that a task holds while it runs tiles; other platforms need none.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn configured(_: Dots, _: usize) -> Option<std::convert::Infallible> {
    None
}

/// The tiles of one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    /// Columns per vector.
    pub lanes: usize,
    /// Indexed by number of vectors - 1: the supported numbers of rows, the largest first, and their kernels.
    kernels: &'static [&'static [(usize, Kernel)]],
}

impl Tiles {
    pub fn of(dots: Dots) -> Tiles {
        match dots.instructions() {
            #[cfg(target_arch = "x86_64")]
            Instructions::Amx => Tiles { lanes: 16, kernels: amx::AMX },
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512Vnni => Tiles { lanes: 16, kernels: tile::x86::AVX512_VNNI },
            #[cfg(target_arch = "x86_64")]
            Instructions::AvxVnni => Tiles { lanes: 8, kernels: tile::x86::AVX_VNNI },
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => Tiles { lanes: 8, kernels: tile::x86::AVX2 },
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2Words => Tiles { lanes: 8, kernels: tile::x86::AVX2_WORDS },
            #[cfg(target_arch = "aarch64")]
            Instructions::I8mm => Tiles { lanes: 8, kernels: neon::I8MM },
            #[cfg(target_arch = "aarch64")]
            Instructions::Dotprod => Tiles { lanes: 8, kernels: neon::DOTPROD },
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => Tiles { lanes: 8, kernels: neon::NEON },
            Instructions::Scalar => Tiles { lanes: Scalar::LANES, kernels: tile::SCALAR },
        }
    }

    /// The vectors of the panels that `n` columns are cut into, such that little is padded.
    pub fn vectors(&self, n: usize) -> usize {
        let vectors = n.div_ceil(self.lanes).max(1);
        let narrowest = vectors.min(2).min(self.kernels.len());
        let padded = |width: &usize| vectors.next_multiple_of(*width);
        (narrowest..=self.kernels.len()).rev().min_by_key(padded).unwrap_or(1)
    }

    /// Computes any number of rows, tile after tile. The last tile is the smallest that covers the remaining rows; if
    /// it is larger, it computes some rows again.
    ///
    /// # Safety
    /// As for [`Kernel`], for `rows` rows and a panel of `vectors` vectors.
    pub unsafe fn run(&self, rows: usize, vectors: usize, tile: &Tile) {
        let heights = self.kernels[vectors - 1];
        let (height, kernel) = heights[0];
        let mut done = 0;
        while done + height <= rows {
            // SAFETY: the tile's rows are some of the caller's.
            unsafe { kernel(&tile.below(done)) };
            done += height;
        }
        while done < rows {
            let least = heights.iter().rev().find(|(height, _)| (rows - done..=rows).contains(height));
            let Some(&(height, kernel)) = least.or_else(|| heights.iter().find(|(height, _)| *height <= rows)) else {
                return;
            };
            let first = done.min(rows - height);
            // SAFETY: the tile's rows are some of the caller's.
            unsafe { kernel(&tile.below(first)) };
            done = first + height;
        }
    }
}
