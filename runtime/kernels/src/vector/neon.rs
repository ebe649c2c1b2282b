//! The vector of NEON.
//!
//! It has 8 lanes in two registers. NEON's 32 registers hold as many numbers as the 16 of AVX2, so tiles that fill the
//! registers of AVX2 fill those of NEON, and blocks of channels have the same sizes.

use std::arch::aarch64::*;
use std::arch::asm;

use half::{bf16, f16};

use super::Vector;

/// 8 lanes: the first four, and the last four.
#[derive(Clone, Copy)]
pub(crate) struct F32x4x2(pub(crate) float32x4_t, pub(crate) float32x4_t);

/// Applies a function to both registers of some vectors.
macro_rules! each {
    (|$($x:ident),*| $result:expr) => {{
        #[allow(unused_unsafe)]
        // SAFETY: every processor with the architecture has NEON.
        unsafe {
            let first = { $(let $x = $x.0;)* $result };
            let last = { $(let $x = $x.1;)* $result };
            (first, last)
        }
    }};
}

/// The same for a function that gives numbers.
macro_rules! vector {
    (|$($x:ident),*| $result:expr) => {{
        let (first, last) = each!(|$($x),*| $result);
        F32x4x2(first, last)
    }};
}

macro_rules! operators {
    ($($trait:ident $method:ident $intrinsic:ident;)*) => {
        $(impl std::ops::$trait for F32x4x2 {
            type Output = F32x4x2;

            #[inline(always)]
            fn $method(self, other: F32x4x2) -> F32x4x2 {
                let x = self;
                vector!(|x, other| $intrinsic(x, other))
            }
        })*
    };
}

operators! {
    Add add vaddq_f32;
    Sub sub vsubq_f32;
    Mul mul vmulq_f32;
    Div div vdivq_f32;
}

/// One mask for each register; a set lane has all bits set.
type Mask = (uint32x4_t, uint32x4_t);

// The caller guarantees that memory accesses are valid.
impl Vector for F32x4x2 {
    const LANES: usize = 8;
    type Mask = Mask;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: as in `each`.
        let all = unsafe { vdupq_n_f32(value) };
        F32x4x2(all, all)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { F32x4x2(vld1q_f32(from), vld1q_f32(from.add(4))) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const f16) -> Self {
        // SAFETY: guaranteed by the caller; the instructions change two registers.
        unsafe {
            let halves = vld1q_u16(from.cast());
            let (first, last);
            asm!(
                "fcvtl {first:v}.4s, {halves:v}.4h",
                "fcvtl2 {last:v}.4s, {halves:v}.8h",
                first = out(vreg) first,
                last = lateout(vreg) last,
                halves = in(vreg) halves,
                options(pure, nomem, nostack, preserves_flags)
            );
            F32x4x2(first, last)
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const bf16) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (halves, zero) = (vld1q_u16(from.cast()), vdupq_n_u16(0));
            let [first, last] = [vzip1q_u16(zero, halves), vzip2q_u16(zero, halves)];
            F32x4x2(vreinterpretq_f32_u16(first), vreinterpretq_f32_u16(last))
        }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, count: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::load_padded(from, count, 0.0) }
    }

    #[inline(always)]
    unsafe fn load_padded(from: *const f32, count: usize, beyond: f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let padding = vdupq_n_f32(beyond);
            match count {
                8.. => Self::load(from),
                4.. => F32x4x2(vld1q_f32(from), load_some(from.add(4), count - 4, padding)),
                _ => F32x4x2(load_some(from, count, padding), padding),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            vst1q_f32(to, self.0);
            vst1q_f32(to.add(4), self.1);
        }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match count {
                8.. => self.store(to),
                4.. => {
                    vst1q_f32(to, self.0);
                    store_some(self.1, to.add(4), count - 4);
                }
                _ => store_some(self.0, to, count),
            }
        }
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        let x = self;
        vector!(|x, a, b| vfmaq_f32(b, x, a))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Self, b: Self) -> Self {
        let x = self;
        vector!(|x, a, b| vfmsq_f32(b, x, a))
    }

    #[inline(always)]
    fn lesser(self, other: Self) -> Self {
        let x = self;
        vector!(|x, other| vbslq_f32(vcltq_f32(x, other), x, other))
    }

    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        let x = self;
        vector!(|x, other| vbslq_f32(vcgtq_f32(x, other), x, other))
    }

    #[inline(always)]
    fn abs(self) -> Self {
        let x = self;
        vector!(|x| vabsq_f32(x))
    }

    #[inline(always)]
    fn neg(self) -> Self {
        let x = self;
        vector!(|x| vnegq_f32(x))
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        let x = self;
        vector!(|x, sign| vbslq_f32(vdupq_n_u32(1 << 31), sign, x))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        let x = self;
        vector!(|x| vsqrtq_f32(x))
    }

    #[inline(always)]
    fn floor(self) -> Self {
        let x = self;
        vector!(|x| vrndmq_f32(x))
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        let x = self;
        vector!(|x| vrndpq_f32(x))
    }

    #[inline(always)]
    fn round(self) -> Self {
        let x = self;
        vector!(|x| vrndnq_f32(x))
    }

    #[inline(always)]
    fn times_power_of_two(self, n: Self) -> Self {
        // In two steps: the first one is exact, and only the second one rounds a subnormal result.
        let x = self;
        vector!(|x, n| {
            let n = vcvtq_s32_f32(n);
            let half = vshrq_n_s32::<1>(n);
            vmulq_f32(vmulq_f32(x, power_of_two(half)), power_of_two(vsubq_s32(n, half)))
        })
    }

    #[inline(always)]
    fn times_normal_power_of_two(self, n: Self) -> Self {
        let x = self;
        vector!(|x, n| vmulq_f32(x, power_of_two(vcvtq_s32_f32(n))))
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let x = self;
        let exponent = each!(|x| vshrq_n_s32::<23>(vsubq_s32(vreinterpretq_s32_f32(x), vdupq_n_s32(TWO_THIRDS))));
        let mantissa = vector!(|x, exponent| {
            vreinterpretq_f32_s32(vsubq_s32(vreinterpretq_s32_f32(x), vshlq_n_s32::<23>(exponent)))
        });
        (mantissa, vector!(|exponent| vcvtq_f32_s32(exponent)))
    }

    #[inline(always)]
    fn pick(self, table: &[f32; 8]) -> Self {
        let x = self;
        // SAFETY: the table has 32 bytes.
        let table = unsafe {
            let from: *const u8 = table.as_ptr().cast();
            uint8x16x2_t(vld1q_u8(from), vld1q_u8(from.add(16)))
        };
        vector!(|x| {
            // The number of a lane's entry, times 4 for its bytes.
            let entry = vandq_u32(vshrq_n_u32::<20>(vreinterpretq_u32_f32(x)), vdupq_n_u32(7 << 2));
            let bytes = vmlaq_u32(vdupq_n_u32(0x0302_0100), entry, vdupq_n_u32(0x0101_0101));
            vreinterpretq_f32_u8(vqtbl2q_u8(table, vreinterpretq_u8_u32(bytes)))
        })
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: as in `each`.
        unsafe {
            let x = vaddq_f32(self.0, self.1);
            vpadds_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x)))
        }
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: as in `each`.
        unsafe { vmaxvq_f32(vmaxq_f32(self.0, self.1)) }
    }

    #[inline(always)]
    fn less(self, other: Self) -> Mask {
        let x = self;
        each!(|x, other| vcltq_f32(x, other))
    }

    #[inline(always)]
    fn less_or_equal(self, other: Self) -> Mask {
        let x = self;
        each!(|x, other| vcleq_f32(x, other))
    }

    #[inline(always)]
    fn equal(self, other: Self) -> Mask {
        let x = self;
        each!(|x, other| vceqq_f32(x, other))
    }

    #[inline(always)]
    fn is_nan(self) -> Mask {
        let x = self;
        each!(|x| vmvnq_u32(vceqq_f32(x, x)))
    }

    #[inline(always)]
    fn select(mask: Mask, yes: Self, no: Self) -> Self {
        vector!(|mask, yes, no| vbslq_f32(mask, yes, no))
    }

    #[inline(always)]
    fn any(mask: Mask) -> bool {
        // The maximum of pairs of lanes, not the bits of both masks: LLVM turns `a < x | a < y` into a comparison with
        // the maximum of `x` and `y`, which is NaN if one of them is a signaling NaN.
        // SAFETY: as in `each`.
        unsafe { vmaxvq_u32(vpmaxq_u32(mask.0, mask.1)) != 0 }
    }
}

