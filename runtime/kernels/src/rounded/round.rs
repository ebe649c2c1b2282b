//! Rounding to `bf16`, to nearest, ties to even.

use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Numbers that one task rounds, and that are worth several threads.
const TASK: usize = 1 << 14;
const SPLIT: usize = 1 << 17;

/// Returns numbers rounded to `bf16`, as `f32`.
pub(crate) fn round(isa: Isa, threads: &Threads, from: &[f32]) -> Scratch<f32> {
    let serial = Threads::serial();
    let threads = if from.len() > SPLIT { threads } else { &serial };
    Scratch::overwritten(from.len(), |to| {
        threads.for_each_chunk(to, TASK, |i, to| round_all(isa, &from[i * TASK..][..to.len()], to));
    })
}

per_isa! {
    fn round_all(from: &[f32], to: &mut [f32]) where FMA {
        for (from, to) in from.iter().zip(to) {
            *to = rounded(*from);
        }
    }
}

/// The nearest `bf16`. NaN stays NaN.
#[inline(always)]
fn rounded(x: f32) -> f32 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000;
    f32::from_bits(if x.is_nan() { bits } else { nearest })
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::round_pairs;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::rounded::sums::{PairSums, LANES};

    /// Rounds the rows of a `[rows, k]` matrix, and stores each in pairs. A zero follows the last number of an odd `k`. Numbers
    /// below `2⁻¹²⁶` in magnitude become zero.
    ///
    /// # Panics
    /// The slices do not fit the sizes.
    pub fn round_pairs(_: PairSums, from: &[f32], k: usize, to: &mut [u32]) {
        let pairs = k.div_ceil(2);
        assert!(k > 0 && from.len() / k * pairs == to.len(), "{} numbers in rows of {k}", from.len());
        for (from, to) in from.chunks_exact(k).zip(to.chunks_exact_mut(pairs)) {
            // SAFETY: `PairSums` proves that the processor has the instructions.
            unsafe { round_row(from, to) };
        }
    }

    /// Rounds a row.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    fn round_row(from: &[f32], to: &mut [u32]) {
        assert_eq!(from.len().div_ceil(2), to.len());
        let to = to.as_mut_ptr().cast::<i16>();
        for i in (0..from.len()).step_by(LANES) {
            let left = (from.len() - i).min(LANES);
            let [read, written] = [left, left.next_multiple_of(2)].map(|count| (1u32 << count).wrapping_sub(1) as u16);
            // SAFETY: the row has `left` numbers from `i` on, and the pairs have room for an even number of them.
            unsafe {
                let numbers = _mm512_maskz_loadu_ps(read, from.as_ptr().add(i));
                let rounded: __m256i = std::mem::transmute(_mm512_cvtneps_pbh(numbers));
                _mm256_mask_storeu_epi16(to.add(i), written, rounded);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::gemm::tests::noise;

    fn numbers() -> Vec<f32> {
        let ties =
            (0..200u32).flat_map(|i| [0x7fff, 0x8000, 0x8001].map(|low| f32::from_bits(0x3f80_0000 + (i << 16) + low)));
        let ends = [0.0, -0.0, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, 3.38e38];
        noise(1000, 5).into_iter().chain(ties).chain(ends).collect()
    }

    #[test]
    fn every_instruction_set_rounds_to_nearest() {
        let from = numbers();
        let expected: Vec<u32> = from.iter().map(|&x| bf16::from_f32(x).to_f32().to_bits()).collect();
        for isa in Isa::available() {
            let found: Vec<u32> = round(isa, &Threads::serial(), &from).iter().map(|x| x.to_bits()).collect();
            assert_eq!(found, expected, "{isa:?}");
            assert!(round(isa, &Threads::serial(), &[f32::NAN, f32::from_bits(0x7f80_0001)])
                .iter()
                .all(|x| x.is_nan()));
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn pairs_of_rows_are_rounded_alike() {
        for sums in Isa::available().filter_map(crate::rounded::sums::PairSums::of) {
            for k in [1, 2, 3, 15, 16, 17, 31, 32, 33, 100] {
                let from = numbers();
                let from = &from[..from.len() / k * k];
                let mut to = vec![u32::MAX; from.len() / k * k.div_ceil(2)];
                round_pairs(sums, from, k, &mut to);
                let bits = |x: Option<&f32>| x.map_or(0, |&x| u32::from(bf16::from_f32(x).to_bits()));
                let pairs = from.chunks(k).flat_map(|row| row.chunks(2));
                let expected: Vec<u32> = pairs.map(|pair| bits(pair.first()) | bits(pair.get(1)) << 16).collect();
                assert_eq!(to, expected, "rows of {k}");
            }
        }
    }
}
