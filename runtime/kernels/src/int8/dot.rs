//! Dot products of four bytes at a time, and their sums.

use super::finish::Finish;

/// Sums the products of a row with a vector of columns, four bytes at a time.
///
/// Generic code is `#[inline(always)]` down from a function with the instruction set's `#[target_feature]`.
pub(super) trait Dot {
    /// The columns per vector.
    const LANES: usize;
    /// One sum per column.
    type Sums: Copy;
    /// Four unsigned bytes, for all columns.
    type Left: Copy;
    /// Four signed bytes per column.
    type Right: Copy;

    /// Loads the start values of columns `column ..`.
    ///
    /// # Safety
    /// `column + LANES` is at most the number of padded columns.
    unsafe fn start(finish: &Finish, column: usize) -> Self::Sums;

    /// # Safety
    /// Four bytes can be read.
    unsafe fn left(from: *const u8) -> Self::Left;

    /// # Safety
    /// `4 · LANES` bytes can be read.
    unsafe fn right(from: *const i8) -> Self::Right;

    /// Adds four products per column.
    fn add(sums: Self::Sums, left: Self::Left, right: Self::Right) -> Self::Sums;

    /// Converts and stores the first `count` sums of `V` vectors, for columns `column ..`; see [`Finish::write`].
    ///
    /// # Safety
    /// As for [`Finish::write`].
    unsafe fn finish<const V: usize>(
        sums: &[Self::Sums; V],
        finish: &Finish,
        column: usize,
        row_sum: i32,
        offset: usize,
        count: usize,
    );
}

/// [`Instructions::Scalar`](super::instructions::Instructions::Scalar)
pub(super) struct Scalar;

impl Dot for Scalar {
    const LANES: usize = 8;
    type Sums = [i32; 8];
    type Left = [u8; 4];
    type Right = [[i8; 4]; 8];

    #[inline(always)]
    unsafe fn start(finish: &Finish, column: usize) -> [i32; 8] {
        // SAFETY: guaranteed by the caller.
        unsafe { finish.starts(column) }
    }

    #[inline(always)]
    unsafe fn left(from: *const u8) -> [u8; 4] {
        // SAFETY: the caller's promise; bytes have no alignment.
        unsafe { *from.cast() }
    }

    #[inline(always)]
    unsafe fn right(from: *const i8) -> [[i8; 4]; 8] {
        // SAFETY: as above.
        unsafe { *from.cast() }
    }

    #[inline(always)]
    fn add(mut sums: [i32; 8], left: [u8; 4], right: [[i8; 4]; 8]) -> [i32; 8] {
        for (sum, right) in sums.iter_mut().zip(right) {
            let products = left.iter().zip(right).map(|(&left, right)| i32::from(left) * i32::from(right));
            *sum = sum.wrapping_add(products.sum());
        }
        sums
    }

    #[inline(always)]
    unsafe fn finish<const V: usize>(
        sums: &[[i32; 8]; V],
        finish: &Finish,
        column: usize,
        row_sum: i32,
        offset: usize,
        count: usize,
    ) {
        for (v, sums) in sums.iter().enumerate() {
            let (first, left) = (v * 8, count.saturating_sub(v * 8).min(8));
            // SAFETY: guaranteed by the caller.
            unsafe { finish.write(sums, column + first, row_sum, offset + first, left) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Vnni};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::marker::PhantomData;

    use super::{Dot, Finish};
    use crate::int8::rows;
    use crate::int8::vector::Vector;

    /// [`Instructions::Avx2`](crate::int8::instructions::Instructions::Avx2)
    pub struct Avx2;

    impl Dot for Avx2 {
        const LANES: usize = 8;
        /// Two sums per column, for four columns each; they are added at the end.
        type Sums = [__m256i; 2];
        type Left = __m256i;
        type Right = [__m256i; 2];

        #[inline(always)]
        unsafe fn start(finish: &Finish, column: usize) -> [__m256i; 2] {
            // SAFETY: by the trait's contract, the caller has the instruction set; the caller guarantees the rest.
            unsafe {
                let from = finish.start.as_ptr().add(column).cast::<__m128i>();
                [_mm256_cvtepu32_epi64(_mm_loadu_si128(from)), _mm256_cvtepu32_epi64(_mm_loadu_si128(from.add(1)))]
            }
        }

        #[inline(always)]
        unsafe fn left(from: *const u8) -> __m256i {
            // SAFETY: as above.
            unsafe { _mm256_cvtepu8_epi16(_mm_set1_epi32(from.cast::<i32>().read_unaligned())) }
        }

        #[inline(always)]
        unsafe fn right(from: *const i8) -> [__m256i; 2] {
            // SAFETY: as above.
            unsafe {
                let halves = [_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(16).cast())];
                [_mm256_cvtepi8_epi16(halves[0]), _mm256_cvtepi8_epi16(halves[1])]
            }
        }

        #[inline(always)]
        fn add(sums: [__m256i; 2], left: __m256i, right: [__m256i; 2]) -> [__m256i; 2] {
            // SAFETY: as above. A pair of products is at most 2 · 255 · 128.
            unsafe {
                let products = [_mm256_madd_epi16(left, right[0]), _mm256_madd_epi16(left, right[1])];
                [_mm256_add_epi32(sums[0], products[0]), _mm256_add_epi32(sums[1], products[1])]
            }
        }

        #[inline(always)]
        unsafe fn finish<const V: usize>(
            sums: &[[__m256i; 2]; V],
            finish: &Finish,
            column: usize,
            row_sum: i32,
            offset: usize,
            count: usize,
        ) {
            // SAFETY: as above.
            unsafe {
                let mut totals = [_mm256_setzero_si256(); V];
                for (total, [a, b]) in totals.iter_mut().zip(sums) {
                    *total = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(*a, *b));
                }
                rows::write(&totals, finish, column, row_sum, offset, count);
            }
        }
    }

    /// VNNI, for both widths.
    pub struct Vnni<V>(PhantomData<V>);

    impl<R: Vector> Dot for Vnni<R> {
        const LANES: usize = R::LANES;
        type Sums = R;
        type Left = R;
        type Right = R;

        #[inline(always)]
        unsafe fn start(finish: &Finish, column: usize) -> R {
            // SAFETY: guaranteed by the caller.
            unsafe { R::load(finish.start.as_ptr().add(column).cast()) }
        }

        #[inline(always)]
        unsafe fn left(from: *const u8) -> R {
            // SAFETY: as above.
            R::splat(unsafe { from.cast::<i32>().read_unaligned() })
        }

        #[inline(always)]
        unsafe fn right(from: *const i8) -> R {
            // SAFETY: as above.
            unsafe { R::load(from.cast()) }
        }

        #[inline(always)]
        fn add(sums: R, left: R, right: R) -> R {
            sums.dot(left, right)
        }

        #[inline(always)]
        unsafe fn finish<const V: usize>(
            sums: &[R; V],
            finish: &Finish,
            column: usize,
            row_sum: i32,
            offset: usize,
            count: usize,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { rows::write(sums, finish, column, row_sum, offset, count) }
        }
    }
}
