//! Registers of bytes and of wider numbers, in both widths.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

macro_rules! lanewise {
    ($($method:ident: $narrow:ident $wide:ident;)*) => {
        /// Instructions on two registers, with names like those of the intrinsics.
        ///
        /// Generic code is `#[inline(always)]` down from a function with the instruction set's `#[target_feature]`:
        /// AVX2, AVX-512 F, BW and VL, or NEON. Those that unpack or pack work on each 128 bits alone.
        pub(super) trait Lanewise: Copy {
            $(fn $method(self, other: Self) -> Self;)*
        }

        #[cfg(target_arch = "x86_64")]
        impl Lanewise for __m256i {
            $(
                #[inline(always)]
                fn $method(self, other: __m256i) -> __m256i {
                    // SAFETY: by the trait's contract, the caller has the instruction set.
                    unsafe { $narrow(self, other) }
                }
            )*
        }

        #[cfg(target_arch = "x86_64")]
        impl Lanewise for __m512i {
            $(
                #[inline(always)]
                fn $method(self, other: __m512i) -> __m512i {
                    // SAFETY: as above.
                    unsafe { $wide(self, other) }
                }
            )*
        }
    };
}

lanewise! {
    xor: _mm256_xor_si256 _mm512_xor_si512;
    sub_i32: _mm256_sub_epi32 _mm512_sub_epi32;
    mul_i32: _mm256_mullo_epi32 _mm512_mullo_epi32;
    packs_i32: _mm256_packs_epi32 _mm512_packs_epi32;
    packs_i16: _mm256_packs_epi16 _mm512_packs_epi16;
    packus_i16: _mm256_packus_epi16 _mm512_packus_epi16;
    adds_i16: _mm256_adds_epi16 _mm512_adds_epi16;
    max_i8: _mm256_max_epi8 _mm512_max_epi8;
    max_u8: _mm256_max_epu8 _mm512_max_epu8;
    min_i8: _mm256_min_epi8 _mm512_min_epi8;
    min_u8: _mm256_min_epu8 _mm512_min_epu8;
    unpack_low_i8: _mm256_unpacklo_epi8 _mm512_unpacklo_epi8;
    unpack_high_i8: _mm256_unpackhi_epi8 _mm512_unpackhi_epi8;
    unpack_low_i16: _mm256_unpacklo_epi16 _mm512_unpacklo_epi16;
    unpack_high_i16: _mm256_unpackhi_epi16 _mm512_unpackhi_epi16;
}

/// A register, under the contract of [`Lanewise`].
pub(super) trait Vector: Lanewise {
    /// The number of 32-bit lanes.
    const LANES: usize;
    /// The number of bytes.
    const BYTES: usize = 4 * Self::LANES;

    /// Sets every 32-bit lane to `x`.
    fn splat(x: i32) -> Self;

    /// # Safety
    /// [`BYTES`](Vector::BYTES) can be read.
    unsafe fn load(from: *const u8) -> Self;

    /// Loads the first `count` bytes; the others are 0.
    ///
    /// # Safety
    /// `count` bytes can be read at `from`; `count` is at most [`BYTES`](Vector::BYTES).
    unsafe fn load_some(from: *const u8, count: usize) -> Self;

    /// # Safety
    /// [`BYTES`](Vector::BYTES) can be written.
    unsafe fn store(self, to: *mut u8);

    /// Stores the first `count` bytes.
    ///
    /// # Safety
    /// `count` bytes can be written at `to`; `count` is at most [`BYTES`](Vector::BYTES).
    unsafe fn store_some(self, to: *mut u8, count: usize);

    /// Multiplies each integer with its scale, in single precision. Returns the bits of the products.
    ///
    /// # Safety
    /// `scale` has one element per lane.
    unsafe fn scaled(self, scale: *const f32) -> Self;

    /// The minimum with `most`, on bits of single precision; NaN stays NaN.
    fn at_most(self, most: f32) -> Self;

    /// Rounds bits of single precision to integers, ties to even. NaN and numbers that do not fit in 32 bits give the
    /// smallest integer.
    fn rounded(self) -> Self;

    /// Restores the order of the bytes of four registers after they were narrowed with two packs.
    fn in_order(self) -> Self;

