//! The left operand, rounded and packed in tiles.

use std::arch::x86_64::*;

use super::shape::{steps, PAIRS, SIDE};
use crate::gemm::Lines;
use crate::rounded::sums::TileSums;
use crate::threads::Threads;

/// The words of a tile.
const TILE: usize = SIDE * PAIRS;
/// Words that are worth several threads.
const SPLIT: usize = 1 << 16;

/// The rounded rows in tiles.
pub(super) struct Left {
    steps: usize,
    /// `[row / SIDE][step][row % SIDE][pair]`. Zeros follow the last number of a row. Rows beyond the last one have
    /// unspecified values.
    words: Lines,
}

impl Left {
    /// Rounds the rows of an `[m, k]` matrix.
    ///
    /// # Panics
    /// The slice does not fit the sizes, or `k` is 0.
    pub fn new(sums: TileSums, threads: &Threads, m: usize, k: usize, rows: &[f32]) -> Left {
        assert_eq!(rows.len(), m * k, "{m} rows of {k} numbers");
        let steps = steps(k);
        let len = m.div_ceil(SIDE) * steps * TILE;
        let serial = Threads::serial();
        let threads = if len > SPLIT { threads } else { &serial };
        let words = Lines::overwritten(len, |words| {
            threads.for_each_chunk(bytemuck::cast_slice_mut(words), steps * TILE, |i, words| {
                let rows = rows[i * SIDE * k..].chunks_exact(k).take(SIDE);
                rows.enumerate().for_each(|(row, from)| round(sums, from, &mut words[row * PAIRS..]));
            });
        });
        Left { steps, words }
    }

    /// A tile of rows: the first of `count` tiles along the depth. `tile` counts tiles of rows.
    pub fn tiles(&self, tile: usize, first: usize, count: usize) -> *const u32 {
        self.words[(tile * self.steps + first) * TILE..][..count * TILE].as_ptr().cast()
    }
}

/// Rounds a row, and writes it to the first rows of tiles.
fn round(_: TileSums, from: &[f32], to: &mut [u32]) {
    // SAFETY: `TileSums` proves that the processor has the instructions.
    unsafe { round_row(from, to) }
}

/// Rounds a row. Numbers below `2⁻¹²⁶` in magnitude become zero.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn round_row(from: &[f32], to: &mut [u32]) {
    for (from, to) in from.chunks(2 * PAIRS).zip(to.chunks_mut(TILE)) {
        let to = &mut to[..PAIRS];
        let mask = ((1u64 << from.len()) - 1) as u32;
        // SAFETY: the masks cover the numbers of the slice, and the row of the tile has 64 bytes.
        unsafe {
            let low = _mm512_maskz_loadu_ps(mask as u16, from.as_ptr());
            let high = _mm512_maskz_loadu_ps((mask >> 16) as u16, from.as_ptr().wrapping_add(16));
            let rounded: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(high, low));
            _mm512_storeu_si512(to.as_mut_ptr().cast(), rounded);
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::gemm::tests::noise;
    use crate::isa::Isa;

    #[test]
    fn rows_are_rounded_into_tiles() {
        let Some(sums) = TileSums::of(Isa::widest()) else { return };
        for (m, k) in [(1, 1), (2, 31), (16, 32), (17, 33), (35, 100)] {
            let mut rows = noise(m * k, 3);
            rows[0] = f32::MAX;
            let left = Left::new(sums, &Threads::new(2).unwrap(), m, k, &rows);
            let numbers: &[u16] = bytemuck::cast_slice(&left.words);
            for (row, from) in rows.chunks(k).enumerate() {
                for i in 0..steps(k) * 2 * PAIRS {
                    let tile = row / SIDE * left.steps + i / (2 * PAIRS);
                    let found = numbers[tile * 2 * TILE + row % SIDE * 2 * PAIRS + i % (2 * PAIRS)];
                    let expected = from.get(i).map_or(0, |&x| bf16::from_f32(x).to_bits());
                    assert_eq!(found, expected, "{m} x {k}: {row} {i}");
                }
            }
        }
    }
}
