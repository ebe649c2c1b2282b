//! Words of 32 bits in registers, and the numbers of the codes in them.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "aarch64")]
use super::F32x4x2;
use super::Vector;
#[cfg(target_arch = "x86_64")]
use super::{F32x16, F32x8};

/// A vector with words of as many lanes. A word holds codes of 2, 4 or 8 bits. The lowest code is the first.
pub(crate) trait Words: Vector {
    /// One word per lane.
    type Words: Copy;

    /// # Safety
    /// `LANES` words can be read at `from`.
    unsafe fn load_words(from: *const u32) -> Self::Words;

    /// Removes the first code of each word: shifts the word right by `BITS`.
    fn next<const BITS: usize>(words: Self::Words) -> Self::Words;

    /// The table of [`numbers`](Words::numbers) for codes of `BITS` bits with this zero point.
    fn table<const BITS: usize>(zero: f32) -> Self;

    /// The first code of each word, minus the zero point of the table.
    fn numbers<const BITS: usize>(words: Self::Words, table: Self) -> Self;
}

impl Words for f32 {
    type Words = u32;

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe { *from }
    }

    #[inline(always)]
    fn next<const BITS: usize>(words: u32) -> u32 {
        words >> BITS
    }

    #[inline(always)]
    fn table<const BITS: usize>(zero: f32) -> f32 {
        zero
    }

    #[inline(always)]
    fn numbers<const BITS: usize>(words: u32, table: f32) -> f32 {
        (words & mask::<BITS>()) as f32 - table
    }
}

/// Its low `BITS` bits are set.
const fn mask<const BITS: usize>() -> u32 {
    (1 << BITS) - 1
}

// SAFETY of the intrinsics below: see `Vector`. The caller guarantees that memory accesses are valid.
#[cfg(target_arch = "x86_64")]
impl Words for F32x8 {
    type Words = __m256i;

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> __m256i {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    fn next<const BITS: usize>(words: __m256i) -> __m256i {
        unsafe {
            match BITS {
                2 => _mm256_srli_epi32::<2>(words),
                4 => _mm256_srli_epi32::<4>(words),
                _ => _mm256_srli_epi32::<8>(words),
            }
        }
    }

    #[inline(always)]
    fn table<const BITS: usize>(zero: f32) -> Self {
        F32x8::splat(zero)
    }

    #[inline(always)]
    fn numbers<const BITS: usize>(words: __m256i, table: Self) -> Self {
        unsafe {
            let codes = _mm256_and_si256(words, _mm256_set1_epi32(mask::<BITS>() as i32));
            F32x8(_mm256_cvtepi32_ps(codes)) - table
        }
    }
}

/// The numbers of all codes of up to 4 bits.
#[cfg(target_arch = "x86_64")]
const CODES: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

/// The numbers of all codes of 2 bits, whatever the next two bits are.
#[cfg(target_arch = "x86_64")]
const SHORT_CODES: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0];

/// A table of 16 numbers replaces the conversion of codes of up to 4 bits.
#[cfg(target_arch = "x86_64")]
impl Words for F32x16 {
    type Words = __m512i;

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    fn next<const BITS: usize>(words: __m512i) -> __m512i {
        unsafe {
            match BITS {
                2 => _mm512_srli_epi32::<2>(words),
                4 => _mm512_srli_epi32::<4>(words),
                _ => _mm512_srli_epi32::<8>(words),
            }
        }
    }

    #[inline(always)]
    fn table<const BITS: usize>(zero: f32) -> Self {
        let zero = F32x16::splat(zero);
        match BITS {
            // SAFETY: the lists have a number for each lane.
            2 => unsafe { F32x16::load(SHORT_CODES.as_ptr()) - zero },
            4 => unsafe { F32x16::load(CODES.as_ptr()) - zero },
            _ => zero,
        }
    }

    #[inline(always)]
    fn numbers<const BITS: usize>(words: __m512i, table: Self) -> Self {
        unsafe {
            if BITS <= 4 {
                return F32x16(_mm512_permutexvar_ps(words, table.0)); // only the four low bits of a word count
            }
            let codes = _mm512_and_si512(words, _mm512_set1_epi32(mask::<BITS>() as i32));
            F32x16(_mm512_cvtepi32_ps(codes)) - table
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl Words for F32x4x2 {
    type Words = [uint32x4_t; 2];

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> [uint32x4_t; 2] {
        unsafe { [vld1q_u32(from), vld1q_u32(from.add(4))] }
    }

    #[inline(always)]
    fn next<const BITS: usize>(words: [uint32x4_t; 2]) -> [uint32x4_t; 2] {
        words.map(
            #[inline(always)]
            |words| unsafe {
                match BITS {
                    2 => vshrq_n_u32::<2>(words),
                    4 => vshrq_n_u32::<4>(words),
                    _ => vshrq_n_u32::<8>(words),
                }
            },
        )
    }

    #[inline(always)]
    fn table<const BITS: usize>(zero: f32) -> Self {
        F32x4x2::splat(zero)
    }

    #[inline(always)]
    fn numbers<const BITS: usize>([first, last]: [uint32x4_t; 2], table: Self) -> Self {
        unsafe {
            let mask = vdupq_n_u32(mask::<BITS>());
            F32x4x2(vcvtq_f32_u32(vandq_u32(first, mask)), vcvtq_f32_u32(vandq_u32(last, mask))) - table
        }
    }
}
