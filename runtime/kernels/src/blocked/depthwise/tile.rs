//! The register tiles of depthwise convolutions: some pixels of one block of channels, whose sums stay in registers.

use super::BLOCK;
use crate::isa::Isa;
use crate::vector::Vector;

/// The operands: `out[p · out_pixel] = bias + Σᵢ Σⱼ x[p · pixel + i · row + j · column] · w[i · w_row + j · 16]`, where all are
/// blocks of channels. The second row of a tile of two rows lies `row` and `out_row` after the first.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub x: *const f32,
    /// From one pixel to the next.
    pub pixel: usize,
    /// From one tap to the next.
    pub row: usize,
    pub column: usize,
    /// Rows and columns of taps.
    pub taps: [usize; 2],
    pub w: *const f32,
    pub w_row: usize,
    /// One value a lane.
    pub bias: *const f32,
    pub out: *mut f32,
    pub out_pixel: usize,
    pub out_row: usize,
}

/// A tile of a fixed number of pixels.
///
/// # Safety
/// Every address that the formula of [`Tile`] names is inside its allocation, `out` is written by nobody else, the
/// processor has the instruction set, and the tile has the taps and distances that the kernel is for.
type Kernel = unsafe fn(&Tile);

/// Tiles of one row and of two rows, by number of pixels less one, for all taps of a small window.
pub(super) type Rows = [&'static [Kernel]; 2];

/// The tiles of one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    /// For any taps and distances, by number of pixels less one.
    any: &'static [Kernel],
    /// By columns of taps and distance of pixels, for taps side by side.
    windows: &'static [([usize; 2], Rows)],
}

impl Tiles {
    pub fn of(isa: Isa) -> Tiles {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::AVX2,
            _ => SCALAR,
        }
    }

    /// The tiles for pixels of a row, or of two rows, that have all columns of taps, or all taps of the window.
    pub fn rows(&self, kernel: [usize; 2], strides: [usize; 2], dilations: [usize; 2]) -> Rows {
        let found = self.windows.iter().find(|(window, _)| dilations[1] == 1 && *window == [kernel[1], strides[1]]);
        match found {
            None => [self.any, &[]],
            Some((_, rows)) if kernel[0] == kernel[1] && [strides[0], dilations[0]] == [1, 1] => *rows,
            Some((_, rows)) => [rows[0], &[]],
        }
    }

    /// The tiles for any taps.
    pub fn any(&self) -> &'static [Kernel] {
        self.any
    }
}

/// Computes `pixels` pixels as even tiles side by side.
///
/// # Safety
/// As for [`Kernel`].
pub(super) unsafe fn run(kernels: &[Kernel], pixels: usize, tile: Tile) {
    let count = pixels.div_ceil(kernels.len());
    for i in 0..count {
        let (first, end) = (pixels * i / count, pixels * (i + 1) / count);
        // SAFETY: the tiles lie side by side inside what the caller promised.
        unsafe {
            let (x, out) = (tile.x.add(first * tile.pixel), tile.out.add(first * tile.out_pixel));
            kernels[end - first - 1](&Tile { x, out, ..tile });
        }
    }
}

/// Any taps and distances: every product reads its factor from memory.
#[inline(always)]
unsafe fn any<V: Vector, const PIXELS: usize>(t: &Tile) {
    // SAFETY: the caller's promise covers every address below.
    unsafe {
        for lane in (0..BLOCK).step_by(V::LANES) {
            let mut sums = [V::splat(0.0); PIXELS];
            for i in 0..t.taps[0] {
                let (mut x, mut w) = (t.x.add(i * t.row + lane), t.w.add(i * t.w_row + lane));
                for _ in 0..t.taps[1] {
                    let weight = V::load(w);
                    for (p, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(x.add(p * t.pixel)).mul_add(weight, *sum);
                    }
                    (x, w) = (x.wrapping_add(t.column), w.wrapping_add(BLOCK));
                }
            }
            write(t, &sums, lane, 0);
        }
    }
}

/// The largest span of pixels that a tile reads of a row.
const SPAN: usize = 16;

/// The pixels that one row of taps reads, each once.
#[inline(always)]
unsafe fn span<V: Vector, const COLUMNS: usize, const STRIDE: usize, const PIXELS: usize>(x: *const f32) -> [V; SPAN] {
    let mut span = [V::splat(0.0); SPAN];
    for (p, pixel) in span.iter_mut().enumerate().take((PIXELS - 1) * STRIDE + COLUMNS) {
        // SAFETY: the caller's promise.
        *pixel = unsafe { V::load(x.add(p * BLOCK)) };
    }
    span
}

/// Adds one row of taps.
#[inline(always)]
unsafe fn add<V: Vector, const COLUMNS: usize, const STRIDE: usize, const PIXELS: usize>(
    span: &[V; SPAN],
    w: *const f32,
    sums: &mut [V; PIXELS],
) {
    for j in 0..COLUMNS {
        // SAFETY: the caller's promise.
        let weight = unsafe { V::load(w.add(j * BLOCK)) };
        for (p, sum) in sums.iter_mut().enumerate() {
            *sum = span[p * STRIDE + j].mul_add(weight, *sum);
        }
    }
}