    /// Prepares the order of bytes, so that unpacking twice, to four registers, restores it.
    fn spread(self) -> Self;

    /// Adds to each lane its four products of an unsigned and a signed byte. Needs VNNI for the register's width, or
    /// `dotprod` or `i8mm`.
    fn dot(self, unsigned: Self, signed: Self) -> Self;
}

#[cfg(target_arch = "x86_64")]
impl Vector for __m256i {
    const LANES: usize = 8;

    #[inline(always)]
    fn splat(x: i32) -> __m256i {
        // SAFETY: by the trait's contract, the caller has the instruction set.
        unsafe { _mm256_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m256i {
        // SAFETY: as above; the caller guarantees the access.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const u8, count: usize) -> __m256i {
        let mut bytes = [0; 32];
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
            Self::load(bytes.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn store_some(self, mut to: *mut u8, count: usize) {
        // SAFETY: as above. Stores a piece for each bit that is set in `count`, and shifts it out.
        unsafe {
            if count >= 32 {
                return self.store(to);
            }
            let mut rest = _mm256_castsi256_si128(self);
            if count & 16 != 0 {
                _mm_storeu_si128(to.cast(), rest);
                (rest, to) = (_mm256_extracti128_si256::<1>(self), to.add(16));
            }
            if count & 8 != 0 {
                _mm_storel_epi64(to.cast(), rest);
                (rest, to) = (_mm_srli_si128::<8>(rest), to.add(8));
            }
            if count & 7 != 0 {
                let bits = _mm_cvtsi128_si64(rest).to_le_bytes();
                std::ptr::copy_nonoverlapping(bits.as_ptr(), to, count & 7);
            }
        }
    }

    #[inline(always)]
    unsafe fn scaled(self, scale: *const f32) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(self), _mm256_loadu_ps(scale))) }
    }

    #[inline(always)]
    fn at_most(self, most: f32) -> __m256i {
        // SAFETY: as above. If one operand is NaN, the minimum is the second one.
        unsafe { _mm256_castps_si256(_mm256_min_ps(_mm256_set1_ps(most), _mm256_castsi256_ps(self))) }
    }

    #[inline(always)]
    fn rounded(self) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_cvtps_epi32(_mm256_castsi256_ps(self)) }
    }

    #[inline(always)]
    fn in_order(self) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_permutevar8x32_epi32(self, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)) }
    }

    #[inline(always)]
    fn spread(self) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_permutevar8x32_epi32(self, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)) }
    }

    #[inline(always)]
    fn dot(self, unsigned: __m256i, signed: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_dpbusd_avx_epi32(self, unsigned, signed) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Vector for __m512i {
    const LANES: usize = 16;

    #[inline(always)]
    fn splat(x: i32) -> __m512i {
        // SAFETY: by the trait's contract, the caller has the instruction set.
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: as above; the caller guarantees the access.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const u8, count: usize) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_maskz_loadu_epi8(first(count), from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn store_some(self, to: *mut u8, count: usize) {
        // SAFETY: as above.
        unsafe {
            if count >= 64 {
                self.store(to);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), first(count), self);
            }
        }
    }

    #[inline(always)]
    unsafe fn scaled(self, scale: *const f32) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(self), _mm512_loadu_ps(scale))) }
    }

    #[inline(always)]
    fn at_most(self, most: f32) -> __m512i {
        // SAFETY: as above. If one operand is NaN, the minimum is the second one.
        unsafe { _mm512_castps_si512(_mm512_min_ps(_mm512_set1_ps(most), _mm512_castsi512_ps(self))) }
    }

    #[inline(always)]
    fn rounded(self) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_cvtps_epi32(_mm512_castsi512_ps(self)) }
    }

    #[inline(always)]
    fn in_order(self) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(order, self)
        }
    }

    #[inline(always)]
    fn spread(self) -> __m512i {
        // A transposition of four by four, which is its own inverse.
        self.in_order()
    }

    #[inline(always)]
    fn dot(self, unsigned: __m512i, signed: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_dpbusd_epi32(self, unsigned, signed) }
    }
}

/// A mask of the first `count` of 64 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first(count: usize) -> u64 {
    match count {
        64.. => u64::MAX,
        _ => (1 << count) - 1,
    }
}
