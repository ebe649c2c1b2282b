//! Dot products of four codes and four integers of a row, in each lane of a register.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::vector::Words;
#[cfg(target_arch = "x86_64")]
use crate::vector::{F32x16, F32x8};

/// The words of the lanes of a [`Dot`].
pub(super) type WordsOf<D> = <<D as Dot>::Numbers as Words>::Words;

/// Instructions that multiply bytes and sum their products.
///
/// Generic code is `#[inline(always)]`, down from a function with the `#[target_feature]` of the instructions.
pub(super) trait Dot: Sized {
    /// The numbers of as many lanes.
    type Numbers: Words;

    /// Sets every lane to `x`.
    fn splat(x: i32) -> WordsOf<Self>;

    /// The lowest `bits` bits of each byte: 2, 4 or all 8.
    fn lowest(words: WordsOf<Self>, bits: usize) -> WordsOf<Self>;

    /// Shifts each word right by 2 or 4 bits. If `bits` is 8, returns the words.
    fn shifted(words: WordsOf<Self>, bits: usize) -> WordsOf<Self>;

    /// Adds to each lane its four products of unsigned and signed bytes, exactly. `is_wide` if unsigned bytes may
    /// have more than 4 bits. Signed bytes are at least −127.
    fn add(sums: WordsOf<Self>, unsigned: WordsOf<Self>, signed: WordsOf<Self>, is_wide: bool) -> WordsOf<Self>;
}

/// A byte of each of the four bytes of a word.
pub(super) const fn each_byte(byte: u8) -> i32 {
    i32::from_ne_bytes([byte; 4])
}

/// Portable Rust.
pub(super) struct Scalar;

impl Dot for Scalar {
    type Numbers = f32;

    #[inline(always)]
    fn splat(x: i32) -> u32 {
        x as u32
    }

    #[inline(always)]
    fn lowest(words: u32, bits: usize) -> u32 {
        words & each_byte(u8::MAX >> (8 - bits)) as u32
    }

    #[inline(always)]
    fn shifted(words: u32, bits: usize) -> u32 {
        words >> bits
    }

    #[inline(always)]
    fn add(sums: u32, unsigned: u32, signed: u32, _: bool) -> u32 {
        let products = unsigned.to_le_bytes().into_iter().zip(signed.to_le_bytes());
        let sum: i32 = products.map(|(unsigned, signed)| i32::from(unsigned) * i32::from(signed as i8)).sum();
        sums.wrapping_add(sum as u32)
    }
}

/// Four products and their sum in one instruction, in 16 lanes.
#[cfg(target_arch = "x86_64")]
pub(super) struct Vnni512;

/// The same in 8 lanes.
#[cfg(target_arch = "x86_64")]
pub(super) struct Vnni256;

/// Two products and their sum, in 16 bits, which saturate in general. They do not saturate for codes of 4 bits; larger ones
/// are multiplied in halves.
#[cfg(target_arch = "x86_64")]
pub(super) struct Pairs256;

/// The operations on registers that differ only in their length.
#[cfg(target_arch = "x86_64")]
macro_rules! register {
    ($numbers:ident $register:ident $splat:ident $and:ident $shift:ident) => {
        type Numbers = $numbers;

        #[inline(always)]
        fn splat(x: i32) -> $register {
            // SAFETY: by the contract of `Dot`, the caller has the instructions.
            unsafe { $splat(x) }
        }

        #[inline(always)]
        fn lowest(words: $register, bits: usize) -> $register {
            // SAFETY: as above.
            unsafe {
                if bits == 8 {
                    words
                } else {
                    $and(words, $splat(each_byte(u8::MAX >> (8 - bits))))
                }
            }
        }

        #[inline(always)]
        fn shifted(words: $register, bits: usize) -> $register {
            // SAFETY: as above.
            unsafe {
                match bits {
                    2 => $shift::<2>(words),
                    4 => $shift::<4>(words),
                    _ => words,
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
impl Dot for Vnni512 {
    register!(F32x16 __m512i _mm512_set1_epi32 _mm512_and_si512 _mm512_srli_epi32);

    #[inline(always)]
    fn add(sums: __m512i, unsigned: __m512i, signed: __m512i, _: bool) -> __m512i {
        // SAFETY: by the contract of `Dot`, the caller has the instructions.
        unsafe { _mm512_dpbusd_epi32(sums, unsigned, signed) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Dot for Vnni256 {
    register!(F32x8 __m256i _mm256_set1_epi32 _mm256_and_si256 _mm256_srli_epi32);

    #[inline(always)]
    fn add(sums: __m256i, unsigned: __m256i, signed: __m256i, _: bool) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_dpbusd_avx_epi32(sums, unsigned, signed) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Dot for Pairs256 {
    register!(F32x8 __m256i _mm256_set1_epi32 _mm256_and_si256 _mm256_srli_epi32);

    #[inline(always)]
    fn add(sums: __m256i, unsigned: __m256i, signed: __m256i, is_wide: bool) -> __m256i {
        // SAFETY: as above.
        unsafe {
            if is_wide {
                let upper = Self::lowest(Self::shifted(unsigned, 4), 4);
                let lower = pairs(Self::lowest(unsigned, 4), signed, 1);
                _mm256_add_epi32(sums, _mm256_add_epi32(lower, pairs(upper, signed, 16)))
            } else {
                _mm256_add_epi32(sums, pairs(unsigned, signed, 1))
            }
        }
    }
}

/// The sums of four products of unsigned bytes of 4 bits and signed bytes, times a factor.
///
/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn pairs(unsigned: __m256i, signed: __m256i, factor: i16) -> __m256i {
    // SAFETY: guaranteed by the caller.
    unsafe { _mm256_madd_epi16(_mm256_maddubs_epi16(unsigned, signed), _mm256_set1_epi16(factor)) }
}
