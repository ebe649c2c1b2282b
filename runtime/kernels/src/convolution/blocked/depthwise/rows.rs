//! Rows of depthwise convolutions. A tile reads each pixel of the input once for all of its outputs. Tiles at an edge
//! read zeros outside the image. If the window is dilated along the columns, the pixels of a tile have the same
//! distance.

use std::marker::PhantomData;

use crate::blocking::Blocking;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;
use crate::vector::Vector;

/// The operands: some rows of one block of channels, `[columns, B]`, of an image `[height, width, B]`.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub x: *const f32,
    pub input: [usize; 2],
    /// The row and column of the first output's first tap.
    pub from: [isize; 2],
    /// The distance between the first taps of successive rows of outputs.
    pub stride: usize,
    /// The distance between rows of taps.
    pub dilation: usize,
    /// Rows of taps.
    pub taps: usize,
    /// `[kh, kw, B]`
    pub w: *const f32,
    /// One value per lane.
    pub bias: *const f32,
    /// The smallest and the largest output.
    pub limits: [f32; 2],
    pub out: *mut f32,
    /// The rows of outputs: a multiple of those that the kernel computes at a time.
    pub rows: usize,
    pub columns: usize,
    /// The distance between columns of taps; 1 if the stride is not 1.
    pub apart: usize,
}

/// Computes rows in tiles of a fixed number of pixels. The last tile overlaps the one before.
///
/// # Safety
/// The pointers and sizes describe valid memory for the image, the weights, the bias and the output rows. Nothing else
/// writes the output, which has at least one tile of pixels for each of the `apart` interleaved sets of columns. The
/// processor has the instruction set, and the kernel is compiled for this window.
pub(super) type Kernel = unsafe fn(&Rows);

/// Indexed by number of rows - 1, then by number of pixels - 1.
type Table = [&'static [Kernel]; 2];

/// Returns the kernels for windows of `columns` adjacent columns with stride `stride`. Kernels for two rows at a time
/// support square windows with vertical stride 1 and adjacent rows.
pub(super) fn table(blocking: Blocking, columns: usize, stride: usize) -> Option<Table> {
    let tables: &[([usize; 2], Table)] = match blocking.isa().level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::AVX512,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if blocking.block() == 8 => x86::Avx2::<8>::TABLE,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::Avx2::<16>::TABLE,
        #[cfg(target_arch = "aarch64")]
        Level::Neon if blocking.block() == 8 => Neon::<8>::TABLE,
        #[cfg(target_arch = "aarch64")]
        Level::Neon => Neon::<16>::TABLE,
        _ => &[],
    };
    tables.iter().find(|(window, _)| *window == [columns, stride]).map(|(_, table)| *table)
}

impl Rows {
    /// The pixel in column `from` of the row that row `i` of the taps reads for row `y`; `None` if this row is outside
    /// the image. The column may be outside.
    #[inline(always)]
    fn read_by<const BLOCK: usize>(&self, y: usize, i: usize, from: isize) -> Option<*const f32> {
        let [height, width] = self.input;
        let row = self.from[0] + (y * self.stride + i * self.dilation) as isize;
        let is_inside = (0..height as isize).contains(&row);
        is_inside.then(|| self.x.wrapping_offset((row * width as isize + from) * BLOCK as isize))
    }
}

/// Returns the kernel whose tiles cover `columns` columns with the least overlap.
pub(super) fn kernel(kernels: &[Kernel], columns: usize) -> Option<Kernel> {
    let tiles = columns.div_ceil(kernels.len().max(1));
    kernels.get(columns.div_ceil(tiles.max(1)).checked_sub(1)?).copied()
}

/// The maximum number of pixels that a tile reads in a row.
const SPAN: usize = 16;

/// The sizes of a [`Kernel`].
struct Sizes<V, const BLOCK: usize, const COLUMNS: usize, const STRIDE: usize, const ROWS: usize, const PIXELS: usize>(
    PhantomData<V>,
);

