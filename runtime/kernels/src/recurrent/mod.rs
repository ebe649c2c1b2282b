//! Recurrent layers: LSTM, GRU and the simple one. The inputs of all steps are multiplied with their weights in one
//! product; each step then multiplies the state and finishes the gates.

mod activation;
mod fused;
mod scalar;
#[cfg(test)]
mod tests;

pub use activation::Activation;
pub use scalar::Scalar;

use crate::isa::Isa;
use crate::lanes::Real;
use crate::threads::Threads;

/// What a step computes from the input and the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Gates i, o, f and c.
    Lstm {
        /// Whether `f = 1 − i`.
        input_forget: bool,
    },
    /// Gates z, r and h.
    Gru {
        /// Whether r scales the state's product, and not the state.
        linear_before_reset: bool,
    },
    /// One gate.
    Rnn,
}

impl Cell {
    /// The number of gates.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm { .. } => 4,
            Cell::Gru { .. } => 3,
            Cell::Rnn => 1,
        }
    }

    /// The gates whose product with the state waits for another gate.
    fn waiting(self) -> usize {
        usize::from(self == Cell::Gru { linear_before_reset: false })
    }
}

/// The weights of one direction of a layer.
pub struct Layer<R: Scalar> {
    cell: Cell,
    inputs: usize,
    hidden: usize,
    input: R::Weights,
    /// The state's weights of the gates that do not wait, and of those that do.
    state: [R::Weights; 2],
    /// `[gates · hidden]`: what is added before the step.
    bias: Vec<R>,
    /// `[hidden]`: what is added to the state's product of GRU's gate h before r scales it.
    reset_bias: Vec<R>,
    /// `[3, hidden]`: of LSTM's gates i, o, f.
    peepholes: Option<Vec<R>>,
}

impl<R: Scalar> Layer<R> {
    /// Makes weights ready: `w [gates · hidden, inputs]`, `r [gates · hidden, hidden]`, `b [2 · gates · hidden]` and
    /// `peepholes [3 · hidden]`.
    ///
    /// # Panics
    /// The lengths do not fit.
    pub fn new(
        isa: Isa,
        cell: Cell,
        w: &[R],
        r: &[R],
        b: Option<&[R]>,
        peepholes: Option<&[R]>,
        hidden: usize,
    ) -> Layer<R> {
        let rows = cell.gates() * hidden;
        let inputs = w.len() / rows.max(1);
        assert_eq!((w.len(), r.len()), (rows * inputs, rows * hidden), "weights fill their shapes");
        assert!(b.is_none_or(|b| b.len() == 2 * rows) && peepholes.is_none_or(|p| p.len() == 3 * hidden));
        let ready = rows - cell.waiting() * hidden;
        let (mut bias, mut reset_bias) = (vec![R::ZERO; rows], vec![R::ZERO; hidden]);
        if let Some(b) = b {
            let scaled = if cell == (Cell::Gru { linear_before_reset: true }) { rows - hidden } else { rows };
            for (i, bias) in bias.iter_mut().enumerate() {
                *bias = if i < scaled { b[i] + b[rows + i] } else { b[i] };
            }
            reset_bias.copy_from_slice(&b[2 * rows - hidden..]);
        }
        let state = [
            R::pack(isa, &r[..ready * hidden], ready, hidden),
            R::pack(isa, &r[ready * hidden..], rows - ready, hidden),
        ];
        let peepholes = peepholes.map(<[R]>::to_vec);
        Layer { cell, inputs, hidden, input: R::pack(isa, w, rows, inputs), state, bias, reset_bias, peepholes }
    }

    /// The size of the state.
    pub fn hidden(&self) -> usize {
        self.hidden
    }
}

/// One pass over a batch of sequences.
pub struct Pass<'a, R: Scalar> {
    /// The weights.
    pub layer: &'a Layer<R>,
    /// The functions f, g and h.
    pub activations: [Activation; 3],
    /// What the sums of the gates are clipped to, on both sides.
    pub clip: Option<R>,
    /// Whether each sequence is read from its end.
    pub reversed: bool,
    /// The number of sequences.
    pub batch: usize,
    /// The steps of a sequence, padding included.
    pub steps: usize,
    /// The steps of each sequence.
    pub lengths: Option<&'a [usize]>,
    /// Whether the steps of a sequence follow one another: `[batch, steps, …]`, not `[steps, batch, …]`.
    pub batch_first: bool,
}

