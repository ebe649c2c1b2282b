//! Rows of depthwise convolutions: each pixel of the input is read once for all of the outputs of a tile that it is
//! part of. Tiles at an edge read zeros for what lies outside of the image. Where the window's columns are some pixels
//! apart, so are the pixels of a tile.

use crate::blocked::BLOCK;
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;
use crate::vector::Vector;

/// The operands: one or two rows of one block of channels, `[columns, 16]`, of an image `[height, width, 16]`.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub x: *const f32,
    pub input: [usize; 2],
    /// Where the first output's first tap lies.
    pub from: [isize; 2],
    /// From one row of taps to the next.
    pub dilation: usize,
    /// Rows of taps.
    pub taps: usize,
    /// `[kh, kw, 16]`
    pub w: *const f32,
    /// One value a lane.
    pub bias: *const f32,
    /// What outputs are no less and no more than.
    pub limits: [f32; 2],
    pub out: *mut f32,
    pub columns: usize,
    /// From one column of taps to the next; 1 where outputs are not one pixel of the input apart.
    pub apart: usize,
}

/// Rows in tiles of a fixed number of pixels; the last overlaps the one before.
///
/// # Safety
/// The image, the weights, the bias and the rows of the output are those that the fields describe, the output is written by
/// nobody else and has a tile's pixels for each pixel of `apart`, the processor has the instruction set, and the window
/// is the one that the kernel is for.
pub(super) type Kernel = unsafe fn(&Rows);

/// By number of rows less one and number of pixels less one.
type Table = [&'static [Kernel]; 2];

/// The kernels for windows of `columns` side by side, `stride` apart. Two rows at a time are for square windows whose rows
/// lie side by side too, one apart.
pub(super) fn table(isa: Isa, columns: usize, stride: usize) -> Option<Table> {
    let tables: &[([usize; 2], Table)] = match isa.level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::AVX512,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::AVX2,
        _ => &[],
    };
    tables.iter().find(|(window, _)| *window == [columns, stride]).map(|(_, table)| *table)
}

/// The kernel whose tiles cover so many columns with the least overlap.
pub(super) fn kernel(kernels: &[Kernel], columns: usize) -> Option<Kernel> {
    let tiles = columns.div_ceil(kernels.len().max(1));
    kernels.get(columns.div_ceil(tiles.max(1)).checked_sub(1)?).copied()
}

/// The largest span of pixels that a tile reads of a row.
const SPAN: usize = 16;

/// See [`Kernel`].
#[inline(always)]
unsafe fn rows<V: Vector, const COLUMNS: usize, const STRIDE: usize, const ROWS: usize, const PIXELS: usize>(t: &Rows) {
    let reach = (((PIXELS - 1) * STRIDE + COLUMNS - 1) * t.apart) as isize;
    for start in 0..t.apart {
        // The last tile begins with the last column from which a tile fits.
        let last = start + ((t.columns - start).div_ceil(t.apart) - PIXELS) * t.apart;
        let mut first = start;
        loop {
            let from = t.from[1] + (first * STRIDE) as isize;
            // SAFETY: the caller's promise; where the span is inside the row, so is what is read.
            unsafe {
                if from >= 0 && from + reach < t.input[1] as isize {
                    tile::<V, COLUMNS, STRIDE, ROWS, PIXELS, false>(t, first, from);
                } else {
                    tile::<V, COLUMNS, STRIDE, ROWS, PIXELS, true>(t, first, from);
                }
            }
            if first == last {
                break;
            }
            first = (first + PIXELS * t.apart).min(last);
        }
    }
}

/// The pixels from `first` on, whose first taps are in column `from`, which may be outside where it is an `EDGE`.
#[inline(always)]
unsafe fn tile<
    V: Vector,
    const COLUMNS: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const PIXELS: usize,
    const EDGE: bool,
