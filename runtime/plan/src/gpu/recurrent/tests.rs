//! Compares recurrent layers on the emulator with the CPU.

use super::*;
use crate::ops::recurrent::Direction;
use crate::testing::{fault, run_outputs, tensor, Tested};

fn floats(dims: &[usize], seed: usize) -> Option<Value> {
    let data: Vec<f32> =
        (0..dims.iter().product()).map(|i: usize| ((i + seed) * 7919 % 101) as f32 / 200.0 - 0.25).collect();
    Some(tensor(&data, dims))
}

fn directions(functions: &[Activation]) -> Vec<Direction> {
    let direction = |reversed| Direction { reversed, activations: functions.to_vec() };
    vec![direction(true), direction(false)]
}

/// Inputs of two directions for `[steps, batch]` sequences with 3 inputs.
fn inputs([steps, batch]: [usize; 2], rows: usize, hidden: usize) -> Vec<Option<Value>> {
    vec![
        floats(&[steps, batch, 3], 0),
        floats(&[2, rows, 3], 1),
        floats(&[2, rows, hidden], 2),
        floats(&[2, 2 * rows], 3),
    ]
}

#[test]
fn every_function_and_variant_matches_the_cpu() {
    use Activation::*;
    let (hidden, clip, batch_first) = (4, None, false);
    let functions = [
        Affine(0.5, 0.25),
        Elu(1.5),
        HardSigmoid(0.2, 0.5),
        LeakyRelu(0.1),
        Relu,
        ScaledTanh(1.7, 0.6),
        Sigmoid,
        Softplus,
        Softsign,
        Tanh,
        ThresholdedRelu(0.1),
    ];
    for (i, &f) in functions.iter().enumerate() {
        let [g, h] = [functions[(i + 3) % 11], functions[(i + 7) % 11]];
        let variant = i % 2 == 0;
        let lstm = Lstm { hidden, directions: directions(&[f, g, h]), clip, input_forget: variant, batch_first };
        let gru = Gru { hidden, directions: directions(&[f, g]), clip, linear_before_reset: variant, batch_first };
        let rnn = Rnn { hidden, directions: directions(&[f]), clip, batch_first };
        let ops: [(&dyn Tested, usize); 3] = [(&lstm, 16), (&gru, 12), (&rnn, 4)];
        for (op, rows) in ops {
            let mut inputs = inputs([3, 2], rows, hidden);
            inputs.truncate(if variant { 3 } else { 4 });
            run_outputs(op, &inputs, 2).expect("it runs");
        }
    }
}

#[test]
fn many_units_and_none() {
    let (clip, batch_first) = (None, false);
    for (steps, batch, hidden) in [(2, 3, 130), (1, 1, 1), (0, 2, 4), (2, 0, 4)] {
        let lstm = directions(&[Activation::Sigmoid, Activation::Tanh, Activation::Tanh]);
        let lstm = Lstm { hidden, directions: lstm, clip, input_forget: false, batch_first };
        let gru = directions(&[Activation::Sigmoid, Activation::Tanh]);
        let gru = Gru { hidden, directions: gru, clip, linear_before_reset: false, batch_first };
        let ops: [(&dyn Tested, usize, usize); 2] = [(&lstm, 4, 3), (&gru, 3, 2)];
        for (op, gates, outputs) in ops {
            let mut inputs = inputs([steps, batch], gates * hidden, hidden);
            inputs.extend([None, floats(&[2, batch, hidden], 4)]);
            run_outputs(op, &inputs, outputs).expect("it runs");
        }
    }
}

#[test]
fn lengths_beyond_the_steps_are_reported() {
    let op = Rnn { hidden: 4, directions: directions(&[Activation::Tanh]), clip: None, batch_first: false };
    for (lengths, expected) in [([3, 0], false), ([4, 5], true), ([1, -1], true)] {
        let lengths = Some(tensor(&lengths, &[2]));
        let inputs: Vec<Value> = inputs([3, 2], 4, 4).into_iter().chain([lengths]).flatten().collect();
        assert_eq!(fault(&op, &inputs), expected, "{inputs:?}");
    }
}
