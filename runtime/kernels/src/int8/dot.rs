//! Dot products of four bytes of a row at a time, and their sums.

use super::finish::Finish;
use super::operands::Tile;

/// Sums the products of a row with a vector of columns, four bytes of the row at a time.
///
/// Generic code is `#[inline(always)]` down from a function with the instruction set's `#[target_feature]`.
pub(super) trait Dot {
    /// The columns per vector.
    const LANES: usize;
    /// The bytes of a panel that a vector of columns reads at a time.
    const BYTES: usize = 4 * Self::LANES;
    /// One sum per column.
    type Sums: Copy;
    /// Four unsigned bytes or two 16-bit numbers, for all columns.
    type Left: Copy;
    /// As many signed codes per column.
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
    /// `BYTES` bytes can be read.
    unsafe fn right(from: *const i8) -> Self::Right;

    /// Adds the products of each column.
    fn add(sums: Self::Sums, left: Self::Left, right: Self::Right) -> Self::Sums;

    /// Converts and stores the sums of a tile; see [`Finish::write`].
    ///
    /// # Safety
    /// As for [`Finish::write`].
    unsafe fn finish<const R: usize, const V: usize>(sums: &[[Self::Sums; V]; R], tile: &Tile);
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
    unsafe fn finish<const R: usize, const V: usize>(sums: &[[[i32; 8]; V]; R], tile: &Tile) {
        for (row, sums) in sums.iter().enumerate() {
            for (v, sums) in sums.iter().enumerate() {
                let (first, left) = (v * 8, tile.columns.saturating_sub(v * 8).min(8));
                // SAFETY: guaranteed by the caller.
                unsafe { tile.finish.write(sums, tile.column + first, tile.row_sum(row), tile.at(row) + first, left) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Pairs, Registers, Vnni, Words};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::marker::PhantomData;

    use super::{Dot, Finish, Tile};
    use crate::int8::rows;
    use crate::int8::vector::Vector;

    /// How registers of bytes are multiplied and summed.
    pub trait Multiply<R: Vector> {
        /// Adds to each lane its four products of an unsigned and a signed byte.
        fn dot(sums: R, unsigned: R, signed: R) -> R;
    }

    /// In one instruction; see [`Vector::dot`].
    pub struct Vnni;

    impl<R: Vector> Multiply<R> for Vnni {
        #[inline(always)]
        fn dot(sums: R, unsigned: R, signed: R) -> R {
            sums.dot(unsigned, signed)
        }
    }

    /// In pairs, for AVX2. The weights are split so that no pair of products saturates; see
    /// [`Remainder`](crate::int8::remainder::Remainder).
    pub struct Pairs;

    impl Multiply<__m256i> for Pairs {
        #[inline(always)]
        fn dot(sums: __m256i, unsigned: __m256i, signed: __m256i) -> __m256i {
            // SAFETY: by the contract of `Dot`, the caller has the instruction set.
            unsafe {
                let pairs = _mm256_maddubs_epi16(unsigned, signed);
                _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            }
        }
    }

    /// One sum per lane of a register.
    pub struct Registers<R, M>(PhantomData<(R, M)>);

    impl<R: Vector, M: Multiply<R>> Dot for Registers<R, M> {
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
            M::dot(sums, left, right)
        }

        #[inline(always)]
        unsafe fn finish<const H: usize, const V: usize>(sums: &[[R; V]; H], tile: &Tile) {
            // SAFETY: guaranteed by the caller.
            unsafe { rows::write_tile(sums, tile) }
        }
    }

    /// Two 16-bit numbers of a row, and two weights per column that are widened to 16 bits. Rows and sums are as for bytes.
    pub struct Words;

    /// See [`Words`].
    type Bytes = Registers<__m256i, Pairs>;

    impl Dot for Words {
        const LANES: usize = Bytes::LANES;
        const BYTES: usize = 2 * Bytes::LANES;
        type Sums = __m256i;
        type Left = __m256i;
        type Right = __m256i;

        #[inline(always)]
        unsafe fn start(finish: &Finish, column: usize) -> __m256i {
            // SAFETY: guaranteed by the caller.
            unsafe { Bytes::start(finish, column) }
        }

        #[inline(always)]
        unsafe fn left(from: *const u8) -> __m256i {
            // SAFETY: as above.
            unsafe { Bytes::left(from) }
        }

        #[inline(always)]
        unsafe fn right(from: *const i8) -> __m256i {
            // SAFETY: as above.
            unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
        }

        #[inline(always)]
        fn add(sums: __m256i, left: __m256i, right: __m256i) -> __m256i {
            // SAFETY: by the contract of `Dot`, the caller has the instruction set.
            unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(left, right)) }
        }

        #[inline(always)]
        unsafe fn finish<const H: usize, const V: usize>(sums: &[[__m256i; V]; H], tile: &Tile) {
            // SAFETY: guaranteed by the caller.
            unsafe { Bytes::finish(sums, tile) }
        }
    }
}
