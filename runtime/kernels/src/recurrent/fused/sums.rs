//! Products of states with a block of weights, `[hidden][gates][lanes]`: a vector of sums a gate.
//!
//! A sum waits four times as long for its next term as a vector takes: eight sums keep the processor busy.

use crate::gemm::tile::PIECE;
use crate::vector::Vector;

/// `N` chains of sums over `length` elements, each from its own weights and states on.
///
/// # Safety
/// The weights and states can be read.
#[inline(always)]
pub(super) unsafe fn chains<V: Vector, const G: usize, const N: usize>(
    weights: [*const f32; N],
    h: [*const f32; N],
    length: usize,
) -> [[V; G]; N] {
    let mut chains = [[V::splat(0.0); G]; N];
    for k in 0..length {
        for (n, sums) in chains.iter_mut().enumerate() {
            let weights = weights[n].wrapping_add(k * G * V::LANES);
            // SAFETY: the caller's promise.
            unsafe {
                let h = V::splat(*h[n].wrapping_add(k));
                for (g, sum) in sums.iter_mut().enumerate() {
                    *sum = h.mul_add(V::load(weights.wrapping_add(g * V::LANES)), *sum);
                }
            }
        }
    }
    chains
}

/// The sums of one state, two pieces at a time.
///
/// # Safety
/// The weights and `hidden` elements of the state can be read.
#[inline(always)]
pub(super) unsafe fn alone<V: Vector, const G: usize>(weights: *const f32, h: *const f32, hidden: usize) -> [V; G] {
    let from = |k: usize| (weights.wrapping_add(k * G * V::LANES), h.wrapping_add(k));
    let mut sums = [V::splat(0.0); G];
    let mut start = 0;
    while start + 2 * PIECE <= hidden {
        let ((weights, h), (next_weights, next_h)) = (from(start), from(start + PIECE));
        // SAFETY: the caller's promise.
        let pieces = unsafe { chains::<V, G, 2>([weights, next_weights], [h, next_h], PIECE) };
        pieces.into_iter().for_each(|piece| add(&mut sums, piece));
        start += 2 * PIECE;
    }
    while start < hidden {
        let (weights, h) = from(start);
        // SAFETY: the caller's promise.
        let [piece] = unsafe { chains([weights], [h], PIECE.min(hidden - start)) };
        add(&mut sums, piece);
        start += PIECE;
    }
    sums
}

/// The sums of `M` states that follow one another.
///
/// # Safety
/// The weights and `M · hidden` elements of states can be read.
#[inline(always)]
pub(super) unsafe fn together<V: Vector, const G: usize, const M: usize>(
    weights: *const f32,
    h: *const f32,
    hidden: usize,
) -> [[V; G]; M] {
    let mut all = [[V::splat(0.0); G]; M];
    for start in (0..hidden).step_by(PIECE) {
        let mut pieces = [[V::splat(0.0); G]; M];
        for k in start..hidden.min(start + PIECE) {
            let weights = weights.wrapping_add(k * G * V::LANES);
            // SAFETY: the caller's promise.
            unsafe {
                let weights: [V; G] = std::array::from_fn(|g| V::load(weights.wrapping_add(g * V::LANES)));
                for (m, sums) in pieces.iter_mut().enumerate() {
                    let h = V::splat(*h.wrapping_add(m * hidden + k));
                    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum = h.mul_add(weight, *sum));
                }
            }
        }
        all.iter_mut().zip(pieces).for_each(|(sums, piece)| add(sums, piece));
    }
    all
}

/// Adds the sums of a piece.
#[inline(always)]
fn add<V: Vector, const G: usize>(sums: &mut [V; G], piece: [V; G]) {
    sums.iter_mut().zip(piece).for_each(|(sum, piece)| *sum = *sum + piece);
}
