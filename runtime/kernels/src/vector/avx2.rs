//! The vector of AVX2.

use std::arch::asm;
use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Vector;

/// 8 lanes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F32x8(pub(super) __m256);

macro_rules! operators {
    ($($trait:ident $method:ident $intrinsic:ident;)*) => {
        $(impl std::ops::$trait for F32x8 {
            type Output = F32x8;

            #[inline(always)]
            fn $method(self, other: F32x8) -> F32x8 {
                // SAFETY: see `Vector`.
                F32x8(unsafe { $intrinsic(self.0, other.0) })
            }
        })*
    };
}

operators! {
    Add add _mm256_add_ps;
    Sub sub _mm256_sub_ps;
    Mul mul _mm256_mul_ps;
    Div div _mm256_div_ps;
}

impl Vector for F32x8 {
    const LANES: usize = 8;
    type Mask = __m256;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_set1_ps(value)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x8(_mm256_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const f16) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x8(_mm256_cvtph_ps(_mm_loadu_si128(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            F32x8(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide)))
        }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x8(_mm256_maskload_ps(from, first(count))) }
    }

    #[inline(always)]
    unsafe fn load_padded(from: *const f32, count: usize, beyond: f32) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe {
            let mask = first(count);
            F32x8(_mm256_blendv_ps(_mm256_set1_ps(beyond), _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask)))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    /// In pieces: a masked store takes more than ten cycles on AMD's processors.
    #[inline(always)]
    unsafe fn store_first(self, mut to: *mut f32, count: usize) {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe {
            if count >= Self::LANES {
                return self.store(to);
            }
            let mut rest = _mm256_castps256_ps128(self.0);
            if count & 4 != 0 {
                _mm_storeu_ps(to, rest);
                (rest, to) = (_mm256_extractf128_ps::<1>(self.0), to.add(4));
            }
            if count & 2 != 0 {
                _mm_storel_pd(to.cast(), _mm_castps_pd(rest));
                (rest, to) = (_mm_movehl_ps(rest, rest), to.add(2));
            }
            if count & 1 != 0 {
                _mm_store_ss(to, rest);
            }
        }
    }

    #[inline(always)]
    fn in_step(vectors: [Self; 4]) -> [Self; 4] {
        // SAFETY: see `Vector`.
        unsafe { in_step(vectors) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_fmadd_ps(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_fnmadd_ps(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    fn lesser(self, other: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_min_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_max_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)) }
    }

    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_xor_ps(self.0, _mm256_set1_ps(-0.0))) }
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let mask = _mm256_set1_ps(-0.0);
            F32x8(_mm256_or_ps(_mm256_andnot_ps(mask, self.0), _mm256_and_ps(mask, sign.0)))
        }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_sqrt_ps(self.0)) }
    }

    #[inline(always)]
    fn floor(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_round_ps::<0x09>(self.0)) }
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_round_ps::<0x0a>(self.0)) }
    }

    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_round_ps::<0x08>(self.0)) }
    }

    #[inline(always)]
    fn times_power_of_two(self, n: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            // In two steps: the first one is exact, and only the second one rounds a subnormal result.
            let n = _mm256_cvtps_epi32(n.0);
            let half = _mm256_srai_epi32::<1>(n);
            self * power_of_two(half) * power_of_two(_mm256_sub_epi32(n, half))
        }
    }

    #[inline(always)]
    fn times_normal_power_of_two(self, n: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { self * power_of_two(_mm256_cvtps_epi32(n.0)) }
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        // SAFETY: see `Vector`.
        unsafe {
            let bits = _mm256_castps_si256(self.0);
            let exponent = _mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, _mm256_set1_epi32(TWO_THIRDS)));
            let mantissa = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(exponent));
            (F32x8(_mm256_castsi256_ps(mantissa)), F32x8(_mm256_cvtepi32_ps(exponent)))
        }
    }

    #[inline(always)]
    fn pick(self, table: &[f32; 8]) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let index = _mm256_srli_epi32::<22>(_mm256_castps_si256(self.0)); // only its three low bits count
            F32x8(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr()), index))
        }
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: see `Vector`.
        unsafe {
            let x = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: see `Vector`.
        unsafe {
            let x = _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn less(self, other: Self) -> __m256 {
        // SAFETY: see `Vector`.
        unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn less_or_equal(self, other: Self) -> __m256 {
        // SAFETY: see `Vector`.
        unsafe { _mm256_cmp_ps::<_CMP_LE_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn equal(self, other: Self) -> __m256 {
        // SAFETY: see `Vector`.
        unsafe { _mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn is_nan(self) -> __m256 {
        // SAFETY: see `Vector`.
        unsafe { _mm256_cmp_ps::<_CMP_UNORD_Q>(self.0, self.0) }
    }

    #[inline(always)]
    fn select(mask: __m256, yes: Self, no: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x8(_mm256_blendv_ps(no.0, yes.0, mask)) }
    }

    #[inline(always)]
    fn any(mask: __m256) -> bool {
        // SAFETY: see `Vector`.
        unsafe { _mm256_movemask_ps(mask) != 0 }
    }
}

/// The bits of 2/3, the smallest mantissa of [`Vector::split`].
const TWO_THIRDS: i32 = 0x3f2a_aaab;

#[inline(always)]
unsafe fn power_of_two(n: __m256i) -> F32x8 {
    // SAFETY: see `Vector`.
    unsafe { F32x8(_mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(n, _mm256_set1_epi32(127))))) }
}

/// The instruction without a text has all four vectors as operands.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn in_step([mut a, mut b, mut c, mut d]: [F32x8; 4]) -> [F32x8; 4] {
    // SAFETY: no instruction changes anything.
    unsafe {
        asm!(
            "/* {0} {1} {2} {3} */",
            inout(ymm_reg) a.0,
            inout(ymm_reg) b.0,
            inout(ymm_reg) c.0,
            inout(ymm_reg) d.0,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    [a, b, c, d]
}

/// Sets all bits of the first `count` lanes.
#[inline(always)]
fn first(count: usize) -> __m256i {
    const BITS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: reads eight of the sixteen numbers, from index 8 at most; see `Vector`.
    unsafe { _mm256_loadu_si256(BITS.as_ptr().add(8 - count.min(8)).cast()) }
}
