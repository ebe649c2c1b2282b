//! The zero points of some columns, and the numbers of their codes.

use super::pack::{PackedCodes, Zeros};
use crate::vector::Words;

/// The zero points of one block of some columns.
pub(super) struct Points<V, const VECTORS: usize> {
    /// The table of codes minus the zero point of all blocks, or minus 0.
    table: V,
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
            Zeros::All(zero) => *zero,
            Zeros::Each(zeros) => {
                // A loop: a closure would not be inlined.
                for (v, each) in each.iter_mut().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    *each = unsafe { zeros.load(place + v * V::LANES) };
                }
                0.0
            }
        };
        Points { table: V::table::<BITS>(zero), each }
    }

    /// The numbers of the first code of each word: the code minus its zero point.
    #[inline(always)]
    pub fn numbers<const BITS: usize, const EACH: bool>(&self, words: &[V::Words; VECTORS]) -> [V; VECTORS] {
        let mut numbers = self.each;
        for (number, &words) in numbers.iter_mut().zip(words) {
            let code = V::numbers::<BITS>(words, self.table);
            *number = if EACH { code - *number } else { code };
        }
        numbers
    }
}
