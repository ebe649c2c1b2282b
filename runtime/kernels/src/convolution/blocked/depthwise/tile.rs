//! The register tiles of depthwise convolutions: some pixels of one block of channels, whose sums stay in registers.

use crate::blocking::Blocking;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;
use crate::vector::Vector;

/// The operands: `out[p · out_pixel] = bias + Σᵢ Σⱼ x[p · pixel + i · row + j · column] · w[i · w_row + j · B]`, where
/// each element is a block of channels.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub x: *const f32,
    /// The stride of pixels.
    pub pixel: usize,
    /// The strides of the taps.
    pub row: usize,
    pub column: usize,
    /// Rows and columns of taps.
    pub taps: [usize; 2],
    pub w: *const f32,
    pub w_row: usize,
    /// One value per lane.
    pub bias: *const f32,
    pub out: *mut f32,
    pub out_pixel: usize,
    /// The smallest and the largest output.
    pub limits: [f32; 2],
}

/// A tile with a fixed number of pixels.
///
/// # Safety
/// Every address in the formula of [`Tile`] is inside its allocation, nothing else writes `out`, the processor has the
/// instruction set, and the tile has the taps and strides that the kernel is compiled for.
type Kernel = unsafe fn(&Tile);

/// A table of [`Kernel`]s by number of pixels, for a size of blocks.
macro_rules! kernels {
    ($function:ident $block:literal: $($pixels:literal)*) => {
        &[$($function::<$block, $pixels> as Kernel),*] as &[Kernel]
    };
}

/// The tiles of one instruction set and size of blocks, indexed by number of pixels - 1.
pub(super) fn tiles(blocking: Blocking) -> &'static [Kernel] {
    match (blocking.isa().level(), blocking.block()) {
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, _) => kernels!(avx512 16: 1 2 3 4 5 6 7 8 9 10 11 12),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, 8) => kernels!(avx2 8: 1 2 3 4 5 6 7 8 9 10 11 12),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, _) => kernels!(avx2 16: 1 2 3 4 5 6 7 8 9 10 11 12),
        #[cfg(target_arch = "aarch64")]
        (Level::Neon, 8) => kernels!(neon 8: 1 2 3 4 5 6 7 8 9 10 11 12),
        #[cfg(target_arch = "aarch64")]
        (Level::Neon, _) => kernels!(neon 16: 1 2 3 4 5 6 7 8 9 10 11 12),
        (_, 8) => kernels!(scalar 8: 1 2 3 4),
        _ => kernels!(scalar 16: 1 2 3 4),
    }
}

/// Computes `pixels` pixels as adjacent tiles of similar size.
///
/// # Safety
/// As for [`Kernel`].
pub(super) unsafe fn run(kernels: &[Kernel], pixels: usize, tile: Tile) {
    let count = pixels.div_ceil(kernels.len());
    for i in 0..count {
        let (first, end) = (pixels * i / count, pixels * (i + 1) / count);
        // SAFETY: the tiles are adjacent and inside the area that the caller guarantees.
        unsafe {
            let (x, out) = (tile.x.wrapping_add(first * tile.pixel), tile.out.add(first * tile.out_pixel));
            kernels[end - first - 1](&Tile { x, out, ..tile });
        }
    }
}

/// Supports any taps and strides: every product reads its factor from memory.
#[inline(always)]
unsafe fn any<V: Vector, const BLOCK: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: the caller guarantees every address below.
    unsafe {
        for lane in (0..BLOCK).step_by(V::LANES) {
            let mut sums = [V::splat(0.0); PIXELS];
            for i in 0..t.taps[0] {
                let (mut x, mut w) = (t.x.wrapping_add(i * t.row + lane), t.w.add(i * t.w_row + lane));
                for _ in 0..t.taps[1] {
                    let weight = V::load(w);
                    for (p, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(x.add(p * t.pixel)).mul_add(weight, *sum);
                    }
                    (x, w) = (x.wrapping_add(t.column), w.wrapping_add(BLOCK));
                }
            }
            write(t, &sums, lane);
        }
    }
}

#[inline(always)]
unsafe fn write<V: Vector, const PIXELS: usize>(t: &Tile, sums: &[V; PIXELS], lane: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let bias = V::load(t.bias.add(lane));
        for (p, sum) in sums.iter().enumerate() {
            (bias + *sum).within(t.limits).store(t.out.add(p * t.out_pixel + lane));
        }
    }
}

unsafe fn scalar<const BLOCK: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { any::<f32, BLOCK, PIXELS>(t) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn avx512<const BLOCK: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { any::<crate::vector::F32x16, BLOCK, PIXELS>(t) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<const BLOCK: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { any::<crate::vector::F32x8, BLOCK, PIXELS>(t) }
}

#[cfg(target_arch = "aarch64")]
unsafe fn neon<const BLOCK: usize, const PIXELS: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe { any::<crate::vector::F32x4x2, BLOCK, PIXELS>(t) }
}
