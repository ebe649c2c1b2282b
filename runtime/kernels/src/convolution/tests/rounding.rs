//! The rounding errors of Winograd's forms beside those of direct sums.

use super::*;
use crate::convolution::blocked::{DirectForm, WinogradForm};

/// The root mean square of a form's errors, for an image without padding and blocks without empty lanes.
fn error(form: &dyn ConvForm, shape: &Shape, [x, w]: [&[f32]; 2], expected: &[f64]) -> f64 {
    let blocking = Blocking::largest(Isa::widest());
    let case = ConvCase::new(blocking, shape, true);
    let plane = |[height, width]: [usize; 2]| height * width;
    let image = blocked(blocking, shape.batch, shape.channels, plane(shape.input), x);
    let to = Images { batch: shape.batch, channels: shape.outputs, plane: plane(shape.output) };
    let (mut out, mut rows) = (vec![f32::NAN; to.blocked_len(blocking)], vec![f32::NAN; to.len()]);
    let operands = ConvOperands { shape: &case.shape, bias: None, x: &image, out: &mut out, epilogue: Epilogue::NONE };
    form.pack(&case, w).run(&Threads::serial(), operands);
    from_blocks(blocking, &Threads::serial(), to, &out, &mut rows);
    let squares = rows.iter().zip(expected).map(|(&found, expected)| (f64::from(found) - expected).powi(2));
    (squares.sum::<f64>() / expected.len() as f64).sqrt()
}

/// The result by the definition, in double precision.
fn exact(shape: &Shape, operands: [&[f32]; 2]) -> Vec<f64> {
    let [x, w] = operands.map(|each| each.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    let mut out = vec![f64::NAN; shape.batch * shape.outputs * shape.pixels()];
    conv_plain(&Threads::serial(), shape, &w, None, &x, &mut out);
    out
}

#[test]
fn winograds_forms_round_little_more_than_direct_sums() {
    let line = |channels| {
        let sizes = [1, 256];
        Shape { input: sizes, output: sizes, kernel: [1, 3], before: [0, 1], ..same(1, channels, 32, 1, 1, 1) }
    };
    let mut wrong = Vec::new();
    for channels in [16, 64, 128, 256, 512] {
        for is_rectified in [false, true] {
            let square = same(1, channels, 32, 1, 16, 3);
            let forms = [
                (WinogradForm::TWO, square.clone(), 2.25),
                (WinogradForm::FOUR, square, 3.6),
                (WinogradForm::LINE, line(channels), 2.8),
            ];
            for (form, shape, most) in forms {
                let mut x = noise(shape.channels * shape.input[0] * shape.input[1], 1);
                if is_rectified {
                    x.iter_mut().for_each(|x| *x = x.max(0.0));
                }
                let w = noise(shape.outputs * shape.taps(), 2);
                let expected = exact(&shape, [&x, &w]);
                let [winograd, direct] =
                    [&form as &dyn ConvForm, &DirectForm].map(|form| error(form, &shape, [&x, &w], &expected));
                let ratio = winograd / direct;
                if ratio > most {
                    wrong.push(format!("{form:?}, {channels} channels, rectified {is_rectified}: {ratio:.2}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
