//! The register tile of convolutions over blocks of channels, and of Winograd's products.
//!
//! A tile covers some pixels and some blocks of outputs. For each tap and each of its channels, one scalar per
//! pixel is broadcast and multiplied with a row of weights. The pixels of a tile are in one row of the image, or in
//! two.

use std::hint::black_box;
use std::marker::PhantomData;

use super::addend::Addend;
use super::terms::{Tap, SUMMED};
use crate::blocking::Blocking;
use crate::convolution::form::Epilogue;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;
use crate::prefetch::prefetch;
use crate::vector::Vector;

/// The operands: `out[r][p][o] = residual[r][p][o] + start[o] + Σₜ Σ꜀ x[tₓ + r · row + p · pixel + c] · w[t_w + c][o]`,
/// where `tₓ` and `t_w` are the places of a [tap](Tap).
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub x: *const f32,
    /// The strides from one pixel to the next, and from the first row to the second.
    pub pixel: usize,
    pub row: usize,
    /// The blocks of channels of each tap, in the order of the [terms](super::terms).
    pub taps: &'a [Tap],
    /// The terms of a piece, which is summed separately before its sum is added to the total: a multiple of [`SUMMED`].
    pub piece: usize,
    /// The number of blocks at the end whose taps have a partial block, and the channels of each of these taps.
    pub last: usize,
    pub last_channels: usize,
    /// `[term][outputs]`
    pub w: *const f32,
    /// One value per output; null for zeros.
    pub start: *const f32,
    pub out: *mut f32,
    /// The strides from one block of outputs to the next, and from the first row to the second. The stride of pixels is
    /// a block.
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

/// The tiles of one instruction set and size of blocks.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    /// The channels of a block.
    block: usize,
    /// For 1, 2, … blocks of outputs: the tiles of one row, and those of two.
    widths: &'static [[BySteps; 2]],
}

impl Tiles {
    pub fn of(blocking: Blocking) -> Tiles {
        match (blocking.isa().level(), blocking.block()) {
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512, _) => x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2, 8) => x86::AVX2_BY_8,
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2, _) => x86::AVX2_BY_16,
            #[cfg(target_arch = "aarch64")]
            (Level::Neon, 8) => NEON_BY_8,
            #[cfg(target_arch = "aarch64")]
            (Level::Neon, _) => NEON_BY_16,
            (_, 8) => SCALAR_BY_8,
            _ => SCALAR_BY_16,
        }
    }

    /// The most outputs of a tile.
    pub fn outputs(&self) -> usize {
        self.widths.len() * self.block
    }

    /// Divides `outputs` outputs, which are whole blocks, into spans that a tile covers: two blocks each. If the number of
    /// blocks is odd, the last span has three, if there are such tiles, or else one.
    pub fn spans(&self, outputs: usize) -> impl Iterator<Item = [usize; 2]> {
        let (blocks, most) = (outputs / self.block, self.widths.len());
        let width = move |rest: usize| if rest <= most { rest } else { most.min(2) };
        let spans =
            std::iter::successors(Some([0, width(blocks)]), move |&[_, end]| Some([end, end + width(blocks - end)]));
        let block = self.block;
        spans.take_while(move |&[first, _]| first < blocks).map(move |span| span.map(|at| at * block))
    }

    /// The maximum number of pixels per row of a tile.
    pub fn pixels(&self, rows: usize, outputs: usize) -> usize {
        self.kernels(rows, outputs, 0).len()
    }

    /// Computes `pixels` pixels in each of `rows` rows for `outputs` outputs, as adjacent tiles of similar size.
    ///
    /// # Safety
    /// As for [`Kernel`].
    pub unsafe fn run(&self, rows: usize, pixels: usize, outputs: usize, mut tile: Tile) {
        let kernels = self.kernels(rows, outputs, tile.pixel);
        let count = pixels.div_ceil(kernels.len());
        let (size, wider) = (pixels / count.max(1), pixels % count.max(1));
        for i in 0..count {
            let size = if i < wider { size + 1 } else { size };
            // SAFETY: the tiles are adjacent and inside the area that the caller guarantees.
            unsafe { kernels[size - 1](&tile) };
            tile.x = tile.x.wrapping_add(size * tile.pixel);
            tile.out = tile.out.wrapping_add(size * self.block);
            tile.residual = tile.residual.from(size * self.block);
        }
    }

    /// The kernels for a fixed stride of pixels, or otherwise the kernels for any stride.
    fn kernels(&self, rows: usize, outputs: usize, step: usize) -> &'static [Kernel] {
        let steps = self.widths[outputs / self.block - 1][rows - 1];
        steps.iter().find(|(made_for, _)| *made_for == step).unwrap_or(&steps[0]).1
    }
}

/// The terms of a [piece](Tile::piece), in whole taps, if nothing enlarges their rounding errors. The errors grow with the
/// length of a piece and the number of pieces, not with the number of terms.
pub(super) const PIECE: usize = 8 * SUMMED;
/// The same for single channels, whose terms take longer than adding a piece.
const SINGLE: usize = 32;
/// The prefetch distance of the weights in elements; tiles of few pixels wait for nothing else.
const AHEAD: usize = 1 << 10;

