//! The zero points of some columns, and the numbers of their codes.
//!
//! A code becomes a number without a conversion. Its bits become low bits of the significand of a power of two, the
//! *base*, that is so large that the lowest of these bits counts as 1. That number is exactly the base plus the code. Two
//! instructions are enough for a code and its zero point, and they leave the units of multiply-adds to the multiply-adds.

use super::pack::{PackedCodes, Zeros};
use crate::vector::Words;

/// The bits of half a word. Codes of half a word fit the 23 bits of a significand, at any position.
const HALF: usize = 16;
/// The most codes in half a word.
const MOST: usize = HALF / 2;

/// The codes in half a word.
pub(super) const fn codes_of_half<const BITS: usize>() -> usize {
    HALF / BITS
}

/// The representation of the base of code `i` of half a word: 2^(23 − bits · i).
const fn base<const BITS: usize>(i: usize) -> u32 {
    ((127 + 23 - BITS * i) as u32) << 23
}

/// A code of half a word.
#[derive(Clone, Copy)]
struct Place {
    /// Its bits.
    mask: u32,
    /// The representation of its base.
    base: u32,
    /// Its base plus the zero point of all blocks, or plus 0.
    end: f32,
}

/// The zero points of one block of some columns.
pub(super) struct Points<V, const VECTORS: usize> {
    places: [Place; MOST],
    /// The numbers of codes of 4 bits, if the instruction set looks them up.
    table: Option<V>,
    /// The zero points of the block, if each block has its own.
    each: [V; VECTORS],
}

impl<V: Words, const VECTORS: usize> Points<V, VECTORS> {
    /// Loads the zero points at `place`.
    ///
    /// # Safety
    /// The matrix has `VECTORS` vectors of zero points there.
    #[inline(always)]
    pub unsafe fn load<const BITS: usize>(b: &PackedCodes, place: usize) -> Self {
        let mut each = [V::splat(0.0); VECTORS];
        let zero = match &b.zeros {
            Zeros::All(zero) => f32::from(*zero),
            Zeros::Each(zeros) => {
                // A loop: a closure would not be inlined.
                for (v, each) in each.iter_mut().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    *each = unsafe { zeros.load(place + v * V::LANES) };
                }
                0.0
            }
        };
        let mut places = [Place { mask: 0, base: 0, end: 0.0 }; MOST];
        for (i, place) in places.iter_mut().enumerate().take(codes_of_half::<BITS>()) {
            let base = base::<BITS>(i);
            *place = Place { mask: ((1 << BITS) - 1) << (BITS * i), base, end: f32::from_bits(base) + zero };
        }
        let table = if BITS == 4 { V::table(zero) } else { None };
        Points { places, table, each }
    }

    /// The numbers of code `i` of the lower half of each word: the code minus its zero point.
    ///
    /// A lookup is faster for one row. For several rows, its shift by a variable count is slower than the subtraction.
    #[inline(always)]
    pub fn numbers<const EACH: bool, const ROWS: usize>(&self, words: &[V::Words; VECTORS], i: usize) -> [V; VECTORS] {
        let Place { mask, base, end } = self.places[i % MOST];
        let mut numbers = self.each;
        for (number, &words) in numbers.iter_mut().zip(words) {
            let code = match self.table {
                Some(table) if ROWS == 1 => V::looked_up(words, 4 * i as u32, table),
                _ => V::merged(words, mask, base) - V::splat(end),
            };
            *number = if EACH { code - *number } else { code };
        }
        numbers
    }
}
