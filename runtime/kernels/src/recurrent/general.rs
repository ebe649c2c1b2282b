//! Steps of any cell with any activation functions.

use super::{Activation, Cell, Layer, LayerDefinition, Scalar};
use crate::float_types::Real;
use crate::threads::Threads;

/// One step of some sequences.
pub(super) struct Step<'a, R: Scalar> {
    pub layer: &'a Layer<R>,
    /// The state's weights: of the gates that do not depend on another gate, and of those that do.
    pub weights: &'a [R::Weights; 2],
    /// The input's contribution to the gates: rows of `gates · hidden`.
    pub gates: &'a [R],
    /// The row of each sequence; `None` if the sequence has ended.
    pub rows: &'a [Option<usize>],
}

impl<R: Scalar> Step<'_, R> {
    /// Updates the states h and c `[sequences, hidden]` of the sequences that have a row.
    pub fn run(&self, [h, c]: [&mut [R]; 2], scratch: &mut [R]) {
        let LayerDefinition { cell, hidden, .. } = self.layer.definition;
        let length = cell.gates() * hidden;
        let ready = length - cell.deferred() * hidden;
        let (products, scratch) = scratch.split_at_mut(self.rows.len() * ready);
        let (gates, scratch) = scratch.split_at_mut(length);
        R::product(self.layer.isa, &Threads::serial(), h, &self.weights[0], None, products);
        for (b, row) in self.rows.iter().enumerate() {
            let Some(row) = row else { continue };
            gates.copy_from_slice(&self.gates[row * length..][..length]);
            let product = &products[b * ready..][..ready];
            let state = b * hidden..(b + 1) * hidden;
            match cell {
                Cell::Rnn => self.rnn(gates, product, &mut h[state]),
                Cell::Gru { .. } => self.gru(gates, product, &mut h[state], scratch),
                Cell::Lstm { input_forget } => {
                    self.lstm(gates, product, &mut h[state.clone()], &mut c[state], input_forget)
                }
            }
        }
    }

    fn clip(&self, x: &mut [R]) {
        if let Some(limit) = self.layer.definition.clip {
            for x in x {
                *x = if *x > limit { limit } else { *x };
                *x = if *x < -limit { -limit } else { *x };
            }
        }
    }

    /// Clips the gates' sums and applies an activation function.
    fn activate(&self, function: Activation, gates: &mut [R]) {
        self.clip(gates);
        R::activate(self.layer.isa, function, gates);
    }

    fn rnn(&self, gates: &mut [R], product: &[R], h: &mut [R]) {
        add(gates, product);
        self.activate(self.layer.definition.activations[0], gates);
        h.copy_from_slice(gates);
    }

    /// `z, r = f(x + h·Rᵀ)`, `n = g(x + r·(h·Rᵀ + b))` or `g(x + (r·h)·Rᵀ)`, `h = (1 − z)·n + z·h`
    fn gru(&self, gates: &mut [R], product: &[R], h: &mut [R], scratch: &mut [R]) {
        let (hidden, [f, g, _]) = (h.len(), self.layer.definition.activations);
        let (zr, n) = gates.split_at_mut(2 * hidden);
        add(zr, &product[..2 * hidden]);
        self.activate(f, zr);
        let (z, r) = zr.split_at(hidden);
        if self.layer.definition.cell.deferred() == 0 {
            for i in 0..hidden {
                n[i] += r[i] * (product[2 * hidden + i] + self.layer.reset_bias[i]);
            }
        } else {
            let (kept, product) = scratch[..2 * hidden].split_at_mut(hidden);
            for i in 0..hidden {
                kept[i] = r[i] * h[i];
            }
            R::product(self.layer.isa, &Threads::serial(), kept, &self.weights[1], None, product);
            add(n, product);
        }
        self.activate(g, n);
        for i in 0..hidden {
            h[i] = n[i] + z[i] * (h[i] - n[i]);
        }
    }

    /// `i, f = f(x + h·Rᵀ + p·c)`, `c = f·c + i·g(…)`, `o = f(… + p·c)`, `h = o·h(c)`
    fn lstm(&self, gates: &mut [R], product: &[R], h: &mut [R], c: &mut [R], input_forget: bool) {
        let (hidden, [f, g, last]) = (h.len(), self.layer.definition.activations);
        add(gates, product);
        let (i, rest) = gates.split_at_mut(hidden);
        let (o, rest) = rest.split_at_mut(hidden);
        let (forget, new) = rest.split_at_mut(hidden);
        let peepholes = self.layer.peepholes.as_ref().map(|p| (&p[..hidden], &p[hidden..2 * hidden], &p[2 * hidden..]));
        if let Some((of_i, _, of_f)) = peepholes {
            add_product(i, of_i, c);
            add_product(forget, of_f, c);
        }
        self.activate(f, i);
        self.activate(f, forget);
        self.activate(g, new);
        for k in 0..hidden {
            let kept = if input_forget { R::ONE - i[k] } else { forget[k] };
            c[k] = kept * c[k] + i[k] * new[k];
        }
        if let Some((_, of_o, _)) = peepholes {
            add_product(o, of_o, c);
        }
        self.activate(f, o);
        h.copy_from_slice(c);
        R::activate(self.layer.isa, last, h);
        for k in 0..hidden {
            h[k] = o[k] * h[k];
        }
    }
}

fn add<R: Real>(to: &mut [R], x: &[R]) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to += x;
    }
}

fn add_product<R: Real>(to: &mut [R], x: &[R], y: &[R]) {
    for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
        *to += x * y;
    }
}
