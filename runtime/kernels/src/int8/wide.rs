//! Sixty-four results at once, with AVX-512.

use std::arch::x86_64::*;

use super::finish::{Bounds, Finish};

/// The codes of the first `V` vectors of sums, which columns `column ..` have.
///
/// # Safety
/// The processor has AVX-512 F, BW and DQ; `finish` is padded to hold the columns.
#[inline(always)]
pub(super) unsafe fn codes<const V: usize>(
    sums: &[__m512i; V],
    finish: &Finish,
    by: &Bounds,
    column: usize,
    row_sum: i32,
) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let high = _mm512_set1_ps(by.high);
        let mut rounded = [_mm512_setzero_si512(); 4];
        for (v, (rounded, &sum)) in rounded.iter_mut().zip(sums).enumerate() {
            let at = column + 16 * v;
            let mut total = _mm512_add_epi32(sum, _mm512_loadu_si512(finish.start.as_ptr().add(at).cast()));
            if !finish.zeros.is_empty() {
                let zeros = _mm512_loadu_si512(finish.zeros.as_ptr().add(at).cast());
                total = _mm512_sub_epi32(total, _mm512_mullo_epi32(zeros, _mm512_set1_epi32(row_sum)));
            }
            let scale = _mm512_loadu_ps(finish.scale.as_ptr().add(at));
            // In this order not-a-number stays, which becomes the least integer, as what is too small does.
            *rounded = _mm512_cvtps_epi32(_mm512_min_ps(high, _mm512_mul_ps(_mm512_cvtepi32_ps(total), scale)));
        }
        packed(rounded, by)
    }
}

/// Four vectors of rounded numbers as codes; lane `l` of the result has the four of lane `l` of each vector.
///
/// # Safety
/// The processor has AVX-512 F and BW.
#[inline(always)]
unsafe fn packed(rounded: [__m512i; 4], by: &Bounds) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = _mm512_set1_epi16(by.zero as i16);
        let halves = [_mm512_packs_epi32(rounded[0], rounded[1]), _mm512_packs_epi32(rounded[2], rounded[3])];
        let halves = [_mm512_adds_epi16(halves[0], zero), _mm512_adds_epi16(halves[1], zero)];
        let low = _mm512_set1_epi8(by.low as i8);
        if by.low < 0 {
            _mm512_max_epi8(_mm512_packs_epi16(halves[0], halves[1]), low)
        } else {
            _mm512_max_epu8(_mm512_packus_epi16(halves[0], halves[1]), low)
        }
    }
}

/// The place in four vectors, side by side, of what comes to place `i` of [`codes`].
pub(super) const fn place(i: usize) -> usize {
    i / 4 % 4 * 16 + i / 16 * 4 + i % 4
}

/// What [`codes`] gives in the order of the vectors.
///
/// # Safety
/// The processor has AVX-512F.
#[inline(always)]
pub(super) unsafe fn in_order(codes: __m512i) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, codes)
    }
}

/// Writes the first `count` bytes.
///
/// # Safety
/// The processor has AVX-512 BW, and so many bytes can be written at `to`.
#[inline(always)]
pub(super) unsafe fn store(codes: __m512i, to: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if count >= 64 {
            _mm512_storeu_si512(to.cast(), codes);
        } else {
            _mm512_mask_storeu_epi8(to.cast(), (1 << count) - 1, codes);
        }
    }
}