/// The bits of 2/3, the smallest mantissa of [`Vector::split`].
const TWO_THIRDS: i32 = 0x3f2a_aaab;

#[inline(always)]
unsafe fn power_of_two(n: int32x4_t) -> float32x4_t {
    // SAFETY: as in `each`.
    unsafe { vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127)))) }
}

/// Loads up to three elements; the other lanes are those of `padding`.
///
/// # Safety
/// `count` elements can be read at `from`.
#[inline(always)]
unsafe fn load_some(from: *const f32, count: usize, padding: float32x4_t) -> float32x4_t {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut lanes = padding;
        if count > 0 {
            lanes = vld1q_lane_f32::<0>(from, lanes);
        }
        if count > 1 {
            lanes = vld1q_lane_f32::<1>(from.add(1), lanes);
        }
        if count > 2 {
            lanes = vld1q_lane_f32::<2>(from.add(2), lanes);
        }
        lanes
    }
}

/// Stores up to three lanes.
///
/// # Safety
/// `count` elements can be written at `to`.
#[inline(always)]
unsafe fn store_some(lanes: float32x4_t, to: *mut f32, count: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if count > 0 {
            vst1q_lane_f32::<0>(to, lanes);
        }
        if count > 1 {
            vst1q_lane_f32::<1>(to.add(1), lanes);
        }
        if count > 2 {
            vst1q_lane_f32::<2>(to.add(2), lanes);
        }
    }
}

/// Transposes `N` rows of `N` elements, four by four: `out[j · to + i] = x[i · from + j]`. `N` is a multiple of 4.
///
/// # Safety
/// The elements can be read at `x` and written at `out`.
pub(crate) unsafe fn transpose<const N: usize>(x: *const f32, from: usize, out: *mut f32, to: usize) {
    for (i, j) in (0..N).step_by(4).flat_map(|i| (0..N).step_by(4).map(move |j| (i, j))) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let [a, b, c, d] = std::array::from_fn(|k| vld1q_f32(x.add((i + k) * from + j)));
            // Pairs of rows as numbers of 64 bits: columns 0 and 2, and columns 1 and 3.
            let pairs = |a, b| [vtrn1q_f32(a, b), vtrn2q_f32(a, b)].map(|pair| vreinterpretq_f64_f32(pair));
            let ([even, odd], [even2, odd2]) = (pairs(a, b), pairs(c, d));
            let columns =
                [vzip1q_f64(even, even2), vzip1q_f64(odd, odd2), vzip2q_f64(even, even2), vzip2q_f64(odd, odd2)];
            for (k, column) in columns.into_iter().enumerate() {
                vst1q_f32(out.add((j + k) * to + i), vreinterpretq_f32_f64(column));
            }
        }
    }
}
