//! The register tile of convolutions over blocks of channels, and of Winograd's products.
//!
//! A tile covers some pixels and one or two vectors of outputs. For each tap and each of its channels, one scalar per
//! pixel is broadcast and multiplied with a row of weights. The pixels of a tile are in one row of the image, or in
//! two.

use super::addend::Addend;
use super::BLOCK;
use crate::conv_form::Epilogue;
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;
use crate::prefetch::prefetch;
use crate::vector::Vector;

/// The block of channels of one tap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    /// Its offset in the input.
    pub x: u32,
    /// The index of its first term in the weights; the terms of its channels are adjacent.
    pub w: u32,
}

/// The operands: `out[r][p][o] = residual[r][p][o] + start[o] + Σₜ Σ꜀ x[tₓ + r · row + p · pixel + c] · w[t_w + c][o]`,
/// where `tₓ` and `t_w` are the places of a [tap](Tap).
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub x: *const f32,
    /// The strides from one pixel to the next, and from the first row to the second.
    pub pixel: usize,
    pub row: usize,
    /// The blocks of channels of each tap: all taps of one block, then those of the next.
    pub taps: &'a [Tap],
    /// The number of taps at the end that belong to a partial block, and the channels of that block.
    pub last: usize,
    pub last_channels: usize,
    /// `[term][outputs]`
    pub w: *const f32,
    /// One value per output; null for zeros.
    pub start: *const f32,
    pub out: *mut f32,
    /// The strides from one block of outputs to the next, and from the first row to the second. The stride of pixels is
    /// 16.
    pub out_block: usize,
    pub out_row: usize,
    /// The residual. It has the strides of the outputs.
    pub residual: Addend,
    /// The smallest and the largest output.
    pub limits: [f32; 2],
}

/// A tile with a fixed number of rows, pixels and vectors.
///
/// # Safety
/// Every address in the formula of [`Tile`] is inside its allocation, nothing else writes `out`, and the processor has
/// the instruction set.
pub(super) type Kernel = unsafe fn(&Tile);

/// Tiles for a fixed number of rows and outputs. For each supported stride of pixels (0: any stride), the kernels for
/// 1, 2, … pixels.
type BySteps = &'static [(usize, &'static [Kernel])];

/// The tiles of one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    /// The outputs of a wide tile: one or two blocks.
    pub outputs: usize,
    /// For one row and for two.
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

    /// The maximum number of pixels per row of a tile.
    pub fn pixels(&self, rows: usize, outputs: usize) -> usize {
        self.kernels(rows, outputs, 0).len()
    }

    /// Computes `pixels` pixels in each of `rows` rows for `outputs` outputs, as adjacent tiles of similar size.
    ///
    /// # Safety
    /// As for [`Kernel`].
    pub unsafe fn run(&self, rows: usize, pixels: usize, outputs: usize, tile: Tile) {
        let kernels = self.kernels(rows, outputs, tile.pixel);
        let count = pixels.div_ceil(kernels.len());
        for i in 0..count {
            let (first, end) = (pixels * i / count, pixels * (i + 1) / count);
            // SAFETY: the tiles are adjacent and inside the area that the caller guarantees.
            unsafe {
                let (x, out) = (tile.x.wrapping_add(first * tile.pixel), tile.out.add(first * BLOCK));
                let residual = tile.residual.from(first * BLOCK);
                kernels[end - first - 1](&Tile { x, out, residual, ..tile });
            }
        }
    }

    /// The kernels for a fixed stride of pixels, or those for any stride.
    fn kernels(&self, rows: usize, outputs: usize, step: usize) -> &'static [Kernel] {
        let tiles = if outputs == self.outputs { self.wide } else { self.narrow };
        let steps = tiles[rows - 1];
        steps.iter().find(|(made_for, _)| *made_for == step).unwrap_or(&steps[0]).1
    }
}

/// The taps of a block of channels, or the corresponding number of terms of fewer channels, that are summed separately
/// before the sum is added to the total. Rounding errors then grow with the length of a piece and the number of pieces,
/// not with the number of terms.
const TAPS: usize = 8;
/// The same for single channels, whose terms take longer than adding a piece.
const SINGLE: usize = 32;
/// The prefetch distance of the weights in elements; tiles of few pixels wait for nothing else.
const AHEAD: usize = 1 << 10;

