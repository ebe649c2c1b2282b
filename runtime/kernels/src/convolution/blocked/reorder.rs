//! Conversion of images between `[N, C, H, W]` and blocks of channels.

use super::Images;
use crate::blocking::Blocking;
use crate::gemm::{Finish, Shared};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;
use crate::threads::Threads;

/// The elements of the largest tile. A tile has as many channels as a block, and as many pixels.
const MOST: usize = Blocking::MOST * Blocking::MOST;
/// The pixels of a strip, which is moved through a buffer in the L1 cache.
const STRIP: usize = 128;

/// `[N, C, H · W]` → `[N, C / B, H · W, B]`, with zeros in the lanes beyond C.
///
/// # Panics
/// The slices do not have these sizes.
pub fn to_blocks(blocking: Blocking, threads: &Threads, images: Images, x: &[f32], out: &mut [f32]) {
    assert!(x.len() == images.len() && out.len() == images.blocked_len(blocking), "{images:?}");
    let (shared, block, plane) = (Shared::new(out), blocking.block(), images.plane);
    let size = plane * block;
    images.for_each_block(blocking, threads, |index| {
        let (start, channels) = images.block(blocking, index);
        let x = &x[start..start + channels * plane];
        // SAFETY: each block belongs to one task.
        let out = unsafe { std::slice::from_raw_parts_mut(shared.at(index * size), size) };
        if plane < block {
            out.fill(0.0);
            pixels(plane, channels).for_each(|(pixel, c)| out[pixel * block + c] = x[c * plane + pixel]);
        } else if channels == block {
            tiles(plane, block).for_each(|i| transpose(blocking, &x[i..], plane, &mut out[i * block..], block));
        } else {
            blocks_by_strips(blocking, plane, x, out);
        }
    });
}

/// `[N, C / B, H · W, B]` → `[N, C, H · W]`.
///
/// # Panics
/// The slices do not have these sizes.
pub fn from_blocks(blocking: Blocking, threads: &Threads, images: Images, x: &[f32], out: &mut [f32]) {
    assert!(x.len() == images.blocked_len(blocking) && out.len() == images.len(), "{images:?}");
    let (shared, block, plane) = (Shared::new(out), blocking.block(), images.plane);
    let size = plane * block;
    images.for_each_block(blocking, threads, |index| {
        let (start, channels) = images.block(blocking, index);
        let x = &x[index * size..(index + 1) * size];
        // SAFETY: each block's channels belong to one task.
        let out = unsafe { std::slice::from_raw_parts_mut(shared.at(start), channels * plane) };
        if plane < block {
            pixels(plane, channels).for_each(|(pixel, c)| out[c * plane + pixel] = x[pixel * block + c]);
        } else if channels == block {
            tiles(plane, block).for_each(|i| transpose(blocking, &x[i * block..], block, &mut out[i..], plane));
        } else {
            rows_by_strips(blocking, plane, x, out);
        }
    });
}

/// Converts a run of pixels of one block, which starts at `offset` in the image in blocks, to `[N, C, H · W]`. Then calls
/// `finish` on the run of each channel, or on all channels if the run is a whole plane.
///
/// # Safety
/// The run is inside the image, `out` has the sizes of `images`, and no other task accesses these pixels of `out`.
pub(crate) unsafe fn run_from_blocks(
    blocking: Blocking,
    images: Images,
    run: &[f32],
    offset: usize,
    out: Shared,
    finish: Option<Finish>,
) {
    let (block, plane) = (blocking.block(), images.plane);
    let (index, pixel, count) = (offset / (plane * block), offset / block % plane, run.len() / block);
    let (start, channels) = images.block(blocking, index);
    assert!(pixel + count <= plane && offset + run.len() <= images.blocked_len(blocking), "{images:?}");
    let start = start + pixel;
    // SAFETY: guaranteed by the caller: channel `c` has `count` elements from `start + c · plane` on. The `Isa` proves that
    // the processor has the instruction set.
    unsafe {
        if count < block {
            pixels(count, channels).for_each(|(i, c)| *out.at(start + c * plane + i) = run[i * block + c]);
        } else if channels == block {
            let tile = tile_of(blocking);
            tiles(count, block).for_each(|i| tile(run[i * block..].as_ptr(), block, out.at(start + i), plane));
        } else {
            let mut tile = [0.0; MOST];
            for i in tiles(count, block) {
                transpose(blocking, &run[i * block..], block, &mut tile, block);
                for (c, row) in tile.chunks_exact(block).enumerate().take(channels) {
                    out.at(start + c * plane + i).copy_from_nonoverlapping(row.as_ptr(), block);
                }
            }
        }
        if let Some(finish) = finish.filter(|_| count == plane) {
            finish(std::slice::from_raw_parts_mut(out.at(start), channels * plane), start);
        } else if let Some(finish) = finish {
            for first in (0..channels).map(|c| start + c * plane) {
                finish(std::slice::from_raw_parts_mut(out.at(first), count), first);
            }
        }
    }
}