>(
    t: &Rows,
    first: usize,
    from: isize,
) {
    let [height, width] = t.input;
    let taps = if ROWS == 2 { COLUMNS + 1 } else { t.taps };
    for lane in (0..BLOCK).step_by(V::LANES) {
        let mut sums = [[V::splat(0.0); PIXELS]; ROWS];
        for i in 0..taps {
            let y = t.from[0] + (i * t.dilation) as isize;
            if !(0..height as isize).contains(&y) {
                continue;
            }
            let x = t.x.wrapping_offset((y * width as isize + from) * BLOCK as isize).wrapping_add(lane);
            // SAFETY: the caller's promise: the row is inside, and so is what is read of it; the weights are `taps` rows.
            unsafe {
                let span = span::<V, COLUMNS, STRIDE, PIXELS, EDGE>(x, from, width, t.apart);
                for (r, sums) in sums.iter_mut().enumerate() {
                    if ROWS == 1 || (r <= i && i < r + COLUMNS) {
                        add::<V, COLUMNS, STRIDE, PIXELS>(&span, t.w.add((i - r) * COLUMNS * BLOCK + lane), sums);
                    }
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { write(t, sums, (r * t.columns + first) * BLOCK + lane, lane) };
        }
    }
}

/// The pixels that one row of taps reads, each once.
#[inline(always)]
unsafe fn span<V: Vector, const COLUMNS: usize, const STRIDE: usize, const PIXELS: usize, const EDGE: bool>(
    x: *const f32,
    from: isize,
    width: usize,
    apart: usize,
) -> [V; SPAN] {
    let mut span = [V::splat(0.0); SPAN];
    for (p, pixel) in span.iter_mut().enumerate().take((PIXELS - 1) * STRIDE + COLUMNS) {
        let x = x.wrapping_add(p * apart * BLOCK);
        let is_inside = !EDGE || (0..width as isize).contains(&(from + (p * apart) as isize));
        // SAFETY: the caller's promise; of a pixel outside, nothing is read.
        *pixel = unsafe {
            if EDGE {
                V::load_first(x, if is_inside { V::LANES } else { 0 })
            } else {
                V::load(x)
            }
        };
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

/// Writes some pixels of a row.
#[inline(always)]
unsafe fn write<V: Vector, const PIXELS: usize>(t: &Rows, sums: &[V; PIXELS], offset: usize, lane: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let bias = V::load(t.bias.add(lane));
        for (p, sum) in sums.iter().enumerate() {
            (bias + *sum).within(t.limits).store(t.out.add(offset + p * t.apart * BLOCK));
        }
    }
}

/// A table of [`Kernel`]s by number of pixels, for some columns of taps, a distance of pixels and a number of rows.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($function:ident $columns:literal $stride:literal $rows:literal: $($pixels:literal)*) => {
        &[$($function::<$columns, $stride, $rows, $pixels> as Kernel),*] as &[Kernel]
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{rows, Kernel, Rows, Table};
    use crate::vector::{F32x16, F32x8};

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
    unsafe fn avx512<const COLUMNS: usize, const STRIDE: usize, const ROWS: usize, const PIXELS: usize>(t: &Rows) {
        // SAFETY: the caller's promise.
        unsafe { rows::<F32x16, COLUMNS, STRIDE, ROWS, PIXELS>(t) }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn avx2<const COLUMNS: usize, const STRIDE: usize, const ROWS: usize, const PIXELS: usize>(t: &Rows) {
        // SAFETY: the caller's promise.
        unsafe { rows::<F32x8, COLUMNS, STRIDE, ROWS, PIXELS>(t) }
    }

    /// 32 registers.
    pub(super) const AVX512: &[([usize; 2], Table)] = &[
        ([3, 1], [kernels!(avx512 3 1 1: 1 2 3 4 5 6 7), kernels!(avx512 3 1 2: 1 2 3 4 5 6 7)]),
        ([5, 1], [kernels!(avx512 5 1 1: 1 2 3 4 5 6 7), kernels!(avx512 5 1 2: 1 2 3 4 5 6 7)]),
        ([7, 1], [kernels!(avx512 7 1 1: 1 2 3 4 5 6 7 8), &[]]),
        ([3, 2], [kernels!(avx512 3 2 1: 1 2 3 4 5 6 7), &[]]),
        ([5, 2], [kernels!(avx512 5 2 1: 1 2 3 4 5 6), &[]]),
    ];

    /// 16 registers.
    pub(super) const AVX2: &[([usize; 2], Table)] = &[
        ([3, 1], [kernels!(avx2 3 1 1: 1 2 3 4 5 6), kernels!(avx2 3 1 2: 1 2 3 4)]),
        ([5, 1], [kernels!(avx2 5 1 1: 1 2 3 4 5), &[]]),
    ];
}