/// The sizes of a [`Kernel`]. `STEP` is `Tile::pixel`, or 0 for any stride. With a stride that is not constant, the
/// addresses of the pixels do not fit in registers, and loading them takes as long as the products of one vector.
struct Sizes<V, const BLOCK: usize, const ROWS: usize, const PIXELS: usize, const VECTORS: usize, const STEP: usize>(
    PhantomData<V>,
);

impl<
        V: Vector,
        const BLOCK: usize,
        const ROWS: usize,
        const PIXELS: usize,
        const VECTORS: usize,
        const STEP: usize,
    > Sizes<V, BLOCK, ROWS, PIXELS, VECTORS, STEP>
{
    /// See [`Kernel`].
    #[inline(always)]
    unsafe fn tile(t: &Tile) {
        let (mut full, mut last) = t.taps.split_at(t.taps.len() - t.last);
        let mut first = true;
        // The blocks of each of the last taps.
        let blocks = if BLOCK < SUMMED { t.last_channels.div_ceil(BLOCK).max(1) } else { 1 };
        loop {
            let (taps, rest) = full.split_at(full.len().min(t.piece / BLOCK));
            // The last piece also takes as many of the last taps as it has space for.
            let spare = match (taps.len(), rest) {
                (0, _) if t.last_channels == 1 => SINGLE,
                (taps, []) => (t.piece - taps * BLOCK) / t.last_channels.max(1) * blocks,
                _ => 0,
            };
            let (partial, rest_of_partial) = last.split_at(spare.min(last.len()));
            let is_end = rest.is_empty() && rest_of_partial.is_empty();
            // SAFETY: guaranteed by the caller.
            unsafe { Self::sum(t, taps, partial, [first, is_end]) };
            if is_end {
                return;
            }
            (full, last, first) = (rest, rest_of_partial, false);
        }
    }

    /// Sums the terms of some taps of whole blocks and some of the partial block. Adds the sum to the output, unless it
    /// is the first.
    #[inline(always)]
    unsafe fn sum(t: &Tile, full: &[Tap], last: &[Tap], first_and_last: [bool; 2]) {
        let sums = [[[V::splat(0.0); VECTORS]; PIXELS]; ROWS];
        // Otherwise, the compiler would unroll the loop over 8 channels, and store some sums to memory in each round.
        let whole = if BLOCK < SUMMED { black_box(BLOCK) } else { BLOCK };
        // A tap outside full blocks may have a whole block before the partial one.
        let first = t.last_channels.min(BLOCK);
        let second = if first < t.last_channels { t.last_channels - first } else { first };
        let partial = |i: usize| if BLOCK < SUMMED && i % 2 == 1 { second } else { first };
        // SAFETY: the caller guarantees every address below.
        unsafe {
            let sums = Self::add(t, full, |_| whole, sums);
            let sums = Self::add(t, last, partial, sums);
            Self::write(t, &sums, first_and_last);
        }
    }

    /// Adds the terms of some blocks; `channels` returns how many channels the `i`-th block has. The sums pass by value:
    /// behind a reference, the compiler stores some of them to memory in each round of the loop.
    #[inline(always)]
    unsafe fn add(
        t: &Tile,
        taps: &[Tap],
        channels: impl Fn(usize) -> usize,
        mut sums: [[[V; VECTORS]; PIXELS]; ROWS],
    ) -> [[[V; VECTORS]; PIXELS]; ROWS] {
        let step = if STEP == 0 { t.pixel } else { STEP };
        for (i, tap) in taps.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let x = t.x.add(tap.x as usize);
                let mut w = t.w.add(tap.w as usize * VECTORS * V::LANES);
                for c in 0..channels(i) {
                    let mut weights = [V::splat(0.0); VECTORS];
                    for (v, weights) in weights.iter_mut().enumerate() {
                        *weights = V::load(w.add(v * V::LANES));
                        // Once per cache line.
                        if (v * V::LANES).is_multiple_of(16) {
                            prefetch(w.wrapping_add(v * V::LANES + AHEAD));
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
    unsafe fn write(t: &Tile, sums: &[[[V; VECTORS]; PIXELS]; ROWS], [first, last]: [bool; 2]) {
        let limits = if last { t.limits } else { Epilogue::NO_LIMITS };
        let is_plain = limits == Epilogue::NO_LIMITS && (!first || t.start.is_null() && t.residual.is_none());
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (is_plain, first) {
                (true, true) => Self::store::<true>(t, sums, true, limits),
                (true, false) => Self::store::<true>(t, sums, false, limits),
                (false, _) => Self::store::<false>(t, sums, first, limits),
            }
        }
    }

    /// See [`write`](Self::write). If it is `PLAIN`, there are no limits, and the first sums have nothing to add to.
    #[inline(always)]
    unsafe fn store<const PLAIN: bool>(t: &Tile, sums: &[[[V; VECTORS]; PIXELS]; ROWS], first: bool, limits: [f32; 2]) {
        for (r, sums) in sums.iter().enumerate() {
            for (v, at) in (0..VECTORS).map(|v| (v, v * V::LANES)) {
                for (p, sums) in sums.iter().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let place = r * t.out_row + at / BLOCK * t.out_block + at % BLOCK + p * BLOCK;
                        let out = t.out.add(place);
                        let sum = match first {
                            false => V::load(out) + sums[v],
                            true if PLAIN => V::splat(0.0) + sums[v],
                            true if t.start.is_null() => t.residual.add_to(V::splat(0.0) + sums[v], place),
                            true => t.residual.add_to(V::load(t.start.add(at)) + sums[v], place),
                        };
                        (if PLAIN { sum } else { sum.within(limits) }).store(out);
                    }
                }
            }
        }
    }
}

/// [`BySteps`] for one or two rows. For each number of pixels, it has the tile whose sums all fit in registers.
macro_rules! tiles {
    ($function:ident $block:literal: $rows:literal x $vectors:literal by $steps:tt: $pixels:tt) => {
        tiles!(@ $function $block $rows $vectors $steps $pixels)
    };
    (@ $function:ident $block:literal $rows:literal $vectors:literal [$($step:literal)*] $pixels:tt) => {
        &[$(($step, tiles!(@ $function $block $rows $vectors $step $pixels))),*]
    };
    (@ $function:ident $block:literal $rows:literal $vectors:literal $step:literal [$($pixels:literal)*]) => {
        &[$($function::<$block, $rows, $pixels, $vectors, $step> as Kernel),*] as &[Kernel]
    };
}

/// The tiles with blocks of 16 channels for 16 registers of 8 lanes.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! by_16 {
    ($function:ident) => {
        Tiles {
            block: 16,
            widths: &[[
                tiles!($function 16: 1 x 2 by [0 1 16]: [1 2 3 4 5 6]),
                tiles!($function 16: 2 x 2 by [0 16]: [1 2 3]),
            ]],
        }
    };
}

