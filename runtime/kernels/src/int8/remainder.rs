//! Weights split for an instruction that adds pairs of products with saturation.
//!
//! `vpmaddubsw` multiplies unsigned with signed bytes, and adds two adjacent products with saturation to 16 bits. It is
//! exact if the weights of a pair sum to -128 .. 128, because 255 · 128 < 2¹⁵; weights with different signs always do.
//! Any other pair `(a, b)` is the sum of two such pairs, `(a, ±128 − a)` and `(0, a + b ∓ 128)`. Quads with such pairs are
//! therefore multiplied twice: with the first pairs in their place, and with the second ones after all quads of the panel.

use crate::buffer::push;
use crate::scratch::Scratch;

/// The largest sum of a pair's weights that does not saturate.
const LIMIT: i16 = 128;

/// The quads that each panel has after those of its columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Remainder {
    /// The quads' numbers in a row, panel after panel.
    quads: Vec<usize>,
    /// The end of each panel's quads; empty if no panel has any.
    ends: Vec<usize>,
}

impl Remainder {
    /// Finds the quads to split in panels `[panel][quad][column][4]` of `size` bytes, whose quads have `width` columns.
    pub fn of(panels: &[i8], size: usize, width: usize) -> Remainder {
        let mut remainder = Remainder::default();
        for panel in panels.chunks_exact(size.max(1)) {
            let quads = panel.chunks_exact(4 * width).enumerate();
            let saturating = quads.filter(|(_, quad)| quad.chunks_exact(2).any(|pair| split(pair)[1] != 0));
            saturating.for_each(|(number, _)| push(&mut remainder.quads, number));
            push(&mut remainder.ends, remainder.quads.len());
        }
        remainder
    }

    /// Copies the panels of [`Remainder::of`] to `out`, split. Each panel is followed by its additional quads.
    ///
    /// # Panics
    /// `out` is shorter than the panels with their additional quads.
    pub fn split(&self, panels: &[i8], size: usize, width: usize, mut out: &mut [i8]) {
        for (number, panel) in panels.chunks_exact(size.max(1)).enumerate() {
            let again = &self.quads[self.before(number)..self.before(number + 1)];
            let (first, rest) = out.split_at_mut(size);
            let (second, rest) = rest.split_at_mut(again.len() * 4 * width);
            first.copy_from_slice(panel);
            for (&quad, second) in again.iter().zip(second.chunks_exact_mut(4 * width)) {
                let first = &mut first[quad * 4 * width..][..4 * width];
                for (first, second) in first.chunks_exact_mut(2).zip(second.chunks_exact_mut(2)) {
                    let [limited, more] = split(first);
                    (first[1], second[0], second[1]) = (limited, 0, more);
                }
            }
            out = rest;
        }
    }

    /// The number of additional quads of all panels.
    pub fn len(&self) -> usize {
        self.quads.len()
    }

    /// The number of additional quads before a panel.
    pub fn before(&self, panel: usize) -> usize {
        panel.checked_sub(1).map_or(0, |last| self.ends.get(last).copied().unwrap_or(0))
    }

    /// Returns the offsets of the quads of a row that a panel's additional quads multiply. `pieces` are those of a row,
    /// with `quads` quads each.
    pub fn places(&self, panel: usize, pieces: &[usize], quads: usize) -> Scratch<usize> {
        let again = &self.quads[self.before(panel)..self.before(panel + 1)];
        Scratch::of(again.iter().map(|&quad| pieces[quad / quads] + quad % quads * 4))
    }
}

/// Divides the second weight of a pair: into the part that does not saturate together with the first one, and the rest.
fn split(pair: &[i8]) -> [i8; 2] {
    let [first, second] = [i16::from(pair[0]), i16::from(pair[1])];
    let limited = (first + second).clamp(-LIMIT, LIMIT) - first;
    [limited as i8, (second - limited) as i8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pair_saturates_and_both_parts_sum_to_the_weights() {
        let all = || i8::MIN..=i8::MAX;
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            let [limited, more] = split(&[a, b]);
            assert_eq!(i16::from(limited) + i16::from(more), i16::from(b));
            for pair in [[a, limited], [0, more]] {
                for x in [[255, 255], [255, 0], [0, 255]] {
                    let sum: i32 = (0..2).map(|i| x[i] * i32::from(pair[i])).sum();
                    assert!(i16::try_from(sum).is_ok(), "{a} and {b}: {pair:?}");
                }
            }
        }
    }

    #[test]
    fn additional_quads_follow_their_panel() {
        let panels = [1, 1, 1, 1, 127, 127, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let (remainder, mut all) = (Remainder::of(&panels, 8, 1), [9; 20]);
        remainder.split(&panels, 8, 1, &mut all);
        assert_eq!(all, [1, 1, 1, 1, 127, 1, 0, 0, 0, 126, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((remainder.before(0), remainder.before(1), remainder.before(2)), (0, 1, 1));
        assert_eq!(&remainder.places(0, &[0, 100], 1)[..], [100]);
        assert_eq!(&remainder.places(0, &[40], 2)[..], [44]);
        assert!(remainder.places(1, &[40], 2).is_empty());
    }
}
