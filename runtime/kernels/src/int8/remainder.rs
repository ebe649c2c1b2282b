//! Weights split for an instruction that adds pairs of products with saturation.
//!
//! `vpmaddubsw` multiplies unsigned with signed bytes, and adds two adjacent products with saturation to 16 bits. It is
//! exact if the weights of a pair sum to -128 .. 128, because 255 · 128 < 2¹⁵; weights with different signs always do.
//! Any other pair `(a, b)` is the sum of two such pairs, `(a, ±128 − a)` and `(0, a + b ∓ 128)`. Quads with such pairs are
//! therefore multiplied twice: with the first pairs in their place, and with the second ones after all quads of the panel.

use std::borrow::Cow;

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
    /// Splits panels `[panel][quad][column][4]` of `size` bytes, whose quads have `width` columns. Returns the panels with
    /// their additional quads.
    pub fn split(panels: &mut [i8], size: usize, width: usize) -> (Remainder, Vec<i8>) {
        let mut remainder = Remainder::default();
        let mut all = Vec::with_capacity(panels.len());
        for panel in panels.chunks_exact_mut(size.max(1)) {
            let rests: Vec<_> = panel.chunks_exact_mut(4 * width).map(split_quad).collect();
            all.extend_from_slice(panel);
            for (quad, rest) in rests.into_iter().enumerate().filter_map(|(quad, rest)| Some((quad, rest?))) {
                remainder.quads.push(quad);
                all.extend(rest);
            }
            remainder.ends.push(remainder.quads.len());
        }
        (remainder, all)
    }

    /// Whether any panel has additional quads.
    pub fn has_quads(&self) -> bool {
        !self.quads.is_empty()
    }

    /// The number of additional quads before a panel.
    pub fn before(&self, panel: usize) -> usize {
        panel.checked_sub(1).map_or(0, |last| self.ends.get(last).copied().unwrap_or(0))
    }

    /// Returns the pieces that a panel is multiplied with, and their quads. `pieces` are those of a row, with `quads`
    /// quads each.
    pub fn pieces<'a>(&self, panel: usize, pieces: &'a [usize], quads: usize) -> (Cow<'a, [usize]>, usize) {
        let again = &self.quads[self.before(panel)..self.before(panel + 1)];
        if again.is_empty() {
            return (Cow::Borrowed(pieces), quads);
        }
        let place = |quad: usize| pieces[quad / quads] + quad % quads * 4;
        ((0..pieces.len() * quads).chain(again.iter().copied()).map(place).collect(), 1)
    }
}

/// Limits the pairs of a quad, and returns the rest, if any.
fn split_quad(quad: &mut [i8]) -> Option<Vec<i8>> {
    let mut rest = Vec::new();
    for (i, pair) in quad.chunks_exact_mut(2).enumerate() {
        let [a, b] = [i16::from(pair[0]), i16::from(pair[1])];
        let second = (a + b).clamp(-LIMIT, LIMIT) - a;
        if second != b {
            rest.resize(rest.len().max(2 * i), 0);
            rest.extend([0, (b - second) as i8]);
            pair[1] = second as i8;
        }
    }
    (!rest.is_empty()).then(|| {
        rest.resize(quad.len(), 0);
        rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pair_saturates_and_both_parts_sum_to_the_weights() {
        let all = || i8::MIN..=i8::MAX;
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            let mut quad = [a, b, 0, 0];
            let rest = split_quad(&mut quad).unwrap_or(vec![0; 4]);
            assert_eq!((quad[0], i16::from(quad[1]) + i16::from(rest[1])), (a, i16::from(b)));
            for pair in [[quad[0], quad[1]], [rest[0], rest[1]]] {
                for x in [[255, 255], [255, 0], [0, 255]] {
                    let sum: i32 = (0..2).map(|i| x[i] * i32::from(pair[i])).sum();
                    assert!(i16::try_from(sum).is_ok(), "{a} and {b}: {pair:?}");
                }
            }
        }
    }

    #[test]
    fn pieces_are_quads_if_some_are_multiplied_twice() {
        let mut panels = [1, 1, 1, 1, 127, 127, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let (remainder, all) = Remainder::split(&mut panels, 8, 1);
        assert_eq!(all, [1, 1, 1, 1, 127, 1, 0, 0, 0, 126, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((remainder.before(0), remainder.before(1), remainder.before(2)), (0, 1, 1));
        assert_eq!(remainder.pieces(0, &[0, 100], 1), (vec![0, 100, 100].into(), 1));
        assert_eq!(remainder.pieces(0, &[40], 2), (vec![40, 44, 44].into(), 1));
        assert_eq!(remainder.pieces(1, &[40], 2), (vec![40].into(), 2));
    }
}