/// All `COLUMNS` of a window side by side, any rows of it.
#[inline(always)]
unsafe fn row<V: Vector, const COLUMNS: usize, const STRIDE: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: the caller's promise covers every address below.
    unsafe {
        for lane in (0..BLOCK).step_by(V::LANES) {
            let mut sums = [V::splat(0.0); PIXELS];
            for i in 0..t.taps[0] {
                let span = span::<V, COLUMNS, STRIDE, PIXELS>(t.x.add(i * t.row + lane));
                add::<V, COLUMNS, STRIDE, PIXELS>(&span, t.w.add(i * t.w_row + lane), &mut sums);
            }
            write(t, &sums, lane, 0);
        }
    }
}

/// Two rows of pixels with all of a square window's taps side by side: each row of the input is read once for both.
#[inline(always)]
unsafe fn two_rows<V: Vector, const SIZE: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: the caller's promise covers every address below.
    unsafe {
        for lane in (0..BLOCK).step_by(V::LANES) {
            let mut sums = [[V::splat(0.0); PIXELS]; 2];
            for i in 0..SIZE + 1 {
                let span = span::<V, SIZE, 1, PIXELS>(t.x.add(i * t.row + lane));
                if i < SIZE {
                    add::<V, SIZE, 1, PIXELS>(&span, t.w.add(i * SIZE * BLOCK + lane), &mut sums[0]);
                }
                if i > 0 {
                    add::<V, SIZE, 1, PIXELS>(&span, t.w.add((i - 1) * SIZE * BLOCK + lane), &mut sums[1]);
                }
            }
            write(t, &sums[0], lane, 0);
            write(t, &sums[1], lane, t.out_row);
        }
    }
}

#[inline(always)]
unsafe fn write<V: Vector, const PIXELS: usize>(t: &Tile, sums: &[V; PIXELS], lane: usize, offset: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let bias = V::load(t.bias.add(lane));
        for (p, sum) in sums.iter().enumerate() {
            (bias + *sum).store(t.out.add(offset + p * t.out_pixel + lane));
        }
    }
}

/// A table of [`Kernel`]s by number of pixels, for some columns of taps and a distance of pixels, or a size of window.
macro_rules! kernels {
    ($function:ident: $($pixels:literal)*) => {
        &[$($function::<$pixels> as Kernel),*] as &[Kernel]
    };
    ($function:ident $size:literal: $($pixels:literal)*) => {
        &[$($function::<$size, $pixels> as Kernel),*] as &[Kernel]
    };
    ($function:ident $columns:literal $stride:literal: $($pixels:literal)*) => {
        &[$($function::<$columns, $stride, $pixels> as Kernel),*] as &[Kernel]
    };
}

unsafe fn scalar<const PIXELS: usize>(t: &Tile) {
    // SAFETY: the caller's promise.
    unsafe { any::<f32, PIXELS>(t) }
}

const SCALAR: Tiles = Tiles { any: kernels!(scalar: 1 2 3 4), windows: &[] };

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{any, row, two_rows, Kernel, Tile, Tiles};
    use crate::vector::{F32x16, F32x8};

    /// The tiles compiled for an instruction set.
    macro_rules! compiled {
        ($module:ident: $vector:ident, $features:literal) => {
            mod $module {
                use super::*;

                #[target_feature(enable = $features)]
                pub unsafe fn any_taps<const PIXELS: usize>(t: &Tile) {
                    // SAFETY: the caller's promise.
                    unsafe { any::<$vector, PIXELS>(t) }
                }

                #[target_feature(enable = $features)]
                pub unsafe fn one<const COLUMNS: usize, const STRIDE: usize, const PIXELS: usize>(t: &Tile) {
                    // SAFETY: the caller's promise.
                    unsafe { row::<$vector, COLUMNS, STRIDE, PIXELS>(t) }
                }

                #[target_feature(enable = $features)]
                pub unsafe fn two<const SIZE: usize, const PIXELS: usize>(t: &Tile) {
                    // SAFETY: the caller's promise.
                    unsafe { two_rows::<$vector, SIZE, PIXELS>(t) }
                }
            }
        };
    }

    compiled!(avx512: F32x16, "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c");
    compiled!(avx2: F32x8, "avx2,fma,f16c");

    /// 32 registers.
    pub(super) const AVX512: Tiles = {
        use avx512::{any_taps, one, two};
        Tiles {
            any: kernels!(any_taps: 1 2 3 4 5 6 7 8 9 10 11 12),
            windows: &[
                ([3, 1], [kernels!(one 3 1: 1 2 3 4 5 6 7), kernels!(two 3: 1 2 3 4 5 6 7)]),
                ([5, 1], [kernels!(one 5 1: 1 2 3 4 5 6 7), kernels!(two 5: 1 2 3 4 5 6 7)]),
                ([7, 1], [kernels!(one 7 1: 1 2 3 4 5 6 7 8), &[]]),
                ([3, 2], [kernels!(one 3 2: 1 2 3 4 5 6 7), &[]]),
                ([5, 2], [kernels!(one 5 2: 1 2 3 4 5 6), &[]]),
            ],
        }
    };

    /// 16 registers.
    pub(super) const AVX2: Tiles = {
        use avx2::{any_taps, one, two};
        Tiles {
            any: kernels!(any_taps: 1 2 3 4 5 6 7 8 9 10 11 12),
            windows: &[
                ([3, 1], [kernels!(one 3 1: 1 2 3 4 5 6), kernels!(two 3: 1 2 3 4)]),
                ([5, 1], [kernels!(one 5 1: 1 2 3 4 5), &[]]),
            ],
        }
    };
}
