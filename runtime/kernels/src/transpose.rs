//! Transposes of planes in square tiles that stay in registers.

use crate::isa::Isa;
use candle_plan_descriptors::word::Word;

/// A plane to transpose: `to[row, column] = from[column, row]`.
#[derive(Debug, Clone, Copy)]
pub struct Plane {
    /// The rows of the result.
    pub rows: usize,
    /// The columns of the result.
    pub columns: usize,
    /// The row stride of the source, which has one row per column of the result. Its rows may overlap.
    pub from: usize,
    /// The row stride of the result.
    pub to: usize,
}

/// The tiles of one strip of the source share the cache lines of the result.
const STRIP: usize = 64;

/// Transposes a plane: `out[row·to + column] = source[column·from + row]`.
///
/// # Panics
/// The plane exceeds `source` or `out`.
pub fn transpose<T: Word>(source: &[T], out: &mut [T], plane: Plane, isa: Isa) {
    if plane.rows == 0 || plane.columns == 0 {
        return;
    }
    assert!((plane.columns - 1) * plane.from + plane.rows <= source.len(), "{plane:?} leaves its source");
    assert!((plane.rows - 1) * plane.to + plane.columns <= out.len(), "{plane:?} leaves its result");
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if size_of::<T>() == 1
        && registers::transpose_bytes(bytemuck::cast_slice(source), bytemuck::cast_slice_mut(out), plane, isa)
    {
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if let (Ok(source), Ok(out)) = (bytemuck::try_cast_slice(source), bytemuck::try_cast_slice_mut(&mut *out)) {
        if size_of::<T>() == 4 && registers::transpose(source, out, plane, isa) {
            return;
        }
    }
    match plane.rows.min(plane.columns) {
        0..8 => single(source, out, plane),
        _ => tiled::<8>(plane, |row, column| tile::<T, 8>(source, out, plane, row, column)),
    }
}

/// Calls `tile` for the corners of `N × N` tiles that cover the plane, strip by strip. The last tiles overlap their
/// neighbors; the plane must be at least as large as one tile.
fn tiled<const N: usize>(plane: Plane, mut tile: impl FnMut(usize, usize)) {
    for strip in (0..plane.columns).step_by(STRIP) {
        for row in (0..plane.rows).step_by(N) {
            for column in (strip..(strip + STRIP).min(plane.columns)).step_by(N) {
                tile(row.min(plane.rows - N), column.min(plane.columns - N));
            }
        }
    }
}

/// Transposes one tile.
fn tile<T: Word, const N: usize>(source: &[T], out: &mut [T], plane: Plane, row: usize, column: usize) {
    let mut block = [[T::zeroed(); N]; N];
    for i in 0..N {
        let line = &source[(column + i) * plane.from + row..][..N];
        for j in 0..N {
            block[j][i] = line[j];
        }
    }
    for (j, line) in block.iter().enumerate() {
        out[(row + j) * plane.to + column..][..N].copy_from_slice(line);
    }
}

/// Transposes a plane smaller than a tile, along its longer side.
fn single<T: Word>(source: &[T], out: &mut [T], plane: Plane) {
    match (plane.rows, plane.columns) {
        (2, _) => split::<T, 2>(source, out, plane),
        (3, _) => split::<T, 3>(source, out, plane),
        (4, _) => split::<T, 4>(source, out, plane),
        (_, 2) => weave::<T, 2>(source, out, plane),
        (_, 3) => weave::<T, 3>(source, out, plane),
        (_, 4) => weave::<T, 4>(source, out, plane),
        (rows, columns) if rows <= columns => {
            for row in 0..rows {
                let line = &mut out[row * plane.to..][..columns];
                line.iter_mut().enumerate().for_each(|(column, out)| *out = source[column * plane.from + row]);
            }
        }
        (rows, columns) => {
            for column in 0..columns {
                let line = &source[column * plane.from..][..rows];
                line.iter().enumerate().for_each(|(row, value)| out[row * plane.to + column] = *value);
            }
        }
    }
}

/// Transposes to `N` rows in one pass.
fn split<T: Word, const N: usize>(source: &[T], out: &mut [T], plane: Plane) {
    let mut rows = out.chunks_mut(plane.to);
    let mut rows: [&mut [T]; N] = std::array::from_fn(|_| match rows.next() {
        Some(row) => &mut row[..plane.columns],
        None => &mut [],
    });
    for (column, source) in source.windows(N).step_by(plane.from).take(plane.columns).enumerate() {
        let source: [T; N] = std::array::from_fn(|row| source[row]);
        for (row, value) in rows.iter_mut().zip(source) {
            row[column] = value;
        }
    }
}

/// Transposes `N` columns in one pass.
fn weave<T: Word, const N: usize>(source: &[T], out: &mut [T], plane: Plane) {
    let columns: [&[T]; N] = std::array::from_fn(|column| &source[column * plane.from..][..plane.rows]);
    for (row, out) in out.chunks_mut(plane.to).take(plane.rows).enumerate() {
        let values: [T; N] = std::array::from_fn(|column| columns[column][row]);
        out[..N].copy_from_slice(&values);
    }
}

#[cfg(target_arch = "aarch64")]
use neon as registers;
#[cfg(target_arch = "x86_64")]
use x86 as registers;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{tiled, Plane};
    use crate::isa::{Isa, Level};

    /// Transposes with the widest tile that fits in the plane. Returns `false` if none fits. The caller has checked
    /// that the plane is inside both slices.
    pub fn transpose(source: &[f32], out: &mut [f32], plane: Plane, isa: Isa) -> bool {
        let (from, to) = (source.as_ptr(), out.as_mut_ptr());
        let at = |row, column| (column * plane.from + row, row * plane.to + column);
        let least = plane.rows.min(plane.columns);
        if isa.level() >= Level::Avx512 && least >= 16 {
            tiled::<16>(plane, |row, column| {
                let (i, j) = at(row, column);
                // SAFETY: `isa` proves AVX-512. The tile is inside the plane, and the plane is inside both slices.
                unsafe { tile16(from.add(i), plane.from, to.add(j), plane.to) }
            });
        } else if isa.level() >= Level::Avx2 && least >= 8 {
            tiled::<8>(plane, |row, column| {
                let (i, j) = at(row, column);
                // SAFETY: `isa` proves AVX2. The tile is inside the plane, and the plane is inside both slices.
                unsafe { tile8(from.add(i), plane.from, to.add(j), plane.to) }
            });
        } else {
            return false;
        }
        true
    }

    /// [`transpose`] for bytes. Also supports three columns to contiguous rows, as in RGB images.
    pub fn transpose_bytes(source: &[u8], out: &mut [u8], plane: Plane, isa: Isa) -> bool {
        let (from, to) = (source.as_ptr(), out.as_mut_ptr());
        if isa.level() < Level::Avx2 || plane.rows < 16 {
            return false;
        }
        match (plane.columns, plane.to) {
            (16.., _) => tiled::<16>(plane, |row, column| {
                let (i, j) = (column * plane.from + row, row * plane.to + column);
                // SAFETY: `isa` proves AVX2. The tile is inside the plane, and the plane is inside both slices.
                unsafe { tile_bytes(from.add(i), plane.from, to.add(j), plane.to) }
            }),
            (3, 3) => {
                for row in (0..plane.rows).step_by(16) {
                    let row = row.min(plane.rows - 16);
                    // SAFETY: as above, for sixteen rows.
                    unsafe { weave_bytes(from.add(row), plane.from, to.add(3 * row)) }
                }
            }
            _ => return false,
        }
        true
    }

    /// Transposes three columns of sixteen bytes to contiguous rows.
    ///
    /// # Safety
    /// The processor has AVX2. 16 bytes can be read at `from` and one and two strides further, and 48 bytes can be
    /// written at `to`.
    #[target_feature(enable = "avx2")]
    unsafe fn weave_bytes(from: *const u8, stride: usize, to: *mut u8) {
        /// For each third of the result, the source index of its bytes in each column; 128 means none.
        const PLACES: [[[u8; 16]; 3]; 3] = {
            let mut places = [[[128; 16]; 3]; 3];
            let mut i = 0;
            while i < 48 {
                places[i / 16][i % 3][i % 16] = (i / 3) as u8;
                i += 1;
            }
            places
        };
        // SAFETY: the function's contract.
        unsafe {
            let load = |at: *const u8| _mm_loadu_si128(at.cast());
            let columns = [load(from), load(from.add(stride)), load(from.add(2 * stride))];
            for (third, places) in PLACES.iter().enumerate() {
                let mut all = _mm_setzero_si128();
                for (column, places) in columns.iter().zip(places) {
                    all = _mm_or_si128(all, _mm_shuffle_epi8(*column, load(places.as_ptr())));
                }
                _mm_storeu_si128(to.add(16 * third).cast(), all);
            }
        }
    }

    /// Transposes 16×16 bytes. An element's position is its row and column as one 8-bit number. Interleaving the first
    /// half of the rows with the second one rotates this number by one bit; after four times, row and column are
    /// swapped.
    ///
    /// # Safety
    /// The processor has AVX2. 16 rows of 16 bytes can be read at `from` and written at `to`.
    #[target_feature(enable = "avx2")]
    unsafe fn tile_bytes(from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize) {
        // SAFETY: the function's contract.
        unsafe {
            let mut r: [__m128i; 16] = std::array::from_fn(|i| _mm_loadu_si128(from.add(i * from_stride).cast()));
            for _ in 0..4 {
                let mut next = r;
                for i in 0..8 {
                    next[2 * i] = _mm_unpacklo_epi8(r[i], r[i + 8]);
                    next[2 * i + 1] = _mm_unpackhi_epi8(r[i], r[i + 8]);
                }
                r = next;
            }
            for (j, row) in r.into_iter().enumerate() {
                _mm_storeu_si128(to.add(j * to_stride).cast(), row);
            }
        }
    }

    /// Transposes 16×16 elements: first pairs, then fours, within 128-bit lanes; then the lanes themselves.
    ///
    /// # Safety
    /// The processor has AVX-512F. 16 rows of 16 elements can be read at `from` and written at `to`.
    #[target_feature(enable = "avx512f")]
    unsafe fn tile16(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the function's contract.
        unsafe {
            let r: [__m512; 16] = std::array::from_fn(|i| _mm512_loadu_ps(from.add(i * from_stride)));
            let mut fours = [_mm512_setzero_ps(); 16];
            for q in 0..4 {
                let [a, b, c, d] = [r[4 * q], r[4 * q + 1], r[4 * q + 2], r[4 * q + 3]];
                let (low, high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (low2, high2) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                let pairs = |x, y| (_mm512_castps_pd(x), _mm512_castps_pd(y));
                let (x, y) = pairs(low, low2);
                fours[q] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                fours[4 + q] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
                let (x, y) = pairs(high, high2);
                fours[8 + q] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                fours[12 + q] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
            }
            // fours[4·j + q], lane l: column 4·l + j of rows 4·q .. 4·q + 4.
            for j in 0..4 {
                let [a, b, c, d] = [fours[4 * j], fours[4 * j + 1], fours[4 * j + 2], fours[4 * j + 3]];
                let (even, odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xDD>(a, b));
                let (even2, odd2) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xDD>(c, d));
                _mm512_storeu_ps(to.add(j * to_stride), _mm512_shuffle_f32x4::<0x88>(even, even2));
                _mm512_storeu_ps(to.add((4 + j) * to_stride), _mm512_shuffle_f32x4::<0x88>(odd, odd2));
                _mm512_storeu_ps(to.add((8 + j) * to_stride), _mm512_shuffle_f32x4::<0xDD>(even, even2));
                _mm512_storeu_ps(to.add((12 + j) * to_stride), _mm512_shuffle_f32x4::<0xDD>(odd, odd2));
            }
        }
    }

    /// Transposes 8×8 elements: first pairs, then fours, within 128-bit lanes; then the lanes themselves.
    ///
    /// # Safety
    /// The processor has AVX2. 8 rows of 8 elements can be read at `from` and written at `to`.
    #[target_feature(enable = "avx2")]
    unsafe fn tile8(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the function's contract.
        unsafe {
            let r: [__m256; 8] = std::array::from_fn(|i| _mm256_loadu_ps(from.add(i * from_stride)));
            let mut fours = [_mm256_setzero_ps(); 8];
            for q in 0..2 {
                let [a, b, c, d] = [r[4 * q], r[4 * q + 1], r[4 * q + 2], r[4 * q + 3]];
                let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (low2, high2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                fours[q] = _mm256_shuffle_ps::<0x44>(low, low2);
                fours[2 + q] = _mm256_shuffle_ps::<0xEE>(low, low2);
                fours[4 + q] = _mm256_shuffle_ps::<0x44>(high, high2);
                fours[6 + q] = _mm256_shuffle_ps::<0xEE>(high, high2);
            }
            // fours[2·j + q], lane l: column 4·l + j of rows 4·q .. 4·q + 4.
            for j in 0..4 {
                let (a, b) = (fours[2 * j], fours[2 * j + 1]);
                _mm256_storeu_ps(to.add(j * to_stride), _mm256_permute2f128_ps::<0x20>(a, b));
                _mm256_storeu_ps(to.add((4 + j) * to_stride), _mm256_permute2f128_ps::<0x31>(a, b));
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::{tiled, Plane};
    use crate::isa::Isa;

    /// Transposes in tiles. Returns `false` if none fits. The caller has checked that the plane is inside both slices.
    pub fn transpose(source: &[f32], out: &mut [f32], plane: Plane, isa: Isa) -> bool {
        let (from, to) = (source.as_ptr(), out.as_mut_ptr());
        let fits = isa != Isa::SCALAR && plane.rows.min(plane.columns) >= 8;
        if fits {
            tiled::<8>(plane, |row, column| {
                let (i, j) = (column * plane.from + row, row * plane.to + column);
                // SAFETY: the tile is inside the plane, and the plane is inside both slices.
                unsafe { crate::vector::transpose::<8>(from.add(i), plane.from, to.add(j), plane.to) }
            });
        }
        fits
    }

    /// [`transpose`] for bytes. Also supports three columns to contiguous rows, as in RGB images.
    pub fn transpose_bytes(source: &[u8], out: &mut [u8], plane: Plane, isa: Isa) -> bool {
        let (from, to) = (source.as_ptr(), out.as_mut_ptr());
        match (plane.columns, plane.to) {
            _ if isa == Isa::SCALAR || plane.rows < 16 => return false,
            (16.., _) => tiled::<16>(plane, |row, column| {
                let (i, j) = (column * plane.from + row, row * plane.to + column);
                // SAFETY: the tile is inside the plane, and the plane is inside both slices.
                unsafe { tile_bytes(from.add(i), plane.from, to.add(j), plane.to) }
            }),
            (3, 3) => {
                for row in (0..plane.rows).step_by(16).map(|row| row.min(plane.rows - 16)) {
                    // SAFETY: as above, for sixteen rows.
                    unsafe {
                        let column = |i: usize| vld1q_u8(from.add(i * plane.from + row));
                        vst3q_u8(to.add(3 * row), uint8x16x3_t(column(0), column(1), column(2)));
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Transposes 16×16 bytes, as on x86: each round interleaves the first half of the rows with the second one.
    ///
    /// # Safety
    /// 16 rows of 16 bytes can be read at `from` and written at `to`.
    unsafe fn tile_bytes(from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize) {
        // SAFETY: the function's contract.
        unsafe {
            let mut rows: [uint8x16_t; 16] = std::array::from_fn(|i| vld1q_u8(from.add(i * from_stride)));
            for _ in 0..4 {
                let zipped = |i: usize| {
                    let (a, b) = (rows[i / 2], rows[i / 2 + 8]);
                    if i % 2 == 0 {
                        vzip1q_u8(a, b)
                    } else {
                        vzip2q_u8(a, b)
                    }
                };
                rows = std::array::from_fn(zipped);
            }
            for (j, row) in rows.into_iter().enumerate() {
                vst1q_u8(to.add(j * to_stride), row);
            }
        }
    }
}
