//! Recurrent layers: LSTM, GRU and the simple one. The inputs of all steps are multiplied with their weights in one
//! product; each step then multiplies the state and finishes the gates.

use crate::gemm::{gemm, Bias, Matrix, PackedB, Right, Sizes};
use crate::isa::Isa;
use crate::lanes::Real;
use crate::reduce::Number;
use crate::threads::Threads;
use crate::vector::{sigmoid_in_place, tanh_in_place};

/// A function of one gate or of the state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `α·x + β`
    Affine(f32, f32),
    /// `x` where positive, else `α·(eˣ − 1)`
    Elu(f32),
    /// `max(0, min(1, α·x + β))`
    HardSigmoid(f32, f32),
    /// `x` where not negative, else `α·x`
    LeakyRelu(f32),
    /// `max(0, x)`
    Relu,
    /// `α·tanh(β·x)`
    ScaledTanh(f32, f32),
    /// `1 / (1 + e⁻ˣ)`
    Sigmoid,
    /// `ln(1 + eˣ)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `tanh x`
    Tanh,
    /// `x` where `x > α`, else 0
    ThresholdedRelu(f32),
}

impl Activation {
    fn of(self, x: f64) -> f64 {
        let wide = f64::from;
        match self {
            Activation::Affine(a, b) => wide(a) * x + wide(b),
            Activation::Elu(a) if x < 0.0 => wide(a) * x.exp_m1(),
            Activation::HardSigmoid(a, b) => (wide(a) * x + wide(b)).clamp(0.0, 1.0),
            Activation::LeakyRelu(a) if x < 0.0 => wide(a) * x,
            Activation::Relu if x < 0.0 => 0.0,
            Activation::ScaledTanh(a, b) => wide(a) * (wide(b) * x).tanh(),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Activation::Softsign => x / (1.0 + x.abs()),
            Activation::Tanh => x.tanh(),
            Activation::ThresholdedRelu(a) if x <= wide(a) => 0.0,
            _ => x,
        }
    }
}

/// The types that a layer computes in.
pub trait Scalar: Real {
    /// A matrix of weights `[n, k]`, ready to be multiplied.
    type Weights: Send + Sync;

    /// Makes weights `[n, k]` ready.
    fn pack(isa: Isa, weights: &[Self], n: usize, k: usize) -> Self::Weights;

    /// `out [m, n] = x [m, k] · weightsᵀ + bias [n]`
    fn product(
        isa: Isa,
        threads: &Threads,
        x: &[Self],
        weights: &Self::Weights,
        bias: Option<&[Self]>,
        out: &mut [Self],
    );

    /// Replaces every element by the function of it.
    fn activate(isa: Isa, function: Activation, x: &mut [Self]);
}

impl Scalar for f32 {
    type Weights = PackedB;

    fn pack(isa: Isa, weights: &[f32], n: usize, k: usize) -> PackedB {
        PackedB::new(isa, &Threads::serial(), k, n, &Matrix { data: weights, row: 1, column: k })
    }

    fn product(isa: Isa, threads: &Threads, x: &[f32], weights: &PackedB, bias: Option<&[f32]>, out: &mut [f32]) {
        let (n, k) = (weights.columns(), weights.rows());
        let sizes = Sizes { m: out.len() / n.max(1), n, k };
        let bias = bias.map_or(Bias::None, Bias::Columns);
        gemm(isa, threads, sizes, &Matrix::contiguous(x, k), &Right::Packed(weights), bias, out, None);
    }

    fn activate(isa: Isa, function: Activation, x: &mut [f32]) {
        match function {
            Activation::Sigmoid => sigmoid_in_place(isa, x),
            Activation::Tanh => tanh_in_place(isa, x),
            Activation::Relu => x.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
            other => x.iter_mut().for_each(|x| *x = f32::from_f64(other.of(x.to_f64()))),
        }
    }
}

impl Scalar for f64 {
    /// The weights as they are, and `k`.
    type Weights = (Vec<f64>, usize);