/// The same with blocks of 8 channels.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! by_8 {
    ($function:ident) => {
        Tiles {
            block: 8,
            widths: &[
                [
                    tiles!($function 8: 1 x 1 by [0 1 8]: [1 2 3 4 5 6 7 8 9 10 11 12]),
                    tiles!($function 8: 2 x 1 by [0 8]: [1 2 3 4 5 6]),
                ],
                [tiles!($function 8: 1 x 2 by [0 1 8]: [1 2 3 4 5 6]), tiles!($function 8: 2 x 2 by [0 8]: [1 2 3])],
                [tiles!($function 8: 1 x 3 by [0 1 8]: [1 2 3 4]), tiles!($function 8: 2 x 3 by [0 8]: [1 2])],
            ],
        }
    };
}

/// Declares the function that calls the tile with one instruction set's vectors. It has the sizes as parameters.
macro_rules! level {
    ($name:ident $V:ty $(: $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<
            const BLOCK: usize,
            const ROWS: usize,
            const PIXELS: usize,
            const VECTORS: usize,
            const STEP: usize,
        >(
            t: &Tile,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { Sizes::<$V, BLOCK, ROWS, PIXELS, VECTORS, STEP>::tile(t) }
        }
    };
}

level!(scalar f32);

const SCALAR_BY_8: Tiles =
    Tiles { block: 8, widths: &[[tiles!(scalar 8: 1 x 8 by [0]: [1 2 3 4]), tiles!(scalar 8: 2 x 8 by [0]: [1 2])]] };
const SCALAR_BY_16: Tiles =
    Tiles { block: 16, widths: &[[tiles!(scalar 16: 1 x 16 by [0]: [1 2]), tiles!(scalar 16: 2 x 16 by [0]: [1])]] };

/// Stride 1 is for single channels, that of a block for blocks.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Kernel, Sizes, Tile, Tiles};
    use crate::vector::{F32x16, F32x8};

    level!(avx512 F32x16: "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c");
    level!(avx2 F32x8: "avx2,fma,f16c");

    /// For 32 registers.
    pub(super) const AVX512: Tiles = Tiles {
        block: 16,
        widths: &[
            [
                tiles!(avx512 16: 1 x 1 by [0 1 16]: [1 2 3 4 5 6 7 8 9 10 11 12 13 14]),
                tiles!(avx512 16: 2 x 1 by [0 16]: [1 2 3 4 5 6 7]),
            ],
            [
                tiles!(avx512 16: 1 x 2 by [0 1 16]: [1 2 3 4 5 6 7 8 9 10 11 12 13 14]),
                tiles!(avx512 16: 2 x 2 by [0 16]: [1 2 3 4 5 6 7]),
            ],
        ],
    };

    pub(super) const AVX2_BY_16: Tiles = by_16!(avx2);
    pub(super) const AVX2_BY_8: Tiles = by_8!(avx2);
}

#[cfg(target_arch = "aarch64")]
level!(neon crate::vector::F32x4x2);

#[cfg(target_arch = "aarch64")]
const NEON_BY_16: Tiles = by_16!(neon);
#[cfg(target_arch = "aarch64")]
const NEON_BY_8: Tiles = by_8!(neon);
