//! Steps with the usual functions, sigmoid and tanh: from the sums of the gates to the state, vector by vector.
//!
//! The operations and their order are those of the general steps, so that both give the same bits.

use crate::isa::Isa;
use crate::vector::{dispatch_isa, math, Vector};

/// A gate's elements in two arrays of gates of `hidden` elements each: their sum at `i`.
///
/// # Safety
/// `i + count ≤ hidden`, and both arrays hold the gate.
#[inline(always)]
unsafe fn sum<V: Vector>(x: &[f32], y: &[f32], gate: usize, hidden: usize, i: usize, count: usize) -> V {
    let at = gate * hidden + i;
    debug_assert!(at + count <= x.len().min(y.len()));
    // SAFETY: the caller's promise.
    unsafe { V::load_first(x.as_ptr().add(at), count) + V::load_first(y.as_ptr().add(at), count) }
}

/// `c = σ(f)·c + σ(i)·tanh(n)`, `h = σ(o)·tanh(c)`, where the gates i, o, f, n are `gates + product`.
///
/// # Panics
/// The lengths do not fit.
pub(super) fn lstm(isa: Isa, gates: &[f32], product: &[f32], h: &mut [f32], c: &mut [f32]) {
    let hidden = h.len();
    assert!(gates.len() == 4 * hidden && product.len() == 4 * hidden && c.len() == hidden, "four gates");
    dispatch_isa!(isa, (gates: &[f32] = gates, product: &[f32] = product, h: &mut [f32] = h, c: &mut [f32] = c), V => {
        for i in (0..h.len()).step_by(V::LANES) {
            let count = (h.len() - i).min(V::LANES);
            // SAFETY: the assertion above, and `i + count ≤ hidden`.
            unsafe {
                let [input, output, forget, new]: [V; 4] =
                    std::array::from_fn(|gate| sum(gates, product, gate, h.len(), i, count));
                let kept = math::sigmoid(forget) * V::load_first(c.as_ptr().add(i), count);
                let cell = kept + math::sigmoid(input) * math::tanh(new);
                cell.store_first(c.as_mut_ptr().add(i), count);
                (math::sigmoid(output) * math::tanh(cell)).store_first(h.as_mut_ptr().add(i), count);
            }
        }
    });
}

/// `n = tanh(n + σ(r)·(product + bias))`, `h = n + σ(z)·(h − n)`, where the gates z and r are `gates + product`.
///
/// # Panics
/// The lengths do not fit.
pub(super) fn gru(isa: Isa, gates: &[f32], product: &[f32], bias: &[f32], h: &mut [f32]) {
    let hidden = h.len();
    assert!(gates.len() == 3 * hidden && product.len() == 3 * hidden && bias.len() == hidden, "three gates");
    dispatch_isa!(isa, (gates: &[f32] = gates, product: &[f32] = product, bias: &[f32] = bias, h: &mut [f32] = h), V => {
        let hidden = h.len();
        for i in (0..hidden).step_by(V::LANES) {
            let count = (hidden - i).min(V::LANES);
            // SAFETY: the assertion above, and `i + count ≤ hidden`.
            unsafe {
                let load = |from: &[f32], at: usize| V::load_first(from.as_ptr().add(at + i), count);
                let [update, reset]: [V; 2] = std::array::from_fn(|gate| sum(gates, product, gate, hidden, i, count));
                let waiting = load(product, 2 * hidden) + load(bias, 0);
                let new = math::tanh(load(gates, 2 * hidden) + math::sigmoid(reset) * waiting);
                let state = new + math::sigmoid(update) * (load(h, 0) - new);
                state.store_first(h.as_mut_ptr().add(i), count);
            }
        }
    });
}
