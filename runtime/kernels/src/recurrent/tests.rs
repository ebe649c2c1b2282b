//! Compares layers with their formulas in double precision.

use super::*;
use crate::isa::Isa;

fn data(len: usize, seed: u32) -> Vec<f64> {
    (0..len as u32).map(|i| f64::from((i + seed).wrapping_mul(2_654_435_761) >> 8) / 1e7 - 0.8).collect()
}

/// The inputs of a layer with D directions.
struct Case {
    cell: Cell,
    hidden: usize,
    inputs: usize,
    directions: usize,
    batch: usize,
    steps: usize,
    lengths: Option<Vec<usize>>,
    batch_first: bool,
    activations: [Activation; 3],
    clip: Option<f64>,
    peepholes: bool,
}

const USUAL: [Activation; 3] = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];

impl Case {
    /// One direction with the standard activation functions.
    fn usual(cell: Cell, hidden: usize, batch: usize, steps: usize) -> Case {
        let (inputs, activations) = (3, USUAL);
        let (directions, lengths, batch_first, clip, peepholes) = (1, None, false, None, false);
        Case { cell, hidden, inputs, directions, batch, steps, lengths, batch_first, activations, clip, peepholes }
    }

    fn layer<R: Scalar>(&self, isa: Isa, direction: u32) -> Layer<R> {
        let Case { cell, hidden, inputs, activations, .. } = *self;
        let rows = cell.gates() * hidden;
        // Scaled like the sums of a small layer, so that the gates do not saturate.
        let scaled = |len: usize, seed: u32| {
            let scale = 1.0 / (hidden as f64).sqrt();
            let data = data(len, seed + 10 * direction);
            data.into_iter().map(|x| R::from_f64(f64::from((x * scale) as f32))).collect::<Vec<R>>()
        };
        let [input, state] = [scaled(rows * inputs, 1), scaled(rows * hidden, 2)];
        let [bias, peepholes] = [scaled(2 * rows, 3), scaled(3 * hidden, 4)];
        let definition =
            LayerDefinition { cell, hidden, activations, clip: self.clip.map(R::from_f64), reversed: direction == 1 };
        let peepholes = self.peepholes.then_some(&peepholes[..]);
        Layer::new(isa, definition, Weights { input: &input, state: &state, bias: Some(&bias), peepholes })
    }

    /// Returns every state of every sequence (0 beyond its length), then the last states h and c.
    fn outputs<R: Scalar>(&self, isa: Isa, threads: &Threads) -> Vec<R> {
        let Case { hidden, batch, steps, .. } = *self;
        let layers: Vec<Layer<R>> = (0..self.directions).map(|d| self.layer(isa, d as u32)).collect();
        let narrow =
            |len, seed| data(len, seed).into_iter().map(|x| R::from_f64(f64::from(x as f32))).collect::<Vec<R>>();
        let x = narrow(steps * batch * self.inputs, 5);
        let [mut h, mut c] = [6, 7].map(|seed| narrow(self.directions * batch * hidden, seed));
        let lengths = self.lengths.as_deref();
        let pass = Pass { layers: &layers, batch, steps, lengths, batch_first: self.batch_first };
        let mut workspace = vec![R::ZERO; pass.workspace(threads).expect("it is small")];
        let mut y = vec![R::ZERO; steps * self.directions * batch * hidden];
        pass.run(threads, &x, [&mut h, &mut c], &mut workspace, &mut y);
        [y, h, c].concat()
    }

    /// Asserts that every instruction set and 1, 2 and 3 threads give the same bits, which are close to double
    /// precision.
    fn check(&self, name: &str) {
        let expected = self.outputs::<f64>(Isa::SCALAR, &Threads::serial());
        let single = self.outputs::<f32>(Isa::SCALAR, &Threads::serial());
        for (i, (found, expected)) in single.iter().zip(&expected).enumerate() {
            assert!((f64::from(*found) - expected).abs() < 2e-6, "{name}, element {i}: {found} {expected}");
        }
        let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let single = bits(single);
        for (isa, count) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 2), (isa, 3)]) {
            let threads = Threads::new(count).expect("threads start");
            assert!(bits(self.outputs(isa, &threads)) == single, "{name}, {isa:?}, {count} threads");
        }
    }
}

const CELLS: [Cell; 5] = [
    Cell::Rnn,
    Cell::Gru { linear_before_reset: false },
    Cell::Gru { linear_before_reset: true },
    Cell::Lstm { input_forget: false },
    Cell::Lstm { input_forget: true },
];
const FUSED: [Cell; 2] = [CELLS[2], CELLS[3]];

#[test]
fn general_steps_follow_double_precision() {
    for (cell, batch_first) in CELLS.into_iter().flat_map(|cell| [(cell, false), (cell, true)]) {
        let case = Case {
            lengths: Some(vec![5, 2, 0]),
            directions: 2,
            activations: [Activation::Sigmoid, Activation::Tanh, Activation::Softsign],
            clip: Some(0.9),
            peepholes: matches!(cell, Cell::Lstm { .. }),
            batch_first,
            ..Case::usual(cell, 7, 3, 5)
        };
        case.check(&format!("{cell:?} {batch_first}"));
    }
}

