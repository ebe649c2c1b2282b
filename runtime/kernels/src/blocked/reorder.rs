//! Conversion of images between `[N, C, H, W]` and blocks of channels.

use super::{Images, BLOCK};
use crate::gemm::{Finish, Shared};
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;
use crate::threads::Threads;

/// The elements of a tile: 16 channels by 16 pixels.
const TILE: usize = BLOCK * BLOCK;
/// The pixels of a strip, which is moved through a buffer in the L1 cache.
const STRIP: usize = 128;

/// `[N, C, H · W]` → `[N, C / 16, H · W, 16]`, with zeros in the lanes beyond C.
///
/// # Panics
/// The slices do not have these sizes.
pub fn to_blocks(isa: Isa, threads: &Threads, images: Images, x: &[f32], out: &mut [f32]) {
    assert!(x.len() == images.len() && out.len() == images.blocked_len(), "{images:?}");
    let (shared, size, plane) = (Shared::new(out), images.plane * BLOCK, images.plane);
    images.for_each_block(threads, |index| {
        let (start, channels) = images.block(index);
        let x = &x[start..start + channels * plane];
        // SAFETY: each block belongs to one task.
        let out = unsafe { std::slice::from_raw_parts_mut(shared.at(index * size), size) };
        if channels == BLOCK && plane >= BLOCK {
            return tiles(plane).for_each(|i| transpose(isa, &x[i..], plane, &mut out[i * BLOCK..], BLOCK));
        }
        if plane < BLOCK {
            out.fill(0.0);
            return pixels(plane, channels).for_each(|(row, block)| out[block] = x[row]);
        }
        let mut rows = [0.0; BLOCK * STRIP];
        for (i, count) in strips(plane) {
            copy_rows(&x[i..], plane, &mut rows, STRIP, count);
            for j in tiles(count) {
                let mut tile = [0.0; TILE];
                transpose(isa, &rows[j..], STRIP, &mut tile, BLOCK);
                copy(&tile, &mut out[(i + j) * BLOCK..]);
            }
        }
    });
}

/// `[N, C / 16, H · W, 16]` → `[N, C, H · W]`, then calls `finish` on runs of whole channels.
///
/// # Panics
/// The slices do not have these sizes.
pub fn from_blocks(isa: Isa, threads: &Threads, images: Images, x: &[f32], out: &mut [f32], finish: Option<Finish>) {
    assert!(x.len() == images.blocked_len() && out.len() == images.len(), "{images:?}");
    let (shared, size, plane) = (Shared::new(out), images.plane * BLOCK, images.plane);
    images.for_each_block(threads, |index| {
        let (start, channels) = images.block(index);
        let x = &x[index * size..(index + 1) * size];
        // SAFETY: each block's channels belong to one task.
        let out = unsafe { std::slice::from_raw_parts_mut(shared.at(start), channels * plane) };
        if channels == BLOCK && plane >= BLOCK {
            tiles(plane).for_each(|i| transpose(isa, &x[i * BLOCK..], BLOCK, &mut out[i..], plane));
        } else if plane < BLOCK {
            pixels(plane, channels).for_each(|(row, block)| out[row] = x[block]);
        } else {
            rows_by_strips(isa, plane, x, out);
        }
        if let Some(finish) = finish {
            finish(out, start);
        }
    });
}

/// Converts one block, `[H · W, 16]` → `[channels, H · W]`, in strips.
fn rows_by_strips(isa: Isa, plane: usize, x: &[f32], out: &mut [f32]) {
    let mut rows = [0.0; BLOCK * STRIP];
    for (i, count) in strips(plane) {
        for j in tiles(count) {
            let mut tile = [0.0; TILE];
            copy(&x[(i + j) * BLOCK..], &mut tile);
            transpose(isa, &tile, BLOCK, &mut rows[j..], STRIP);
        }
        copy_rows(&rows, STRIP, &mut out[i..], plane, count);
    }
}

/// The indices of each element of a small plane, in `[C, H · W]` and in a block.
fn pixels(plane: usize, channels: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..channels).flat_map(move |c| (0..plane).map(move |p| (c * plane + p, p * BLOCK + c)))
}

/// The first pixel of each tile. A plane has at least 16 pixels; the last tile overlaps its neighbor, if there is one.
fn tiles(pixels: usize) -> impl Iterator<Item = usize> {
    (0..pixels).step_by(BLOCK).map(move |i| i.min(pixels - BLOCK))
}

/// The first pixel of each strip and its number of pixels. A plane has at least 16 pixels, and so does each strip.
fn strips(plane: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = plane.div_ceil(STRIP);
    (0..count).map(move |i| (plane * i / count, plane * (i + 1) / count - plane * i / count))
}