/// Converts one block, `[channels, H · W]` → `[H · W, B]`, in strips.
fn blocks_by_strips(blocking: Blocking, plane: usize, x: &[f32], out: &mut [f32]) {
    let (block, mut rows, mut tile) = (blocking.block(), [0.0; Blocking::MOST * STRIP], [0.0; MOST]);
    for (i, count) in strips(plane) {
        copy_rows(&x[i..], plane, &mut rows, STRIP, count);
        for j in tiles(count, block) {
            transpose(blocking, &rows[j..], STRIP, &mut tile, block);
            copy(&tile[..block * block], &mut out[(i + j) * block..]);
        }
    }
}

/// Converts one block, `[H · W, B]` → `[channels, H · W]`, in strips.
fn rows_by_strips(blocking: Blocking, plane: usize, x: &[f32], out: &mut [f32]) {
    let (block, mut rows, mut tile) = (blocking.block(), [0.0; Blocking::MOST * STRIP], [0.0; MOST]);
    for (i, count) in strips(plane) {
        for j in tiles(count, block) {
            copy(&x[(i + j) * block..], &mut tile[..block * block]);
            transpose(blocking, &tile, block, &mut rows[j..], STRIP);
        }
        copy_rows(&rows, STRIP, &mut out[i..], plane, count);
    }
}

/// Every pixel and channel of a small plane.
fn pixels(plane: usize, channels: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..channels).flat_map(move |c| (0..plane).map(move |pixel| (pixel, c)))
}

/// The first pixel of each tile. A plane has at least the pixels of a tile. The last tile overlaps its neighbor, if
/// there is one.
fn tiles(pixels: usize, block: usize) -> impl Iterator<Item = usize> {
    (0..pixels).step_by(block).map(move |i| i.min(pixels - block))
}

/// The first pixel of each strip and its number of pixels. A plane has at least the pixels of a tile, and so does each
/// strip.
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
/// As many rows of as many elements as a block has channels can be read, with stride `from`, and written, with stride
/// `to`. The processor has the instruction set.
type Transpose = unsafe fn(*const f32, usize, *mut f32, usize);

/// Transposes the tile at the start of `x`, from row stride `from` to row stride `to`.
fn transpose(blocking: Blocking, x: &[f32], from: usize, out: &mut [f32], to: usize) {
    let last = blocking.block() - 1;
    assert!(x.len() > last * from + last && out.len() > last * to + last);
    // SAFETY: the tile is inside both slices, and its `Isa` proves that the processor has its instruction set.
    unsafe { tile_of(blocking)(x.as_ptr(), from, out.as_mut_ptr(), to) }
}

/// Returns the function that transposes a tile.
fn tile_of(blocking: Blocking) -> Transpose {
    match (blocking.isa().level(), blocking.block()) {
        #[cfg(target_arch = "x86_64")]
        (Level::Avx512, _) => x86::tile_512,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, 8) => x86::tile_256::<8>,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2, _) => x86::tile_256::<16>,
        #[cfg(target_arch = "aarch64")]
        (Level::Neon, 8) => crate::vector::transpose::<8>,
        #[cfg(target_arch = "aarch64")]
        (Level::Neon, _) => crate::vector::transpose::<16>,
        (_, 8) => tile::<8>,
        _ => tile::<16>,
    }
}

/// See [`Transpose`].
unsafe fn tile<const BLOCK: usize>(x: *const f32, from: usize, out: *mut f32, to: usize) {
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

    /// See [`super::Transpose`].
    #[target_feature(enable = "avx512f")]
    pub unsafe fn tile_512(x: *const f32, from: usize, out: *mut f32, to: usize) {
        const BLOCK: usize = 16;
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
    pub unsafe fn tile_256<const BLOCK: usize>(x: *const f32, from: usize, out: *mut f32, to: usize) {
        for j in (0..BLOCK).step_by(4) {
            for part in (0..BLOCK).step_by(8) {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let quarter = |i: usize| _mm_loadu_ps(x.add((part + i) * from + j));
                    let [a, b, c, d] = std::array::from_fn(|i| {
                        _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(quarter(i)), quarter(i + 4))
                    });
                    (j..j + 4).for_each(|j| _mm_prefetch::<_MM_HINT_ET0>(out.wrapping_add(j * to + 2 * BLOCK).cast()));
                    let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                    let (low2, high2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                    let out = out.add(j * to + part);
                    _mm256_storeu_ps(out, _mm256_shuffle_ps::<0x44>(low, low2));
                    _mm256_storeu_ps(out.add(to), _mm256_shuffle_ps::<0xEE>(low, low2));
                    _mm256_storeu_ps(out.add(2 * to), _mm256_shuffle_ps::<0x44>(high, high2));
                    _mm256_storeu_ps(out.add(3 * to), _mm256_shuffle_ps::<0xEE>(high, high2));
                }
            }
        }
    }
}
