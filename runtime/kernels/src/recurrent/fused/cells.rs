//! The cells' activations, one vector of units at a time.

use crate::vector::{math, Vector};

/// The first `count` units of a block of one sequence.
pub(super) struct Units {
    /// The bias of the state's product in GRU's gate h.
    pub bias: *const f32,
    pub h: *const f32,
    /// The state after the step.
    pub next: *mut f32,
    pub c: *mut f32,
    pub count: usize,
}

impl Units {
    /// # Safety
    /// `count` elements can be read at `from`.
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, from: *const f32) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load_first(from, self.count) }
    }
}

/// Computes a cell's new state from the input's contribution to the gates and the state's products.
pub(super) trait Finish<const G: usize> {
    /// # Safety
    /// The arrays of `units` that the cell uses have `count` elements. No other task accesses those that the cell
    /// writes.
    unsafe fn finish<V: Vector>(gates: [V; G], products: [V; G], units: Units);
}

/// `c = σ(f)·c + σ(i)·tanh(n)`, `h = σ(o)·tanh(c)`, with gates i, o, f, n.
pub(super) struct Lstm;

impl Finish<4> for Lstm {
    #[inline(always)]
    unsafe fn finish<V: Vector>(gates: [V; 4], products: [V; 4], units: Units) {
        let [input, output, forget, new]: [V; 4] = std::array::from_fn(|g| gates[g] + products[g]);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let kept = math::sigmoid(forget) * units.load::<V>(units.c);
            let cell = kept + math::sigmoid(input) * math::tanh(new);
            cell.store_first(units.c, units.count);
            (math::sigmoid(output) * math::tanh(cell)).store_first(units.next, units.count);
        }
    }
}

/// `n = tanh(n + σ(r)·(product + bias))`, `h = n + σ(z)·(h − n)`, with gates z, r, n.
pub(super) struct Gru;

impl Finish<3> for Gru {
    #[inline(always)]
    unsafe fn finish<V: Vector>(gates: [V; 3], products: [V; 3], units: Units) {
        let [update, reset]: [V; 2] = std::array::from_fn(|g| gates[g] + products[g]);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let hidden_product = products[2] + units.load(units.bias);
            let new = math::tanh(gates[2] + math::sigmoid(reset) * hidden_product);
            let state = new + math::sigmoid(update) * (units.load::<V>(units.h) - new);
            state.store_first(units.next, units.count);
        }
    }
}