    fn pack(_: Isa, weights: &[f64], _: usize, k: usize) -> (Vec<f64>, usize) {
        (weights.to_vec(), k)
    }

    fn product(_: Isa, _: &Threads, x: &[f64], (weights, k): &Self::Weights, bias: Option<&[f64]>, out: &mut [f64]) {
        let n = weights.len() / (*k).max(1);
        for (i, out) in out.iter_mut().enumerate() {
            let (x, weights) = (&x[i / n * k..][..*k], &weights[i % n * k..][..*k]);
            *out = bias.map_or(0.0, |bias| bias[i % n]) + x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>();
        }
    }

    fn activate(_: Isa, function: Activation, x: &mut [f64]) {
        x.iter_mut().for_each(|x| *x = function.of(*x));
    }
}

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
    /// Reads `x`, `[steps, batch, inputs]` or `[batch, steps, inputs]`, and updates the states `h` and (LSTM) `c`, both
    /// `[batch, hidden]`. `emit(step, sequence, h)` is called for every step of every sequence within its length.
    ///
    /// # Panics
    /// The lengths of the slices do not fit.
    pub fn run(
        &self,
        isa: Isa,
        threads: &Threads,
        x: &[R],
        h: &mut [R],
        c: &mut [R],
        mut emit: impl FnMut(usize, usize, &[R]),
    ) {
        let Layer { cell, inputs, hidden, .. } = *self.layer;
        let rows = cell.gates() * hidden;
        assert_eq!((x.len(), h.len()), (self.steps * self.batch * inputs, self.batch * hidden));
        assert!(self.lengths.is_none_or(|lengths| lengths.len() == self.batch));
        assert!(!matches!(cell, Cell::Lstm { .. }) || c.len() == h.len());
        let mut projected = vec![R::ZERO; self.steps * self.batch * rows];
        R::product(isa, threads, x, &self.layer.input, Some(&self.layer.bias), &mut projected);
        let ready = rows - cell.waiting() * hidden;
        let mut products = vec![R::ZERO; self.batch * ready];
        let mut scratch = vec![R::ZERO; hidden];
        for turn in 0..self.steps {
            R::product(isa, &Threads::serial(), h, &self.layer.state[0], None, &mut products);
            for b in 0..self.batch {
                let Some(step) = self.step(turn, b) else { continue };
                let row = if self.batch_first { b * self.steps + step } else { step * self.batch + b };
                let gates = &mut projected[row * rows..(row + 1) * rows];
                let state = &mut h[b * hidden..(b + 1) * hidden];
                let product = &products[b * ready..(b + 1) * ready];
                match cell {
                    Cell::Rnn => self.rnn(isa, gates, product, state),
                    Cell::Gru { .. } => self.gru(isa, gates, product, state, &mut scratch),
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
        let (zr, n) = gates.split_at_mut(2 * hidden);
        add(zr, &product[..2 * hidden]);
        self.activate(isa, self.activations[0], zr);
        let (z, r) = zr.split_at(hidden);
        if self.layer.cell.waiting() == 0 {
            for i in 0..hidden {
                n[i] += r[i] * (product[2 * hidden + i] + self.layer.reset_bias[i]);
            }
        } else {
            for i in 0..hidden {
                scratch[i] = r[i] * h[i];
            }
            let mut product = vec![R::ZERO; hidden];
            R::product(isa, &Threads::serial(), scratch, &self.layer.state[1], None, &mut product);
            add(n, &product);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn data(len: usize, seed: u32) -> Vec<f64> {
        (0..len as u32).map(|i| f64::from((i + seed).wrapping_mul(2_654_435_761) >> 8) / 1e7 - 0.8).collect()
    }

    /// What a pass gives: every emitted state, and the last states.
    fn outputs<R: Scalar>(isa: Isa, cell: Cell, reversed: bool, x: &[R], weights: [&[R]; 4]) -> Vec<f64> {
        let (batch, steps, hidden) = (3, 5, 7);
        let [w, r, b, p] = weights;
        let peepholes = matches!(cell, Cell::Lstm { .. }).then_some(p);
        let layer = Layer::new(isa, cell, w, r, Some(b), peepholes, hidden);
        let (mut h, mut c) = (x[..batch * hidden].to_vec(), x[..batch * hidden].to_vec());
        let activations = [Activation::Sigmoid, Activation::Tanh, Activation::Softsign];
        let lengths = Some(&[5, 2, 0][..]);
        let clip = Some(R::from_f64(0.9));
        let pass = Pass { layer: &layer, activations, clip, reversed, batch, steps, lengths, batch_first: reversed };
        let mut all = Vec::new();
        pass.run(isa, &Threads::serial(), x, &mut h, &mut c, |step, b, h| {
            all.extend([step as f64, b as f64]);
            all.extend(h.iter().map(|h| h.to_f64()));
        });
        all.extend(h.iter().chain(&c).map(|v| v.to_f64()));
        all
    }

    #[test]
    fn single_precision_follows_double_precision() {
        let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let cells = [
            Cell::Rnn,
            Cell::Gru { linear_before_reset: false },
            Cell::Gru { linear_before_reset: true },
            Cell::Lstm { input_forget: false },
            Cell::Lstm { input_forget: true },
        ];
        for (cell, reversed) in cells.into_iter().flat_map(|cell| [(cell, false), (cell, true)]) {
            let rows = cell.gates() * 7;
            let [x, w, r] = [data(60, 0), data(rows * 4, 1), data(rows * 7, 2)];
            let [b, p] = [data(2 * rows, 3), data(21, 4)];
            let expected = outputs(Isa::Scalar, cell, reversed, &x, [&w, &r, &b, &p]);
            for isa in Isa::available() {
                let [x, w, r, b, p] = [&x, &w, &r, &b, &p].map(|v| narrow(v));
                let found = outputs(isa, cell, reversed, &x, [&w, &r, &b, &p]);
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-5, "{isa:?} {cell:?} {reversed}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn a_step_is_its_formula() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let layer = Layer::new(
            Isa::Scalar,
            Cell::Gru { linear_before_reset: true },
            &[0.5, -1.0, 2.0],
            &[0.25, 0.75, -0.5],
            Some(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
            None,
            1,
        );
        let activations = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];
        let pass = Pass {
            layer: &layer,
            activations,
            clip: None,
            reversed: false,
            batch: 1,
            steps: 1,
            lengths: None,
            batch_first: false,
        };
        let mut h = [0.8];
        pass.run(Isa::Scalar, &Threads::serial(), &[1.5], &mut h, &mut [], |_, _, _| {});
        let (z, r) = (sigmoid(0.75 + 0.2 + 0.5), sigmoid(-1.5 + 0.6 + 0.7));
        let n = (3.0 + 0.3 + r * (-0.4 + 0.6)).tanh();
        assert!((h[0] - ((1.0 - z) * n + z * 0.8)).abs() < 1e-12);
    }

    #[test]
    fn activations_have_their_limits() {
        use Activation::*;
        let cases: [(Activation, f64, f64); 12] = [
            (Affine(2.0, 1.0), 3.0, 7.0),
            (Elu(2.0), -800.0, -2.0),
            (HardSigmoid(0.5, 0.5), 9.0, 1.0),
            (HardSigmoid(0.5, 0.5), -9.0, 0.0),
            (LeakyRelu(0.5), -2.0, -1.0),
            (Relu, -2.0, 0.0),
            (ScaledTanh(2.0, 0.5), 1e9, 2.0),
            (Sigmoid, -1e9, 0.0),
            (Softplus, 1e9, 1e9),
            (Softsign, 1.0, 0.5),
            (ThresholdedRelu(1.0), 1.0, 0.0),
            (ThresholdedRelu(1.0), 1.5, 1.5),
        ];
        for (activation, x, expected) in cases {
            assert_eq!(activation.of(x), expected, "{activation:?}({x})");
            let mut single = [x as f32];
            f32::activate(Isa::get(), activation, &mut single);
            assert_eq!(f64::from(single[0]), expected, "{activation:?}({x}) in single precision");
        }
    }
}