#[test]
fn fused_steps_follow_double_precision() {
    for (cell, hidden) in
        FUSED.into_iter().flat_map(|cell| [1, 5, 16, 17, 33, 64, 65, 128, 200].map(|hidden| (cell, hidden)))
    {
        for (batch, steps) in [(1, 1), (1, 5), (2, 4), (3, 2), (4, 3), (5, 1), (7, 2), (9, 3)] {
            Case::usual(cell, hidden, batch, steps)
                .check(&format!("{cell:?}, {hidden} units, batch {batch}, {steps} steps"));
        }
    }
}

#[test]
fn fused_steps_leave_sequences_that_have_ended() {
    for (cell, batch_first) in FUSED.into_iter().flat_map(|cell| [(cell, false), (cell, true)]) {
        for lengths in [vec![3], vec![0, 6], vec![6, 1, 0, 2, 5, 5, 6], vec![2, 2, 2, 2, 2]] {
            let name = format!("{cell:?} {batch_first} {lengths:?}");
            let usual = Case::usual(cell, 19, lengths.len(), 6);
            Case { lengths: Some(lengths), directions: 2, batch_first, ..usual }.check(&name);
        }
    }
}

#[test]
fn empty_inputs_are_allowed() {
    for cell in CELLS {
        for (batch, steps) in [(0, 3), (3, 0), (0, 0)] {
            let name = format!("{cell:?}, batch {batch}, {steps} steps");
            Case { directions: 2, ..Case::usual(cell, 5, batch, steps) }.check(&name);
        }
        Case { inputs: 0, ..Case::usual(cell, 5, 3, 4) }.check(&format!("{cell:?}, no inputs"));
    }
}

#[test]
fn inputs_are_summed_in_pieces() {
    for (cell, inputs) in FUSED.into_iter().flat_map(|cell| [64, 129, 300].map(|inputs| (cell, inputs))) {
        for (batch, steps, hidden) in [(1, 1, 40), (1, 11, 20), (3, 40, 40)] {
            let name = format!("{cell:?}, {inputs} inputs, batch {batch}, {steps} steps, {hidden} units");
            Case { inputs, ..Case::usual(cell, hidden, batch, steps) }.check(&name);
        }
    }
}

/// Directions, sequences and units are split in turn.
#[test]
fn threads_share_what_is_large() {
    for (cell, directions, batch, hidden, steps) in
        FUSED.into_iter().flat_map(|cell| [(cell, 2, 1, 96, 40), (cell, 1, 5, 96, 20), (cell, 1, 1, 430, 5)])
    {
        let case = Case { directions, ..Case::usual(cell, hidden, batch, steps) };
        let layers: Vec<Layer<f32>> = (0..directions).map(|d| case.layer(Isa::get(), d as u32)).collect();
        let pass = Pass { layers: &layers, batch, steps, lengths: None, batch_first: false };
        assert!(pass.threads(&Threads::new(2).expect("threads start")) == 2, "{hidden} units are large");
        case.check(&format!("{cell:?}, {directions} directions, batch {batch}, {hidden} units"));
    }
}

#[test]
fn a_step_is_its_formula() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let cell = Cell::Gru { linear_before_reset: true };
    let definition = LayerDefinition { cell, hidden: 1, activations: USUAL, clip: None, reversed: false };
    let bias = Some(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6][..]);
    let weights = Weights { input: &[0.5, -1.0, 2.0], state: &[0.25, 0.75, -0.5], bias, peepholes: None };
    let layers = [Layer::new(Isa::SCALAR, definition, weights)];
    let pass = Pass { layers: &layers, batch: 1, steps: 1, lengths: None, batch_first: false };
    let (mut h, mut y) = ([0.8], [0.0]);
    let mut workspace = vec![0.0; pass.workspace(&Threads::serial()).expect("it is small")];
    pass.run(&Threads::serial(), &[1.5], [&mut h, &mut []], &mut workspace, &mut y);
    let (z, r) = (sigmoid(0.75 + 0.2 + 0.5), sigmoid(-1.5 + 0.6 + 0.7));
    let n = (3.0 + 0.3 + r * (-0.4 + 0.6)).tanh();
    assert!((h[0] - ((1.0 - z) * n + z * 0.8)).abs() < 1e-12);
    assert_eq!(y, h);
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

/// A step with a clip is not fused, even if nothing exceeds the clip.
#[test]
fn fused_steps_have_the_bits_of_the_general_ones() {
    for (cell, hidden, batch) in FUSED.into_iter().flat_map(|cell| [(cell, 37, 1), (cell, 150, 1), (cell, 70, 6)]) {
        let [fused, general] = [None, Some(1e9)].map(|clip| {
            let case = Case { clip, inputs: 130, ..Case::usual(cell, hidden, batch, 4) };
            case.outputs::<f32>(Isa::get(), &Threads::serial()).into_iter().map(f32::to_bits).collect::<Vec<_>>()
        });
        assert!(fused == general, "{cell:?}, {hidden} units, batch {batch}");
    }
}
