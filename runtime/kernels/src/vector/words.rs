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

    /// # Safety
    /// `LANES` words can be written at `to`.
    unsafe fn store_words(words: Self::Words, to: *mut u32);

    /// The signed integers of 32 bits as numbers, rounded to nearest.
    fn of_integers(integers: Self::Words) -> Self;

    /// Removes the lower half of each word: shifts the word right by 16 bits.
    fn upper(words: Self::Words) -> Self::Words;

    /// The numbers whose representation has the bits of `mask` from each word, and also `bits`.
    fn merged(words: Self::Words, mask: u32, bits: u32) -> Self;

    /// The numbers 0, 1, …, 15 minus `zero`, for [`looked_up`](Words::looked_up). `None` if the instruction set lacks it.
    #[inline(always)]
    fn table(_zero: f32) -> Option<Self> {
        None
    }

    /// The element of a table at bits `shift … shift + 3` of each word.
    #[inline(always)]
    fn looked_up(_words: Self::Words, _shift: u32, table: Self) -> Self {
        table
    }
}

impl Words for f32 {
    type Words = u32;

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn store_words(words: u32, to: *mut u32) {
        // SAFETY: guaranteed by the caller.
        unsafe { *to = words }
    }

    #[inline(always)]
    fn of_integers(integers: u32) -> f32 {
        integers as i32 as f32
    }

    #[inline(always)]
    fn upper(words: u32) -> u32 {
        words >> 16
    }

    #[inline(always)]
    fn merged(words: u32, mask: u32, bits: u32) -> f32 {
        f32::from_bits(words & mask | bits)
    }
}

#[cfg(target_arch = "x86_64")]
impl Words for F32x8 {
    type Words = __m256i;

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> __m256i {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_words(words: __m256i, to: *mut u32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_storeu_si256(to.cast(), words) }
    }

    #[inline(always)]
    fn of_integers(integers: __m256i) -> Self {
        // SAFETY: by the contract of `Vector`, the caller has the instructions.
        unsafe { F32x8(_mm256_cvtepi32_ps(integers)) }
    }

    #[inline(always)]
    fn upper(words: __m256i) -> __m256i {
        // SAFETY: see `Vector`.
        unsafe { _mm256_srli_epi32::<16>(words) }
    }

    #[inline(always)]
    fn merged(words: __m256i, mask: u32, bits: u32) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let kept = _mm256_and_si256(words, _mm256_set1_epi32(mask as i32));
            F32x8(_mm256_castsi256_ps(_mm256_or_si256(kept, _mm256_set1_epi32(bits as i32))))
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Words for F32x16 {
    type Words = __m512i;

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> __m512i {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_words(words: __m512i, to: *mut u32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_si512(to.cast(), words) }
    }

    #[inline(always)]
    fn of_integers(integers: __m512i) -> Self {
        // SAFETY: by the contract of `Vector`, the caller has the instructions.
        unsafe { F32x16(_mm512_cvtepi32_ps(integers)) }
    }

    #[inline(always)]
    fn upper(words: __m512i) -> __m512i {
        // SAFETY: see `Vector`.
        unsafe { _mm512_srli_epi32::<16>(words) }
    }

    #[inline(always)]
    fn merged(words: __m512i, mask: u32, bits: u32) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let (mask, bits) = (_mm512_set1_epi32(mask as i32), _mm512_set1_epi32(bits as i32));
            // The table of `words & mask | bits`.
            F32x16(_mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xea>(words, mask, bits)))
        }
    }

    #[inline(always)]
    fn table(zero: f32) -> Option<Self> {
        let codes: [f32; 16] = std::array::from_fn(|code| code as f32 - zero);
        // SAFETY: the list has a number for each lane.
        Some(unsafe { F32x16::load(codes.as_ptr()) })
    }

    #[inline(always)]
    fn looked_up(words: __m512i, shift: u32, table: Self) -> Self {
        // SAFETY: see `Vector`. Only the four low bits of a word count.
        unsafe { F32x16(_mm512_permutexvar_ps(_mm512_srl_epi32(words, _mm_cvtsi32_si128(shift as i32)), table.0)) }
    }
}

#[cfg(target_arch = "aarch64")]
impl Words for F32x4x2 {
    type Words = [uint32x4_t; 2];

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> [uint32x4_t; 2] {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { [vld1q_u32(from), vld1q_u32(from.add(4))] }
    }

    #[inline(always)]
    unsafe fn store_words([first, last]: [uint32x4_t; 2], to: *mut u32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            vst1q_u32(to, first);
            vst1q_u32(to.add(4), last);
        }
    }

    #[inline(always)]
    fn of_integers([first, last]: [uint32x4_t; 2]) -> Self {
        // SAFETY: by the contract of `Vector`, the caller has the instructions.
        unsafe {
            let numbers = |integers| vcvtq_f32_s32(vreinterpretq_s32_u32(integers));
            F32x4x2(numbers(first), numbers(last))
        }
    }

    #[inline(always)]
    fn upper([first, last]: [uint32x4_t; 2]) -> [uint32x4_t; 2] {
        // SAFETY: see `Vector`.
        unsafe { [vshrq_n_u32::<16>(first), vshrq_n_u32::<16>(last)] }
    }

    #[inline(always)]
    fn merged([first, last]: [uint32x4_t; 2], mask: u32, bits: u32) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let (mask, bits) = (vdupq_n_u32(mask), vdupq_n_u32(bits));
            let merged = |words| vreinterpretq_f32_u32(vorrq_u32(vandq_u32(words, mask), bits));
            F32x4x2(merged(first), merged(last))
        }
    }
}
