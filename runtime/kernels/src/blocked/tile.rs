//! The register tile of convolutions over blocks of channels, and of Winograd's products.
//!
//! A tile is some pixels by one or two vectors of outputs. For each tap and each of its channels, one scalar a pixel,
//! broadcast, is multiplied with a row of weights. Pixels of a tile lie in one row of the image, or in two.

use super::{Epilogue, BLOCK};
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;
use crate::prefetch::prefetch;
use crate::vector::Vector;

/// The operands: `out[r][p][o] = start[o] + Σₜ Σ꜀ x[taps[t] + r · row + p · pixel + c] · w[t][c][o]`.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub x: *const f32,
    /// From one pixel's channels to the next pixel's, and from the first row's to the second row's.
    pub pixel: usize,
    pub row: usize,
    /// Where each tap's block of channels lies: all taps of a block, then those of the next.
    pub taps: &'a [u32],
    /// How many taps at the end belong to a block that is not full, and how many channels that has.
    pub last: usize,
    pub last_channels: usize,
    /// `[tap][channel][outputs]`
    pub w: *const f32,
    /// One value an output; null for zeros.
    pub start: *const f32,
    pub out: *mut f32,
    /// From one block of outputs to the next, and from the first row to the second. Pixels are 16 apart.
    pub out_block: usize,
    pub out_row: usize,
    /// What outputs are no less and no more than.
    pub limits: [f32; 2],
}

/// A tile of a fixed number of rows, pixels and vectors.
///
/// # Safety
/// Every address that the formula of [`Tile`] names is inside its allocation, `out` is written by nobody else, and the
/// processor has the instruction set.
pub(super) type Kernel = unsafe fn(&Tile);

/// Tiles of one number of rows and outputs: for each step between pixels that they are made for, or 0 for any, the kernels
/// by number of pixels less one.
type BySteps = &'static [(usize, &'static [Kernel])];

/// The tiles of one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    /// The outputs of a wide tile: one or two blocks.
    pub outputs: usize,
    /// Of one row and of two.
    wide: [BySteps; 2],
    narrow: [BySteps; 2],
}

impl Tiles {
    pub fn of(isa: Isa) -> Tiles {
        match isa.level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::AVX2,
            _ => SCALAR,
        }
    }

    /// The most pixels of a row, of `rows` rows and `outputs` outputs.
    pub fn pixels(&self, rows: usize, outputs: usize) -> usize {
        self.kernels(rows, outputs, 0).len()
    }

    /// Computes `pixels` pixels of each of `rows` rows for `outputs` outputs, as even tiles side by side.
    ///
    /// # Safety
    /// As for [`Kernel`].
    pub unsafe fn run(&self, rows: usize, pixels: usize, outputs: usize, tile: Tile) {
        let kernels = self.kernels(rows, outputs, tile.pixel);
        let count = pixels.div_ceil(kernels.len());
        for i in 0..count {
            let (first, end) = (pixels * i / count, pixels * (i + 1) / count);
            // SAFETY: the tiles lie side by side inside what the caller promised.
            unsafe {
                let (x, out) = (tile.x.add(first * tile.pixel), tile.out.add(first * BLOCK));
                kernels[end - first - 1](&Tile { x, out, ..tile });
            }
        }
    }

    /// The kernels that are made for a step between pixels, or those for any.
    fn kernels(&self, rows: usize, outputs: usize, step: usize) -> &'static [Kernel] {
        let tiles = if outputs == self.outputs { self.wide } else { self.narrow };
        let steps = tiles[rows - 1];
        steps.iter().find(|(made_for, _)| *made_for == step).unwrap_or(&steps[0]).1
    }
}

/// The taps of a block of channels that are summed before the sum is added to what came before, or as many terms of fewer
/// channels: rounding errors grow with the length of a piece and the number of pieces, not with the number of terms.
const TAPS: usize = 8;
/// The same of single channels, whose terms take longer than adding a piece.
const SINGLE: usize = 32;
/// Elements from the weights that are read to those that are fetched: tiles of few pixels wait for nothing else.
const AHEAD: usize = 1 << 10;

/// See [`Kernel`]. `STEP` is `Tile::pixel`, or 0 where only the tile tells: addresses of pixels that are not constants do
/// not fit in the registers, and to load them takes as long as the products of a single vector.
#[inline(always)]
unsafe fn tile<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
    let (mut full, mut last) = t.taps.split_at(t.taps.len() - t.last);
    let (mut w, mut first) = (t.w, true);
    let few = if t.last_channels == 1 { SINGLE } else { TAPS * BLOCK / t.last_channels.max(1) };
    loop {
        let (taps, rest) = full.split_at(full.len().min(TAPS));
        // The last piece takes what it has room for of the block that is not full.
        let room = match (taps.len(), rest) {
            (0, _) => few,
            (taps, []) => (TAPS - taps) * BLOCK / t.last_channels.max(1),
            _ => 0,
        };
        let (more, rest_of_last) = last.split_at(room.min(last.len()));
        let is_end = rest.is_empty() && rest_of_last.is_empty();
        // SAFETY: the caller's promise.
        unsafe {
            sum::<V, ROWS, PIXELS, VECTORS, STEP>(t, taps, more, w, [first, is_end]);
            w = w.add((taps.len() * BLOCK + more.len() * t.last_channels) * VECTORS * V::LANES);
        }
        if is_end {
            return;
        }
        (full, last, first) = (rest, rest_of_last, false);
    }
}

