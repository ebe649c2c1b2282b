//! The numbers of a part of a panel, for many rows.

use super::pack::{PackedCodes, Zeros, PANEL};
use super::points::Points;
use crate::vector::{dispatch_isa, Words};

/// Writes `code − zero point` for the depth `depth[0] .. depth[1]` of a panel to `to`, `[depth][column]`. The depth begins
/// and ends where pieces do.
pub(super) fn unpack(b: &PackedCodes, panel: usize, depth: [usize; 2], to: &mut [f32]) {
    assert!(panel < b.panels() && depth[1] <= b.k && to.len() == (depth[1] - depth[0]) * b.width);
    let is_each = matches!(b.zeros, Zeros::Each(_));
    dispatch_isa!(b.isa, (b: &PackedCodes = b, panel: usize = panel, depth: [usize; 2] = depth, to: &mut [f32] = to,
        is_each: bool = is_each), V =>
    match (b.bits, is_each) {
        (2, false) => all::<V, 2, false>(b, panel, depth, to),
        (2, true) => all::<V, 2, true>(b, panel, depth, to),
        (4, false) => all::<V, 4, false>(b, panel, depth, to),
        (4, true) => all::<V, 4, true>(b, panel, depth, to),
        (_, false) => all::<V, 8, false>(b, panel, depth, to),
        (_, true) => all::<V, 8, true>(b, panel, depth, to),
    });
}

/// See [`unpack`].
#[inline(always)]
fn all<V: Words, const BITS: usize, const EACH: bool>(
    b: &PackedCodes,
    panel: usize,
    [first, last]: [usize; 2],
    to: &mut [f32],
) {
    let (per_word, mut to) = (32 / BITS, to.as_mut_ptr());
    for block in first / b.block..last.div_ceil(b.block) {
        // SAFETY: the matrix has this panel and this block.
        let zeros = unsafe { Points::<V, PANEL>::load::<BITS>(b, b.place(panel, block)) };
        let (from, end) = (first.max(block * b.block), last.min((block + 1) * b.block));
        for k in (from..end).step_by(per_word) {
            // SAFETY: as above; `to` has a row of the panel for each of the numbers.
            unsafe {
                let words = b.words(panel, k);
                let mut words: [V::Words; PANEL] =
                    std::array::from_fn(|v| V::load_words(words.wrapping_add(v * V::LANES)));
                for _ in 0..per_word.min(end - k) {
                    let numbers = zeros.numbers::<BITS, EACH>(&words);
                    for (v, number) in numbers.iter().enumerate() {
                        number.store(to.add(v * V::LANES));
                    }
                    for words in &mut words {
                        *words = V::next::<BITS>(*words);
                    }
                    to = to.add(b.width);
                }
            }
        }
    }
}