/// Copies up to the end of the shorter slice.
fn copy(x: &[f32], out: &mut [f32]) {
    let count = x.len().min(out.len());
    out[..count].copy_from_slice(&x[..count]);
}

/// Copies `count` elements of each row until either slice ends. Rows have strides `from` and `to`.
fn copy_rows(x: &[f32], from: usize, out: &mut [f32], to: usize, count: usize) {
    for (x, out) in x.chunks(from).zip(out.chunks_mut(to)) {
        out[..count].copy_from_slice(&x[..count]);
    }
}

/// Transposes a tile: `out[j · to + i] = x[i · from + j]`.
///
/// # Safety
/// 16 rows of 16 elements can be read, with stride `from`, and written, with stride `to`. The processor has the
/// instruction set.
type Transpose = unsafe fn(*const f32, usize, *mut f32, usize);

/// Transposes the tile at the start of `x`, from row stride `from` to row stride `to`.
fn transpose(isa: Isa, x: &[f32], from: usize, out: &mut [f32], to: usize) {
    assert!(x.len() >= (BLOCK - 1) * from + BLOCK && out.len() >= (BLOCK - 1) * to + BLOCK);
    let tile: Transpose = match isa.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::tile_512,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::tile_256,
        _ => tile,
    };
    // SAFETY: the tile is inside both slices, and `isa` proves that the processor has its instruction set.
    unsafe { tile(x.as_ptr(), from, out.as_mut_ptr(), to) }
}

/// See [`Transpose`].
unsafe fn tile(x: *const f32, from: usize, out: *mut f32, to: usize) {
    for (i, j) in (0..BLOCK).flat_map(|i| (0..BLOCK).map(move |j| (i, j))) {
        // SAFETY: guaranteed by the caller.
        unsafe { *out.add(j * to + i) = *x.add(i * from + j) }
    }
}

/// Loads quarters of four rows into one vector. Its 128-bit lanes hold squares, which are transposed in place. This
/// takes half the shuffles of a tile that is loaded by whole rows. If rows start at multiples of 128 bits, no load
/// crosses a cache line.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::BLOCK;

    /// See [`super::Transpose`].
    #[target_feature(enable = "avx512f")]
    pub unsafe fn tile_512(x: *const f32, from: usize, out: *mut f32, to: usize) {
        for j in (0..BLOCK).step_by(4) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let quarter = |i: usize| _mm_loadu_ps(x.add(i * from + j));
                let [a, b, c, d] = std::array::from_fn(|i| {
                    let row = _mm512_castps128_ps512(quarter(i));
                    let row = _mm512_insertf32x4::<1>(row, quarter(i + 4));
                    let row = _mm512_insertf32x4::<2>(row, quarter(i + 8));
                    _mm512_insertf32x4::<3>(row, quarter(i + 12))
                });
                // Prefetches the lines that the tile after the next will write, which may be in as many pages.
                (j..j + 4).for_each(|j| _mm_prefetch::<_MM_HINT_ET0>(out.wrapping_add(j * to + 2 * BLOCK).cast()));
                let (low, high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (low2, high2) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                _mm512_storeu_ps(out.add(j * to), _mm512_shuffle_ps::<0x44>(low, low2));
                _mm512_storeu_ps(out.add((j + 1) * to), _mm512_shuffle_ps::<0xEE>(low, low2));
                _mm512_storeu_ps(out.add((j + 2) * to), _mm512_shuffle_ps::<0x44>(high, high2));
                _mm512_storeu_ps(out.add((j + 3) * to), _mm512_shuffle_ps::<0xEE>(high, high2));
            }
        }
    }

    /// See [`super::Transpose`].
    #[target_feature(enable = "avx2")]
    pub unsafe fn tile_256(x: *const f32, from: usize, out: *mut f32, to: usize) {
        for (j, half) in (0..BLOCK).step_by(4).flat_map(|j| [(j, 0), (j, BLOCK / 2)]) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let quarter = |i: usize| _mm_loadu_ps(x.add((half + i) * from + j));
                let [a, b, c, d] = std::array::from_fn(|i| {
                    _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(quarter(i)), quarter(i + 4))
                });
                (j..j + 4).for_each(|j| _mm_prefetch::<_MM_HINT_ET0>(out.wrapping_add(j * to + 2 * BLOCK).cast()));
                let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (low2, high2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let out = out.add(j * to + half);
                _mm256_storeu_ps(out, _mm256_shuffle_ps::<0x44>(low, low2));
                _mm256_storeu_ps(out.add(to), _mm256_shuffle_ps::<0xEE>(low, low2));
                _mm256_storeu_ps(out.add(2 * to), _mm256_shuffle_ps::<0x44>(high, high2));
                _mm256_storeu_ps(out.add(3 * to), _mm256_shuffle_ps::<0xEE>(high, high2));
            }
        }
    }
}
