//! The left operand, rounded and packed in quads.

use std::arch::aarch64::*;
use std::arch::asm;

use super::pack::QuadSums;
use super::sizes::{PAIR, QUAD, REGISTER, ROWS};
use crate::scratch::Scratch;
use crate::threads::Threads;

/// The rounded rows in tiles of up to [`ROWS`] rows.
pub(super) struct Left {
    quads: usize,
    /// The bits of `bf16`: `[tile][quad][pair][row of the pair][number]`. Zeros follow the last number of a row, and the last
    /// row.
    numbers: Scratch<u16>,
}

/// Numbers that are worth several threads.
const SPLIT: usize = 1 << 17;

impl Left {
    /// Rounds the rows of an `[m, k]` matrix.
    ///
    /// # Panics
    /// The slice does not fit the sizes.
    pub fn new(_: QuadSums, threads: &Threads, m: usize, k: usize, rows: &[f32]) -> Left {
        assert_eq!(rows.len(), m * k, "{m} rows of {k} numbers");
        let quads = k.div_ceil(QUAD);
        let len = m.div_ceil(PAIR) * quads * REGISTER;
        let serial = Threads::serial();
        let threads = if len > SPLIT { threads } else { &serial };
        let numbers = Scratch::overwritten(len, |numbers| {
            threads.for_each_chunk(numbers, ROWS / PAIR * quads * REGISTER, |i, numbers| {
                let step = numbers.len() / quads;
                for (pair, rows) in rows[i * ROWS * k..].chunks(PAIR * k).take(step / REGISTER).enumerate() {
                    let (upper, lower) = rows.split_at(k);
                    // SAFETY: a `QuadSums` proves that the processor has the instructions.
                    unsafe { round([upper, lower], &mut numbers[pair * REGISTER..], step) };
                }
            });
        });
        Left { quads, numbers }
    }

    /// The address of a quad of a tile that has `pairs` pairs of rows.
    pub fn at(&self, tile: usize, pairs: usize, quad: usize) -> *const u16 {
        let first = tile * (ROWS / PAIR) * self.quads + quad * pairs;
        self.numbers.as_ptr().wrapping_add(first * REGISTER)
    }
}

/// Rounds a pair of rows, and writes each quad `step` numbers after the one before. The second row may be empty, which stands
/// for zeros.
#[target_feature(enable = "neon,bf16")]
fn round(rows: [&[f32]; PAIR], to: &mut [u16], step: usize) {
    for (quad, to) in to.chunks_mut(step).enumerate() {
        let numbers = rows.map(|row| {
            let row = &row[row.len().min(quad * QUAD)..];
            if let Some(whole) = row.first_chunk() {
                return *whole;
            }
            let mut padded = [0.0; QUAD];
            padded[..row.len()].copy_from_slice(row);
            padded
        });
        to[..REGISTER].copy_from_slice(&rounded(numbers));
    }
}

/// The bits of the nearest `bf16`, ties to even. NaN stays NaN.
#[inline]
#[target_feature(enable = "neon,bf16")]
fn rounded(numbers: [[f32; QUAD]; PAIR]) -> [u16; REGISTER] {
    let mut bits = [0; REGISTER];
    // SAFETY: the function has the instructions, which change one register. The arrays fill registers.
    unsafe {
        let [upper, lower] = numbers.map(|row| vld1q_f32(row.as_ptr()));
        let to: uint16x8_t;
        asm!(
            "bfcvtn {to:v}.4h, {upper:v}.4s",
            "bfcvtn2 {to:v}.8h, {lower:v}.4s",
            to = out(vreg) to,
            upper = in(vreg) upper,
            lower = in(vreg) lower,
            options(pure, nomem, nostack, preserves_flags)
        );
        vst1q_u16(bits.as_mut_ptr(), to);
    }
    bits
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::gemm::tests::noise;
    use crate::isa::Isa;

    #[test]
    fn rows_are_rounded_into_tiles() {
        let Some(sums) = QuadSums::of(Isa::widest()) else { return };
        for (m, k) in [(1, 1), (2, 3), (3, 4), (11, 5), (12, 8), (13, 100), (24, 7), (27, 33)] {
            let mut rows = noise(m * k, 3);
            let special = [f32::MAX, f32::INFINITY, -0.0, f32::from_bits(0x3f80_8000), f32::from_bits(0x3f81_8000)];
            rows.iter_mut().zip(special).for_each(|(x, special)| *x = special);
            let left = Left::new(sums, &Threads::new(2).unwrap(), m, k, &rows);
            for (row, from) in rows.chunks(k).enumerate() {
                let (tile, pairs) = (row / ROWS, ROWS.min(m - row / ROWS * ROWS).div_ceil(PAIR));
                for i in 0..k.next_multiple_of(QUAD) {
                    let place = row % ROWS * QUAD + i % QUAD;
                    let first = left.at(tile, pairs, i / QUAD) as usize - left.numbers.as_ptr() as usize;
                    let expected = from.get(i).map_or(0, |&x| bf16::from_f32(x).to_bits());
                    assert_eq!(left.numbers[first / 2 + place], expected, "{m} x {k}: {row} {i}");
                }
            }
        }
        // SAFETY: `sums` proves that the processor has the instructions.
        let found = unsafe { rounded([[f32::NAN; QUAD]; PAIR]) };
        assert!(found.iter().all(|&bits| bf16::from_bits(bits).is_nan()));
    }
}