/// The terms of some taps of whole blocks and some of the last block; added to what the output holds, unless they are the
/// first.
#[inline(always)]
unsafe fn sum<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(
    t: &Tile,
    full: &[u32],
    last: &[u32],
    w: *const f32,
    first_and_last: [bool; 2],
) {
    let mut sums = [[[V::splat(0.0); VECTORS]; PIXELS]; ROWS];
    // SAFETY: the caller's promise covers every address below.
    unsafe {
        let w = add::<V, ROWS, PIXELS, VECTORS, STEP>(t, full, BLOCK, w, &mut sums);
        add::<V, ROWS, PIXELS, VECTORS, STEP>(t, last, t.last_channels, w, &mut sums);
        write::<V, ROWS, PIXELS, VECTORS>(t, &sums, first_and_last);
    }
}

/// Adds the terms of some channels of each of some taps; gives where the next ones' weights are.
#[inline(always)]
unsafe fn add<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(
    t: &Tile,
    taps: &[u32],
    channels: usize,
    mut w: *const f32,
    sums: &mut [[[V; VECTORS]; PIXELS]; ROWS],
) -> *const f32 {
    let step = if STEP == 0 { t.pixel } else { STEP };
    for &tap in taps {
        // SAFETY: the caller's promise.
        unsafe {
            let x = t.x.add(tap as usize);
            for c in 0..channels {
                let mut weights = [V::splat(0.0); VECTORS];
                for (v, weights) in weights.iter_mut().enumerate() {
                    *weights = V::load(w.add(v * V::LANES));
                    prefetch(w.wrapping_add(v * V::LANES + AHEAD));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    for (p, sums) in sums.iter_mut().enumerate() {
                        let x = V::splat(*x.add(r * t.row + p * step + c));
                        for (sum, &weights) in sums.iter_mut().zip(&weights) {
                            *sum = x.mul_add(weights, *sum);
                        }
                    }
                }
                w = w.add(VECTORS * V::LANES);
            }
        }
    }
    w
}

/// Adds the sums to the start values, if they are the first, or to what the output holds; the last are limited.
#[inline(always)]
unsafe fn write<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize>(
    t: &Tile,
    sums: &[[[V; VECTORS]; PIXELS]; ROWS],
    [first, last]: [bool; 2],
) {
    let limits = if last { t.limits } else { Epilogue::NO_LIMITS };
    for (r, sums) in sums.iter().enumerate() {
        for (v, at) in (0..VECTORS).map(|v| (v, v * V::LANES)) {
            for (p, sums) in sums.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe {
                    let out = t.out.add(r * t.out_row + at / BLOCK * t.out_block + at % BLOCK + p * BLOCK);
                    let before = match first {
                        false => V::load(out),
                        true if t.start.is_null() => V::splat(0.0),
                        true => V::load(t.start.add(at)),
                    };
                    (before + sums[v]).within(limits).store(out);
                }
            }
        }
    }
}

/// [`BySteps`] of one or two rows: for each number of pixels, the tile that leaves no sum outside the registers.
macro_rules! tiles {
    ($function:ident $rows:literal x $vectors:literal by $steps:tt: $pixels:tt) => {
        tiles!(@ $function $rows $vectors $steps $pixels)
    };
    (@ $function:ident $rows:literal $vectors:literal [$($step:literal)*] $pixels:tt) => {
        &[$(($step, tiles!(@ $function $rows $vectors $step $pixels))),*]
    };
    (@ $function:ident $rows:literal $vectors:literal $step:literal [$($pixels:literal)*]) => {
        &[$($function::<$rows, $pixels, $vectors, $step> as Kernel),*] as &[Kernel]
    };
}

unsafe fn scalar<const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
    // SAFETY: the caller's promise.
    unsafe { tile::<f32, ROWS, PIXELS, VECTORS, STEP>(t) }
}

const SCALAR: Tiles = {
    let tiles: [BySteps; 2] = [tiles!(scalar 1 x 16 by [0]: [1 2]), tiles!(scalar 2 x 16 by [0]: [1])];
    Tiles { outputs: BLOCK, wide: tiles, narrow: tiles }
};

/// Step 1 is that of single channels, 16 that of blocks.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{tile, BySteps, Kernel, Tile, Tiles, BLOCK};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { tile::<F32x16, ROWS, PIXELS, VECTORS, STEP>(t) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { tile::<F32x8, ROWS, PIXELS, VECTORS, STEP>(t) }
    }

    /// 32 registers.
    pub(super) const AVX512: Tiles = Tiles {
        outputs: 2 * BLOCK,
        wide: [
            tiles!(avx512 1 x 2 by [0 1 16]: [1 2 3 4 5 6 7 8 9 10 11 12 13 14]),
            tiles!(avx512 2 x 2 by [0 16]: [1 2 3 4 5 6 7]),
        ],
        narrow: [
            tiles!(avx512 1 x 1 by [0 1 16]: [1 2 3 4 5 6 7 8 9 10 11 12 13 14]),
            tiles!(avx512 2 x 1 by [0 16]: [1 2 3 4 5 6 7]),
        ],
    };

    /// 16 registers.
    pub(super) const AVX2: Tiles = {
        let tiles: [BySteps; 2] =
            [tiles!(avx2 1 x 2 by [0 1 16]: [1 2 3 4 5 6]), tiles!(avx2 2 x 2 by [0 16]: [1 2 3])];
        Tiles { outputs: BLOCK, wide: tiles, narrow: tiles }
    };
}