/// See [`Kernel`]. `STEP` is `Tile::pixel`, or 0 for any stride. With a stride that is not constant, the addresses of
/// the pixels do not fit in registers, and loading them takes as long as the products of one vector.
#[inline(always)]
unsafe fn tile<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
    let (mut full, mut last) = t.taps.split_at(t.taps.len() - t.last);
    let mut first = true;
    let few = if t.last_channels == 1 { SINGLE } else { TAPS * BLOCK / t.last_channels.max(1) };
    loop {
        let (taps, rest) = full.split_at(full.len().min(TAPS));
        // The last piece also takes as many terms of the partial block as it has room for.
        let added = match (taps.len(), rest) {
            (0, _) => few,
            (taps, []) => (TAPS - taps) * BLOCK / t.last_channels.max(1),
            _ => 0,
        };
        let (partial, rest_of_partial) = last.split_at(added.min(last.len()));
        let is_end = rest.is_empty() && rest_of_partial.is_empty();
        // SAFETY: guaranteed by the caller.
        unsafe {
            sum::<V, ROWS, PIXELS, VECTORS, STEP>(t, taps, partial, [first, is_end]);
        }
        if is_end {
            return;
        }
        (full, last, first) = (rest, rest_of_partial, false);
    }
}

/// Sums the terms of some taps of whole blocks and some of the partial block. Adds the sum to the output, unless it is
/// the first.
#[inline(always)]
unsafe fn sum<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(
    t: &Tile,
    full: &[Tap],
    last: &[Tap],
    first_and_last: [bool; 2],
) {
    let sums = [[[V::splat(0.0); VECTORS]; PIXELS]; ROWS];
    // SAFETY: the caller guarantees every address below.
    unsafe {
        let sums = add::<V, ROWS, PIXELS, VECTORS, STEP>(t, full, BLOCK, sums);
        let sums = add::<V, ROWS, PIXELS, VECTORS, STEP>(t, last, t.last_channels, sums);
        write::<V, ROWS, PIXELS, VECTORS>(t, &sums, first_and_last);
    }
}

/// Adds the terms of `channels` channels of each tap. The sums pass by value: behind a reference, the compiler stores
/// some of them to memory in each round of the loop.
#[inline(always)]
unsafe fn add<V: Vector, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(
    t: &Tile,
    taps: &[Tap],
    channels: usize,
    mut sums: [[[V; VECTORS]; PIXELS]; ROWS],
) -> [[[V; VECTORS]; PIXELS]; ROWS] {
    let step = if STEP == 0 { t.pixel } else { STEP };
    for tap in taps {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let x = t.x.add(tap.x as usize);
            let mut w = t.w.add(tap.w as usize * VECTORS * V::LANES);
            for c in 0..channels {
                let mut weights = [V::splat(0.0); VECTORS];
                for (v, weights) in weights.iter_mut().enumerate() {
                    *weights = V::load(w.add(v * V::LANES));
                    if (v * V::LANES).is_multiple_of(BLOCK) {
                        prefetch(w.wrapping_add(v * V::LANES + AHEAD)); // once per cache line
                    }
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
    sums
}

/// Adds the first sums to the start values and the residual, and later sums to the output. Clamps the last ones.
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
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let place = r * t.out_row + at / BLOCK * t.out_block + at % BLOCK + p * BLOCK;
                    let out = t.out.add(place);
                    let sum = match first {
                        false => V::load(out) + sums[v],
                        true if t.start.is_null() => t.residual.add_to(V::splat(0.0) + sums[v], place),
                        true => t.residual.add_to(V::load(t.start.add(at)) + sums[v], place),
                    };
                    sum.within(limits).store(out);
                }
            }
        }
    }
}

/// [`BySteps`] for one or two rows. For each number of pixels, it has the tile whose sums all fit in registers.
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
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<f32, ROWS, PIXELS, VECTORS, STEP>(t) }
}

const SCALAR: Tiles = {
    let tiles: [BySteps; 2] = [tiles!(scalar 1 x 16 by [0]: [1 2]), tiles!(scalar 2 x 16 by [0]: [1])];
    Tiles { outputs: BLOCK, wide: tiles, narrow: tiles }
};

/// Stride 1 is for single channels, 16 for blocks.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{tile, BySteps, Kernel, Tile, Tiles, BLOCK};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<F32x16, ROWS, PIXELS, VECTORS, STEP>(t) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(t: &Tile) {
        // SAFETY: guaranteed by the caller.
        unsafe { tile::<F32x8, ROWS, PIXELS, VECTORS, STEP>(t) }
    }

    /// For 32 registers.
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

    /// For 16 registers.
    pub(super) const AVX2: Tiles = {
        let tiles: [BySteps; 2] =
            [tiles!(avx2 1 x 2 by [0 1 16]: [1 2 3 4 5 6]), tiles!(avx2 2 x 2 by [0 16]: [1 2 3])];
        Tiles { outputs: BLOCK, wide: tiles, narrow: tiles }
    };
}