impl<R: Scalar> Pass<'_, R> {
    /// The elements of workspace that [`Pass::run`] needs: the gates of every step, the products of one, and two states.
    /// `None` where they are more than can be counted.
    pub fn workspace(&self) -> Option<usize> {
        let Layer { cell, hidden, .. } = *self.layer;
        let rows = cell.gates() * hidden;
        self.steps.checked_add(1)?.checked_mul(self.batch)?.checked_mul(rows)?.checked_add(2 * hidden)
    }

    /// Reads `x`, `[steps, batch, inputs]` or `[batch, steps, inputs]`, and updates the states `h` and (LSTM) `c`, both
    /// `[batch, hidden]`. `emit(step, sequence, h)` is called for every step of every sequence within its length.
    /// `workspace` is overwritten; it has [`Pass::workspace`] elements.
    ///
    /// # Panics
    /// The lengths of the slices do not fit.
    pub fn run(
        &self,
        isa: Isa,
        threads: &Threads,
        x: &[R],
        [h, c]: [&mut [R]; 2],
        workspace: &mut [R],
        mut emit: impl FnMut(usize, usize, &[R]),
    ) {
        let Layer { cell, inputs, hidden, .. } = *self.layer;
        let rows = cell.gates() * hidden;
        assert_eq!((x.len(), h.len()), (self.steps * self.batch * inputs, self.batch * hidden));
        assert!(self.workspace() == Some(workspace.len()));
        assert!(self.lengths.is_none_or(|lengths| lengths.len() == self.batch));
        assert!(!matches!(cell, Cell::Lstm { .. }) || c.len() == h.len());
        let ready = rows - cell.waiting() * hidden;
        let (projected, rest) = workspace.split_at_mut(self.steps * self.batch * rows);
        let (products, scratch) = rest.split_at_mut(self.batch * ready);
        R::product(isa, threads, x, &self.layer.input, Some(&self.layer.bias), projected);
        let serial = Threads::serial();
        for turn in 0..self.steps {
            R::product(isa, &serial, h, &self.layer.state[0], None, products);
            for b in 0..self.batch {
                let Some(step) = self.step(turn, b) else { continue };
                let row = if self.batch_first { b * self.steps + step } else { step * self.batch + b };
                let gates = &mut projected[row * rows..(row + 1) * rows];
                let state = &mut h[b * hidden..(b + 1) * hidden];
                let product = &products[b * ready..(b + 1) * ready];
                match cell {
                    Cell::Rnn => self.rnn(isa, gates, product, state),
                    Cell::Gru { .. } => self.gru(isa, gates, product, state, scratch),
                    Cell::Lstm { input_forget } => {
                        let c = &mut c[b * hidden..(b + 1) * hidden];
                        self.lstm(isa, gates, product, state, c, input_forget);
                    }
                }
                emit(step, b, state);
            }
        }
    }

    /// The step that sequence `b` takes at a turn.
    fn step(&self, turn: usize, b: usize) -> Option<usize> {
        let length = self.lengths.map_or(self.steps, |lengths| lengths[b].min(self.steps));
        (turn < length).then(|| if self.reversed { length - 1 - turn } else { turn })
    }

    fn clip(&self, x: &mut [R]) {
        if let Some(limit) = self.clip {
            for x in x {
                *x = if *x > limit { limit } else { *x };
                *x = if *x < -limit { -limit } else { *x };
            }
        }
    }

    /// Whether the first functions are these, of sums that are not clipped.
    fn has_functions(&self, functions: &[Activation]) -> bool {
        self.clip.is_none() && self.activations.starts_with(functions)
    }

    /// Clips the sums of gates and applies a function.
    fn activate(&self, isa: Isa, function: Activation, gates: &mut [R]) {
        self.clip(gates);
        R::activate(isa, function, gates);
    }

    fn rnn(&self, isa: Isa, gates: &mut [R], product: &[R], h: &mut [R]) {
        add(gates, product);
        self.activate(isa, self.activations[0], gates);
        h.copy_from_slice(gates);
    }

    /// `z, r = f(x + h·Rᵀ)`, `n = g(x + r·(h·Rᵀ + b))` or `g(x + (r·h)·Rᵀ)`, `h = (1 − z)·n + z·h`
    fn gru(&self, isa: Isa, gates: &mut [R], product: &[R], h: &mut [R], scratch: &mut [R]) {
        let hidden = h.len();
        let is_usual = self.has_functions(&[Activation::Sigmoid, Activation::Tanh]) && self.layer.cell.waiting() == 0;
        if is_usual && R::gru(isa, gates, product, &self.layer.reset_bias, h) {
            return;
        }
        let (zr, n) = gates.split_at_mut(2 * hidden);
        add(zr, &product[..2 * hidden]);
        self.activate(isa, self.activations[0], zr);
        let (z, r) = zr.split_at(hidden);
        if self.layer.cell.waiting() == 0 {
            for i in 0..hidden {
                n[i] += r[i] * (product[2 * hidden + i] + self.layer.reset_bias[i]);
            }
        } else {
            let (kept, product) = scratch[..2 * hidden].split_at_mut(hidden);
            for i in 0..hidden {
                kept[i] = r[i] * h[i];
            }
            R::product(isa, &Threads::serial(), kept, &self.layer.state[1], None, product);
            add(n, product);
        }
        self.activate(isa, self.activations[1], n);
        for i in 0..hidden {
            h[i] = n[i] + z[i] * (h[i] - n[i]);
        }
    }

    /// `i, f = f(x + h·Rᵀ + p·c)`, `c = f·c + i·g(…)`, `o = f(… + p·c)`, `h = o·h(c)`
    fn lstm(&self, isa: Isa, gates: &mut [R], product: &[R], h: &mut [R], c: &mut [R], input_forget: bool) {
        let hidden = h.len();
        let [f, g, last] = self.activations;
        let is_usual = self.has_functions(&[Activation::Sigmoid, Activation::Tanh, Activation::Tanh])
            && self.layer.peepholes.is_none()
            && !input_forget;
        if is_usual && R::lstm(isa, gates, product, h, c) {
            return;
        }
        add(gates, product);
        let (i, rest) = gates.split_at_mut(hidden);
        let (o, rest) = rest.split_at_mut(hidden);
        let (forget, new) = rest.split_at_mut(hidden);
        let peepholes = self.layer.peepholes.as_ref().map(|p| (&p[..hidden], &p[hidden..2 * hidden], &p[2 * hidden..]));
        if let Some((of_i, _, of_f)) = peepholes {
            add_product(i, of_i, c);
            add_product(forget, of_f, c);
        }
        self.activate(isa, f, i);
        self.activate(isa, f, forget);
        self.activate(isa, g, new);
        for k in 0..hidden {
            let kept = if input_forget { R::ONE - i[k] } else { forget[k] };
            c[k] = kept * c[k] + i[k] * new[k];
        }
        if let Some((_, of_o, _)) = peepholes {
            add_product(o, of_o, c);
        }
        self.activate(isa, f, o);
        h.copy_from_slice(c);
        R::activate(isa, last, h);
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
