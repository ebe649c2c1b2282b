//! The register tile of products of pairs, with AVX512_BF16.

use std::arch::x86_64::*;

use super::sums::{PairSums, LANES, ROWS, VECTORS};
use crate::prefetch::prefetch_l2;

/// The operands of a tile: `out[row][column] = start + Σ a[row][pair] · b[pair][column]`, where `·` multiplies both numbers
/// of a pair, and adds the products. The processor counts numbers below `2⁻¹²⁶` in magnitude as zero.
pub(super) struct Tile {
    /// The first pair of the first row, and the stride of rows.
    pub a: *const u32,
    pub a_row: usize,
    /// The first column of the first pair, and the stride of pairs. Vectors are padded.
    pub b: *const u32,
    pub b_step: usize,
    pub pairs: usize,
    /// Whether the sums start with the output's values, instead of zero.
    pub adds: bool,
    pub out: *mut f32,
    pub out_row: usize,
    /// The number of columns. The tile with `n` vectors supports `(n - 1) · LANES + 1 ..= n · LANES`.
    pub columns: usize,
}

/// A tile with a fixed number of rows and vectors.
///
/// # Safety
/// Every address in the formula of [`Tile`] is inside its allocation, nothing else writes `out`, and the processor has the
/// instructions.
pub(super) type Kernel = unsafe fn(&Tile);

/// The bytes between a pair and the one that is prefetched.
const AHEAD: usize = 1024;

macro_rules! kernels {
    ($($rows:literal)*) => { [$([tile::<$rows, 1> as Kernel, tile::<$rows, 2>, tile::<$rows, 3>]),*] };
}

static KERNELS: [[Kernel; VECTORS]; ROWS] = kernels!(1 2 3 4 5 6 7 8);

/// Returns the tile with `rows` rows and `vectors` vectors.
pub(super) fn kernel(_: PairSums, rows: usize, vectors: usize) -> Kernel {
    KERNELS[rows - 1][vectors - 1]
}

/// See [`Kernel`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn tile<const R: usize, const V: usize>(t: &Tile) {
    let mut sums = [[_mm512_setzero_ps(); V]; R];
    let (mut a, mut b) = (t.a, t.b);
    // SAFETY: guaranteed by the caller; any address may be prefetched.
    unsafe {
        for _ in 0..t.pairs {
            let mut right = [pairs(_mm512_setzero_si512()); V];
            for (v, right) in right.iter_mut().enumerate() {
                *right = pairs(_mm512_loadu_si512(b.add(v * LANES).cast()));
                prefetch_l2(b.cast::<u8>().wrapping_add(AHEAD + v * LANES * size_of::<u32>()));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = pairs(_mm512_set1_epi32(a.add(row * t.a_row).cast::<i32>().read()));
                for (sum, &right) in sums.iter_mut().zip(&right) {
                    *sum = _mm512_dpbf16_ps(*sum, left, right);
                }
            }
            (a, b) = (a.wrapping_add(1), b.wrapping_add(t.b_step));
        }
        for (row, sums) in sums.iter().enumerate() {
            let out = t.out.add(row * t.out_row);
            for (v, &sum) in sums.iter().enumerate() {
                store(out.add(v * LANES), (t.columns - v * LANES).min(LANES), sum, t.adds);
            }
        }
    }
}

/// Stores the first `count` sums, or adds them to the values there.
///
/// # Safety
/// These elements are inside the allocation.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn store(to: *mut f32, count: usize, sums: __m512, adds: bool) {
    let mask = (1u32 << count).wrapping_sub(1) as u16;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sums = if adds { _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sums) } else { sums };
        _mm512_mask_storeu_ps(to, mask, sums);
    }
}

/// The bits as pairs of `bf16`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both types are 512 bits, and any bits are valid.
    unsafe { std::mem::transmute(bits) }
}
