//! Layers against their formulas in double precision.

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
    let mut workspace = vec![R::ZERO; pass.workspace().expect("it is small")];
    pass.run(isa, &Threads::serial(), x, [&mut h, &mut c], &mut workspace, |step, b, h| {
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
    let mut workspace = vec![0.0; pass.workspace().expect("it is small")];
    pass.run(Isa::Scalar, &Threads::serial(), &[1.5], [&mut h, &mut []], &mut workspace, |_, _, _| {});
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

/// With a clip that clips nothing, a step is not fused.
#[test]
fn fused_steps_have_the_bits_of_the_general_ones() {
    let narrow = |len: usize, seed: u32| data(len, seed).iter().map(|&x| x as f32).collect::<Vec<_>>();
    let (hidden, inputs, steps) = (37, 5, 4);
    for cell in [Cell::Lstm { input_forget: false }, Cell::Gru { linear_before_reset: true }] {
        let rows = cell.gates() * hidden;
        let [x, w, r, b] = [(steps * inputs, 0), (rows * inputs, 1), (rows * hidden, 2), (2 * rows, 3)]
            .map(|(len, seed)| narrow(len, seed));
        for isa in Isa::available() {
            let layer = Layer::new(isa, cell, &w, &r, Some(&b), None, hidden);
            let [fused, general] = [None, Some(1e9)].map(|clip| {
                let activations = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];
                let (reversed, batch_first, lengths) = (false, false, None);
                let pass = Pass { layer: &layer, activations, clip, reversed, batch: 1, steps, lengths, batch_first };
                let (mut h, mut c) = (narrow(hidden, 4), narrow(hidden, 5));
                let mut workspace = vec![0.0; pass.workspace().expect("it is small")];
                pass.run(isa, &Threads::serial(), &x, [&mut h, &mut c], &mut workspace, |_, _, _| {});
                [h, c].concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            });
            assert_eq!(fused, general, "{cell:?} {isa:?}");
        }
    }
}
