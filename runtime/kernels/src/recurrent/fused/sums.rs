//! Products of rows with a block of weights, `[length][gates][lanes]`: one vector of sums per gate.
//!
//! Eight multiplications can start during the latency of one. The functions therefore compute about eight independent
//! sums at a time: of two blocks, of two pieces of one block, or of several rows.

use crate::gemm::tile::PIECE;
use crate::prefetch::prefetch;
use crate::vector::Vector;

/// The prefetch distance of the weights in elements; the product of a single row waits for nothing else.
const AHEAD: usize = 1 << 10;

/// Returns `start` plus the products of `N` blocks with one row of `length` elements.
///
/// # Safety
/// The weights and the row can be read.
#[inline(always)]
pub(super) unsafe fn of_blocks<V: Vector, const G: usize, const N: usize>(
    start: [[V; G]; N],
    weights: [*const f32; N],
    x: *const f32,
    length: usize,
) -> [[V; G]; N] {
    let mut all = start;
    for k in (0..length).step_by(PIECE) {
        let weights = weights.map(|weights| weights.wrapping_add(k * G * V::LANES));
        // SAFETY: guaranteed by the caller.
        let pieces = unsafe { chains([x.wrapping_add(k); N], weights, PIECE.min(length - k)) };
        all.iter_mut().zip(pieces).for_each(|(sums, piece)| add(sums, piece));
    }
    all
}

/// Receives the sums of rows. A trait, because a closure is not always inlined into a caller with the instruction set's
/// features.
pub(super) trait Sink<V, const G: usize> {
    /// # Safety
    /// See the implementation.
    unsafe fn accept(&self, row: usize, sums: [V; G]);
}

/// Passes `start` plus the products of a block with each of `rows` rows to `to`. Each row has `length` elements,
/// starting at `x`. Several rows share each load of a weight.
///
/// # Safety
/// The weights and the rows can be read, and `to` accepts every row.
#[inline(always)]
pub(super) unsafe fn of_rows<V: Vector, const G: usize>(
    start: [V; G],
    weights: *const f32,
    (x, length): (*const f32, usize),
    [mut row, end]: [usize; 2],
    to: &impl Sink<V, G>,
) {
    while row < end {
        let x = x.wrapping_add(row * length);
        macro_rules! together {
            ($M:literal) => {{
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let all = together::<V, G, $M>(start, weights, x, length);
                    for (m, sums) in all.into_iter().enumerate() {
                        to.accept(row + m, sums);
                    }
                }
                $M
            }};
        }
        row += match end - row {
            1 => {
                // SAFETY: guaranteed by the caller.
                unsafe { to.accept(row, alone(start, weights, x, length)) };
                1
            }
            3 | 5 if V::LANES == 16 => together!(3),
            4 | 7 | 8 if V::LANES == 16 => together!(4),
            6.. if V::LANES == 16 => together!(6),
            _ => together!(2),
        };
    }
}

/// Returns `start` plus the products of a block with one row, two pieces at a time.
///
/// # Safety
/// The weights and the row can be read.
#[inline(always)]
pub(super) unsafe fn alone<V: Vector, const G: usize>(
    mut sums: [V; G],
    weights: *const f32,
    x: *const f32,
    length: usize,
) -> [V; G] {
    let from = |k: usize| weights.wrapping_add(k * G * V::LANES);
    let pairs = length - length % (2 * PIECE);
    for k in (0..pairs).step_by(2 * PIECE) {
        let (rows, weights) = ([k, k + PIECE].map(|k| x.wrapping_add(k)), [k, k + PIECE].map(from));
        // SAFETY: guaranteed by the caller.
        let pieces = unsafe { chains::<V, G, 2>(rows, weights, PIECE) };
        pieces.into_iter().for_each(|piece| add(&mut sums, piece));
    }
    // SAFETY: guaranteed by the caller.
    let [sums] = unsafe { of_blocks([sums], [from(pairs)], x.wrapping_add(pairs), length - pairs) };
    sums
}

/// Returns the sums of `M` consecutive rows.
#[inline(always)]
unsafe fn together<V: Vector, const G: usize, const M: usize>(
    start: [V; G],
    weights: *const f32,
    x: *const f32,
    length: usize,
) -> [[V; G]; M] {
    let mut all = [start; M];
    for first in (0..length).step_by(PIECE) {
        let mut pieces = [[V::splat(0.0); G]; M];
        for k in first..length.min(first + PIECE) {
            let weights = weights.wrapping_add(k * G * V::LANES);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let weights: [V; G] = std::array::from_fn(|g| V::load(weights.wrapping_add(g * V::LANES)));
                for (m, sums) in pieces.iter_mut().enumerate() {
                    let x = V::splat(*x.wrapping_add(m * length + k));
                    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum = x.mul_add(weight, *sum));
                }
            }
        }
        all.iter_mut().zip(pieces).for_each(|(sums, piece)| add(sums, piece));
    }
    all
}

/// Returns `N` independent sums over `length` elements, each with its own elements and weights.
#[inline(always)]
unsafe fn chains<V: Vector, const G: usize, const N: usize>(
    x: [*const f32; N],
    weights: [*const f32; N],
    length: usize,
) -> [[V; G]; N] {
    let mut chains = [[V::splat(0.0); G]; N];
    for k in 0..length {
        for (n, sums) in chains.iter_mut().enumerate() {
            let weights = weights[n].wrapping_add(k * G * V::LANES);
            // SAFETY: guaranteed by the caller.
            unsafe {
                let x = V::splat(*x[n].wrapping_add(k));
                for (g, sum) in sums.iter_mut().enumerate() {
                    prefetch(weights.wrapping_add(g * V::LANES + AHEAD));
                    *sum = x.mul_add(V::load(weights.wrapping_add(g * V::LANES)), *sum);
                }
            }
        }
    }
    chains
}

/// Adds the sums of a piece.
#[inline(always)]
fn add<V: Vector, const G: usize>(sums: &mut [V; G], piece: [V; G]) {
    sums.iter_mut().zip(piece).for_each(|(sum, piece)| *sum = *sum + piece);
}
