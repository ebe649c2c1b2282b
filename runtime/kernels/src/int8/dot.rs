//! The instructions that products of bytes are summed with.

use super::finish::Finish;
use crate::isa::Isa;

/// The instructions that products of bytes are summed with. None saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    /// Portable Rust.
    Scalar,
    /// Bytes widened to 16 bits, multiplied and added in pairs.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Four products of bytes a lane, and their sum, in one instruction.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

impl Dots {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Dots::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Dots::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Dots::Avx512Vnni => "AVX-512 VNNI",
        }
    }

    /// The best that processors of a level have, and this one.
    #[cfg(target_arch = "x86_64")]
    pub fn of(isa: Isa) -> Dots {
        match isa.min(Isa::widest()) {
            Isa::Avx512 if std::arch::is_x86_feature_detected!("avx512vnni") => Dots::Avx512Vnni,
            Isa::Avx512 | Isa::Avx2 => Dots::Avx2,
            Isa::Scalar => Dots::Scalar,
        }
    }

    /// The best that processors of a level have, and this one.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn of(_: Isa) -> Dots {
        Dots::Scalar
    }
}

/// Sums over a row of four bytes at a time, for a vector of columns.
///
/// Code that is generic over it is `#[inline(always)]` down from a function with the instruction set's `#[target_feature]`.
pub(super) trait Dot {
    /// The columns of a vector.
    const LANES: usize;
    /// A sum a column.
    type Sums: Copy;
    /// Four unsigned bytes, for every column.
    type Left: Copy;
    /// Four signed bytes a column.
    type Right: Copy;

    /// No products.
    fn zero() -> Self::Sums;

    /// # Safety
    /// Four bytes can be read.
    unsafe fn left(from: *const u8) -> Self::Left;

    /// # Safety
    /// `4 · LANES` bytes can be read.
    unsafe fn right(from: *const i8) -> Self::Right;

    /// The sums and four more products.
    fn add(sums: Self::Sums, left: Self::Left, right: Self::Right) -> Self::Sums;

    /// Finishes `count` sums: see [`Finish::write`].
    ///
    /// # Safety
    /// As for [`Finish::write`].
    unsafe fn finish(sums: Self::Sums, finish: &Finish, column: usize, row_sum: i32, offset: usize, count: usize);

    /// Finishes the first `count` sums of `V` vectors.
    ///
    /// # Safety
    /// As for [`Finish::write`].
    #[inline(always)]
    unsafe fn finish_row<const V: usize>(
        sums: &[Self::Sums; V],
        finish: &Finish,
        column: usize,
        row_sum: i32,
        offset: usize,
        count: usize,
    ) {
        for (v, &sums) in sums.iter().enumerate() {
            let first = v * Self::LANES;
            let left = count.saturating_sub(first).min(Self::LANES);
            // SAFETY: the caller's promise.
            unsafe { Self::finish(sums, finish, column + first, row_sum, offset + first, left) };
        }
    }
}

/// [`Dots::Scalar`]
pub(super) struct Scalar;

impl Dot for Scalar {
    const LANES: usize = 8;
    type Sums = [i32; 8];
    type Left = [u8; 4];
    type Right = [[i8; 4]; 8];

    #[inline(always)]
    fn zero() -> [i32; 8] {
        [0; 8]
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
    unsafe fn finish(sums: [i32; 8], finish: &Finish, column: usize, row_sum: i32, offset: usize, count: usize) {
        // SAFETY: the caller's promise.
        unsafe { finish.write(&sums, column, row_sum, offset, count) }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512Vnni};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Dot, Finish};
    use crate::int8::finish::Sink;
    use crate::int8::wide;

    /// [`Dots::Avx2`](super::Dots::Avx2)
    pub struct Avx2;

    impl Dot for Avx2 {
        const LANES: usize = 8;
        /// Two sums a column, of four columns each, which are added in the end.
        type Sums = [__m256i; 2];
        type Left = __m256i;
        type Right = [__m256i; 2];

        #[inline(always)]
        fn zero() -> [__m256i; 2] {
            // SAFETY: the trait's contract: the caller has the instruction set.
            unsafe { [_mm256_setzero_si256(); 2] }
        }

        #[inline(always)]
        unsafe fn left(from: *const u8) -> __m256i {
            // SAFETY: as above, and the caller's promise.
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
            // SAFETY: as in `zero`. A pair of products is at most 2 · 255 · 128.
            unsafe {
                let products = [_mm256_madd_epi16(left, right[0]), _mm256_madd_epi16(left, right[1])];
                [_mm256_add_epi32(sums[0], products[0]), _mm256_add_epi32(sums[1], products[1])]
            }
        }

        #[inline(always)]
        unsafe fn finish(
            sums: [__m256i; 2],
            finish: &Finish,
            column: usize,
            row_sum: i32,
            offset: usize,
            count: usize,
        ) {
            let mut lanes = [0i32; 8];
            // SAFETY: as in `zero`, and the caller's promise.
            unsafe {
                let total = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(sums[0], sums[1]));
                _mm256_storeu_si256(lanes.as_mut_ptr().cast(), total);
                finish.write(&lanes, column, row_sum, offset, count);
            }
        }
    }

    /// [`Dots::Avx512Vnni`](super::Dots::Avx512Vnni)
    pub struct Avx512Vnni;

    impl Dot for Avx512Vnni {
        const LANES: usize = 16;
        type Sums = __m512i;
        type Left = __m512i;
        type Right = __m512i;

        #[inline(always)]
        fn zero() -> __m512i {
            // SAFETY: the trait's contract: the caller has the instruction set.
            unsafe { _mm512_setzero_si512() }
        }

        #[inline(always)]
        unsafe fn left(from: *const u8) -> __m512i {
            // SAFETY: as above, and the caller's promise.
            unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
        }

        #[inline(always)]
        unsafe fn right(from: *const i8) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_loadu_si512(from.cast()) }
        }

        #[inline(always)]
        fn add(sums: __m512i, left: __m512i, right: __m512i) -> __m512i {
            // SAFETY: as in `zero`.
            unsafe { _mm512_dpbusd_epi32(sums, left, right) }
        }

        #[inline(always)]
        unsafe fn finish(sums: __m512i, finish: &Finish, column: usize, row_sum: i32, offset: usize, count: usize) {
            let mut lanes = [0i32; 16];
            // SAFETY: as in `zero`, and the caller's promise.
            unsafe {
                _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sums);
                finish.write(&lanes, column, row_sum, offset, count);
            }
        }

        #[inline(always)]
        unsafe fn finish_row<const V: usize>(
            sums: &[__m512i; V],
            finish: &Finish,
            column: usize,
            row_sum: i32,
            offset: usize,
            count: usize,
        ) {
            // SAFETY: as in `zero`, and the caller's promise.
            unsafe {
                if let Sink::Codes(to, by) = &finish.sink {
                    let codes = wide::in_order(wide::codes(sums, finish, by, column, row_sum));
                    return wide::store(codes, to.add(offset), count);
                }
                for (v, &sums) in sums.iter().enumerate() {
                    let left = count.saturating_sub(16 * v).min(16);
                    Self::finish(sums, finish, column + 16 * v, row_sum, offset + 16 * v, left);
                }
            }
        }
    }
}
