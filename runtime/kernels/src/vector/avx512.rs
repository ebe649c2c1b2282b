//! The vector of AVX-512.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::Vector;

/// 16 lanes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F32x16(pub(super) __m512);

macro_rules! operators {
    ($($trait:ident $method:ident $intrinsic:ident;)*) => {
        $(impl std::ops::$trait for F32x16 {
            type Output = F32x16;

            #[inline(always)]
            fn $method(self, other: F32x16) -> F32x16 {
                // SAFETY: see `Vector`.
                F32x16(unsafe { $intrinsic(self.0, other.0) })
            }
        })*
    };
}

operators! {
    Add add _mm512_add_ps;
    Sub sub _mm512_sub_ps;
    Mul mul _mm512_mul_ps;
    Div div _mm512_div_ps;
}

impl Vector for F32x16 {
    const LANES: usize = 16;
    type Mask = __mmask16;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_set1_ps(value)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x16(_mm512_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const f16) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x16(_mm512_cvtph_ps(_mm256_loadu_si256(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            F32x16(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide)))
        }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x16(_mm512_maskz_loadu_ps(first(count), from)) }
    }

    #[inline(always)]
    unsafe fn load_padded(from: *const f32, count: usize, beyond: f32) -> Self {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { F32x16(_mm512_mask_loadu_ps(_mm512_set1_ps(beyond), first(count), from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        // SAFETY: see `Vector`. The caller guarantees that the memory access is valid.
        unsafe { _mm512_mask_storeu_ps(to, first(count), self.0) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_fmadd_ps(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_fnmadd_ps(self.0, a.0, b.0)) }
    }

    #[inline(always)]
    fn lesser(self, other: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_min_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_max_ps(self.0, other.0)) }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_abs_ps(self.0)) }
    }

    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_xor_ps(self.0, _mm512_set1_ps(-0.0))) }
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let mask = _mm512_set1_ps(-0.0);
            F32x16(_mm512_or_ps(_mm512_andnot_ps(mask, self.0), _mm512_and_ps(mask, sign.0)))
        }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_sqrt_ps(self.0)) }
    }

    #[inline(always)]
    fn floor(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_roundscale_ps::<0x09>(self.0)) }
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_roundscale_ps::<0x0a>(self.0)) }
    }

    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_roundscale_ps::<0x08>(self.0)) }
    }

    #[inline(always)]
    fn times_power_of_two(self, n: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_scalef_ps(self.0, n.0)) }
    }

    #[inline(always)]
    fn times_normal_power_of_two(self, n: Self) -> Self {
        self.times_power_of_two(n)
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        // SAFETY: see `Vector`.
        unsafe {
            let bits = _mm512_castps_si512(self.0);
            let exponent = _mm512_srai_epi32::<23>(_mm512_sub_epi32(bits, _mm512_set1_epi32(TWO_THIRDS)));
            let mantissa = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(exponent));
            (F32x16(_mm512_castsi512_ps(mantissa)), F32x16(_mm512_cvtepi32_ps(exponent)))
        }
    }

    #[inline(always)]
    fn pick(self, table: &[f32; 8]) -> Self {
        // SAFETY: see `Vector`.
        unsafe {
            let index = _mm512_srli_epi32::<22>(_mm512_castps_si512(self.0)); // only its four low bits count
            F32x16(_mm512_permutexvar_ps(index, _mm512_broadcast_f32x8(_mm256_loadu_ps(table.as_ptr()))))
        }
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: see `Vector`.
        unsafe { _mm512_reduce_add_ps(self.0) }
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: see `Vector`.
        unsafe { _mm512_reduce_max_ps(self.0) }
    }

    #[inline(always)]
    fn less(self, other: Self) -> __mmask16 {
        // SAFETY: see `Vector`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn less_or_equal(self, other: Self) -> __mmask16 {
        // SAFETY: see `Vector`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn equal(self, other: Self) -> __mmask16 {
        // SAFETY: see `Vector`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn is_nan(self) -> __mmask16 {
        // SAFETY: see `Vector`.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0) }
    }

    #[inline(always)]
    fn select(mask: __mmask16, yes: Self, no: Self) -> Self {
        // SAFETY: see `Vector`.
        unsafe { F32x16(_mm512_mask_blend_ps(mask, no.0, yes.0)) }
    }

    #[inline(always)]
    fn any(mask: __mmask16) -> bool {
        mask != 0
    }
}

/// The bits of 2/3, the smallest mantissa of [`Vector::split`].
const TWO_THIRDS: i32 = 0x3f2a_aaab;

#[inline(always)]
fn first(count: usize) -> __mmask16 {
    if count >= 16 {
        !0
    } else {
        (1 << count) - 1
    }
}