impl<
        V: Vector,
        const BLOCK: usize,
        const COLUMNS: usize,
        const STRIDE: usize,
        const ROWS: usize,
        const PIXELS: usize,
    > Sizes<V, BLOCK, COLUMNS, STRIDE, ROWS, PIXELS>
{
    /// See [`Kernel`].
    #[inline(always)]
    unsafe fn rows(t: &Rows) {
        let reach = (((PIXELS - 1) * STRIDE + COLUMNS - 1) * t.apart) as isize;
        for start in 0..t.apart {
            // The last tile starts at the last column where a whole tile fits.
            let last = start + ((t.columns - start).div_ceil(t.apart) - PIXELS) * t.apart;
            for y in (0..t.rows).step_by(ROWS) {
                let mut first = start;
                loop {
                    let from = t.from[1] + (first * STRIDE) as isize;
                    // SAFETY: guaranteed by the caller. If the span is inside the row, so are all reads.
                    unsafe {
                        if from >= 0 && from + reach < t.input[1] as isize {
                            Self::tile::<false>(t, y, first, from);
                        } else {
                            Self::tile::<true>(t, y, first, from);
                        }
                    }
                    if first == last {
                        break;
                    }
                    first = (first + PIXELS * t.apart).min(last);
                }
            }
        }
    }

    /// Computes the pixels from `first` on, of the rows from `y` on. Their first taps are in column `from`, which may be
    /// outside the image if `EDGE` is set.
    #[inline(always)]
    unsafe fn tile<const EDGE: bool>(t: &Rows, y: usize, first: usize, from: isize) {
        let taps = if ROWS == 2 { COLUMNS + 1 } else { t.taps };
        for lane in (0..BLOCK).step_by(V::LANES) {
            let mut sums = [[V::splat(0.0); PIXELS]; ROWS];
            for i in 0..taps {
                let Some(x) = t.read_by::<BLOCK>(y, i, from) else { continue };
                // SAFETY: guaranteed by the caller: the row and the columns read are inside the image, and the weights have
                // `taps` rows.
                unsafe {
                    let span = Self::span::<EDGE>(x.wrapping_add(lane), from, t.input[1], t.apart);
                    for (r, sums) in sums.iter_mut().enumerate() {
                        if ROWS == 1 || (r <= i && i < r + COLUMNS) {
                            let w = t.w.add((i - r) * COLUMNS * BLOCK + lane);
                            Self::add(&span, w, sums);
                        }
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                // SAFETY: guaranteed by the caller.
                unsafe { Self::write(t, sums, ((y + r) * t.columns + first) * BLOCK + lane, lane) };
            }
        }
    }

    /// Loads the pixels that one row of taps reads, each once.
    #[inline(always)]
    unsafe fn span<const EDGE: bool>(x: *const f32, from: isize, width: usize, apart: usize) -> [V; SPAN] {
        let mut span = [V::splat(0.0); SPAN];
        for (p, pixel) in span.iter_mut().enumerate().take((PIXELS - 1) * STRIDE + COLUMNS) {
            let x = x.wrapping_add(p * apart * BLOCK);
            let is_inside = !EDGE || (0..width as isize).contains(&(from + (p * apart) as isize));
            // SAFETY: guaranteed by the caller. Pixels outside the image are not read.
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

    /// Adds the products of one row of taps.
    #[inline(always)]
    unsafe fn add(span: &[V; SPAN], w: *const f32, sums: &mut [V; PIXELS]) {
        for j in 0..COLUMNS {
            // SAFETY: guaranteed by the caller.
            let weight = unsafe { V::load(w.add(j * BLOCK)) };
            for (p, sum) in sums.iter_mut().enumerate() {
                *sum = span[p * STRIDE + j].mul_add(weight, *sum);
            }
        }
    }

    /// Stores some pixels of a row.
    #[inline(always)]
    unsafe fn write(t: &Rows, sums: &[V; PIXELS], offset: usize, lane: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let bias = V::load(t.bias.add(lane));
            for (p, sum) in sums.iter().enumerate() {
                (bias + *sum).within(t.limits).store(t.out.add(offset + p * t.apart * BLOCK));
            }
        }
    }
}

/// A table of [`Kernel`]s by number of pixels, for a size of blocks, a number of columns of taps, a stride and a number of
/// rows.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! kernels {
    ($function:ident $block:tt $columns:literal $stride:literal $rows:literal: $($pixels:literal)*) => {
        &[$($function::<$block, $columns, $stride, $rows, $pixels> as Kernel),*] as &[Kernel]
    };
}

/// Declares the function that computes rows with one instruction set's vectors. It has the sizes as parameters.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! level {
    ($name:ident $V:ty $(: $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<
            const BLOCK: usize,
            const COLUMNS: usize,
            const STRIDE: usize,
            const ROWS: usize,
            const PIXELS: usize,
        >(
            t: &Rows,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { Sizes::<$V, BLOCK, COLUMNS, STRIDE, ROWS, PIXELS>::rows(t) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Kernel, Rows, Sizes, Table};
    use crate::vector::{F32x16, F32x8};

    level!(avx512 F32x16: "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c");
    level!(avx2 F32x8: "avx2,fma,f16c");

    /// For 32 registers.
    pub(super) const AVX512: &[([usize; 2], Table)] = &[
        ([3, 1], [kernels!(avx512 16 3 1 1: 1 2 3 4 5 6 7), kernels!(avx512 16 3 1 2: 1 2 3 4 5 6 7)]),
        ([5, 1], [kernels!(avx512 16 5 1 1: 1 2 3 4 5 6 7), kernels!(avx512 16 5 1 2: 1 2 3 4 5 6 7)]),
        ([7, 1], [kernels!(avx512 16 7 1 1: 1 2 3 4 5 6 7 8), &[]]),
        ([3, 2], [kernels!(avx512 16 3 2 1: 1 2 3 4 5 6 7), &[]]),
        ([5, 2], [kernels!(avx512 16 5 2 1: 1 2 3 4 5 6), &[]]),
    ];

    /// For 16 registers.
    pub(super) struct Avx2<const BLOCK: usize>;

    impl<const BLOCK: usize> Avx2<BLOCK> {
        pub const TABLE: &'static [([usize; 2], Table)] = &[
            ([3, 1], [kernels!(avx2 BLOCK 3 1 1: 1 2 3 4 5 6), kernels!(avx2 BLOCK 3 1 2: 1 2 3 4)]),
            ([5, 1], [kernels!(avx2 BLOCK 5 1 1: 1 2 3 4 5), &[]]),
        ];
    }
}

#[cfg(target_arch = "aarch64")]
level!(neon crate::vector::F32x4x2);

/// The tiles for 32 registers. A register holds half of a vector.
#[cfg(target_arch = "aarch64")]
struct Neon<const BLOCK: usize>;

#[cfg(target_arch = "aarch64")]
impl<const BLOCK: usize> Neon<BLOCK> {
    const TABLE: &'static [([usize; 2], Table)] = &[
        ([3, 1], [kernels!(neon BLOCK 3 1 1: 1 2 3 4 5 6), kernels!(neon BLOCK 3 1 2: 1 2 3 4)]),
        ([5, 1], [kernels!(neon BLOCK 5 1 1: 1 2 3 4 5), &[]]),
    ];
}
