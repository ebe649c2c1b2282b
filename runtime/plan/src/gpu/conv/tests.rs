//! Tests convolutions on the emulator.

use candle_plan_descriptors::conv::Shape;
use candle_plan_descriptors::program::{Binary, Instruction, Operand, Program, Unary};
use half::{bf16, f16};

use super::case::Case;
use super::planner::{Choice, FORMS};
use super::{convolve, Operands};
use crate::dtype::Element;
use crate::gpu::{download, upload};
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::padding::Padding;
use crate::testing::{convolved_on_host, run, tensor};
use crate::value::Value;

/// A generator of pseudorandom numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn axes(&mut self, axes: usize, from: usize, to: usize) -> Vec<usize> {
        (0..axes).map(|_| from + self.below(to - from + 1)).collect()
    }

    fn numbers(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.below(2001) as f64 / 1000.0 - 1.0).collect()
    }
}

fn elements<T: Element>(draw: &mut Draw, dims: &[usize], from: impl Fn(f64) -> T) -> Value {
    let data: Vec<T> = draw.numbers(dims.iter().product()).into_iter().map(from).collect();
    tensor(&data, dims)
}

/// Draws a tensor of one of the dtypes.
fn of_dtype(draw: &mut Draw, dtype: usize, dims: &[usize]) -> Option<Value> {
    Some(match dtype {
        0 => elements(draw, dims, |x| x),
        1 => elements(draw, dims, f16::from_f64),
        2 => elements(draw, dims, bf16::from_f64),
        _ => elements(draw, dims, |x| x as f32),
    })
}

fn padding(draw: &mut Draw, axes: usize) -> Padding {
    match draw.below(6) {
        0 => Padding::SameUpper,
        1 => Padding::SameLower,
        _ => Padding::Explicit((0..axes).map(|_| [draw.below(4), draw.below(4)]).collect()),
    }
}

/// Draws an epilogue (none, a limit, or a program) and its operands for `outputs` outputs.
fn epilogue(draw: &mut Draw, dtype: usize, outputs: usize, axes: usize) -> (Option<Program>, Vec<Option<Value>>) {
    let dims: Vec<usize> = [outputs].into_iter().chain(vec![1; axes]).collect();
    match draw.below(3) {
        0 if dtype > 2 => (Some(Program { code: vec![Instruction::Unary(Unary::Relu)] }), Vec::new()),
        1 if dtype > 2 => {
            let code = vec![Instruction::Binary(Binary::Mul, Operand::Input(3)), Instruction::Unary(Unary::Sigmoid)];
            (Some(Program { code }), vec![of_dtype(draw, dtype, &dims)])
        }
        _ => (None, Vec::new()),
    }
}

/// X and the drawn sizes. There are few elements, and the window often does not fit.
struct Drawn {
    groups: usize,
    x: Vec<usize>,
    outputs: usize,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    dtype: usize,
}

impl Drawn {
    fn new(draw: &mut Draw) -> Drawn {
        let (axes, groups) = (1 + draw.below(2), draw.one_of(&[1, 1, 1, 2, 3]));
        let mut x = vec![1 + draw.below(2), groups * draw.one_of(&[1, 2, 5, 19])];
        x.extend(draw.axes(axes, 1, 9));
        Drawn {
            groups,
            x,
            outputs: draw.one_of(&[1, 3, 16, 20, 35]),
            kernel: draw.axes(axes, 1, 5),
            strides: draw.axes(axes, 1, 3),
            dilations: draw.axes(axes, 1, 2),
            dtype: draw.below(6),
        }
    }

    fn axes(&self) -> usize {
        self.kernel.len()
    }

    /// Draws X, weights whose first two dimensions are given, and maybe a bias.
    fn inputs(&self, draw: &mut Draw, weights: [usize; 2]) -> Vec<Option<Value>> {
        let w = [&weights[..], &self.kernel].concat();
        let bias = [self.groups * self.outputs];
        let bias = if draw.below(2) == 0 { of_dtype(draw, self.dtype, &bias) } else { None };
        vec![of_dtype(draw, self.dtype, &self.x), of_dtype(draw, self.dtype, &w), bias]
    }
}

#[test]
fn random_convolutions() {
    let (mut draw, mut done) = (Draw(1), 0);
    while done < 150 {
        let it = Drawn::new(&mut draw);
        let outputs = it.groups * it.outputs;
        let (epilogue, operands) = epilogue(&mut draw, it.dtype, outputs, it.axes());
        let pads = padding(&mut draw, it.axes());
        let mut inputs = it.inputs(&mut draw, [outputs, it.x[1] / it.groups]);
        let Drawn { groups, strides, dilations, .. } = it;
        let conv = Conv { strides, dilations, pads, groups, epilogue };
        inputs.extend(operands);
        match run(&conv, &inputs) {
            Ok(_) => done += 1,
            Err(error) => assert!(error.to_string().contains("wider than the input"), "{conv:?}: {error}"),
        }
    }
}

#[test]
fn random_transposed_convolutions() {
    let (mut draw, mut done) = (Draw(2), 0);
    while done < 120 {
        let it = Drawn::new(&mut draw);
        let (epilogue, operands) = epilogue(&mut draw, it.dtype, it.groups * it.outputs, it.axes());
        let (pads, output_padding) = (padding(&mut draw, it.axes()), draw.axes(it.axes(), 0, 2));
        let output_shape = if draw.below(5) == 0 { Some(draw.axes(it.axes(), 0, 20)) } else { None };
        let mut inputs = it.inputs(&mut draw, [it.x[1], it.outputs]);
        let Drawn { groups, strides, dilations, .. } = it;
        let conv = ConvTranspose { strides, dilations, pads, output_padding, output_shape, groups, epilogue };
        inputs.extend(operands);
        match run(&conv, &inputs) {
            Ok(_) => done += 1,
            Err(error) => assert!(error.to_string().contains("leave nothing"), "{conv:?}: {error}"),
        }
    }
}

/// A shape that exceeds every tile, with depths that are not multiples of the depth read at a time.
fn wide_shape(transposed: bool) -> Shape {
    Shape {
        batch: 2,
        channels: 2 * 7,
        outputs: 2 * 131,
        groups: 2,
        input: [7, 9],
        output: if transposed { [9, 17] } else { [8, 5] },
        kernel: [3, 2],
        strides: [1, 2],
        dilations: [2, 1],
        before: [2, 1],
    }
}

/// Asserts that every form that can compute the wide shape computes it as the definition does, within limits and up to
/// rounding. A form that splits sums has these numbers of parts.
fn check_forms<T: Element>(
    transposed: bool,
    from: impl Fn(f64) -> T,
    to: impl Fn(T) -> f64,
    parts: &[usize],
    rounding: f64,
) {
    let (gpu, mut draw, s) =
        (candle_plan_device_emulator::open().expect("enough memory"), Draw(3), wide_shape(transposed));
    let mut data = |dims: &[usize]| {
        let value = elements(&mut draw, dims, &from);
        let wide: Vec<f64> = value.tensor().unwrap().read::<T>().unwrap().iter().map(|&x| to(x)).collect();
        (upload(&gpu, &value).unwrap(), wide)
    };
    let (channels, outputs) = (s.channels / s.groups, s.outputs / s.groups);
    let weights = if transposed { [s.channels, outputs] } else { [s.outputs, channels] };
    let (x, x_data) = data(&[s.batch, s.channels, s.input[0], s.input[1]]);
    let (w, w_data) = data(&[weights[0], weights[1], s.kernel[0], s.kernel[1]]);
    let (bias, bias_data) = data(&[s.outputs]);
    let expected = convolved_on_host(transposed, &s, [&w_data, &bias_data, &x_data]);
    let operands = Operands { x: x.tensor().unwrap(), w: w.tensor().unwrap(), bias: bias.tensor().ok() };
    let case = Case { shape: &s, transposed, dtype: operands.x.dtype() };
    let fitting = FORMS.iter().copied().filter(|form| form.refusal(&case).is_none());
    let choices = fitting.flat_map(|form| {
        let numbers = if form.splits() { parts } else { &[1] };
        numbers.iter().map(move |&parts| Choice { form, parts })
    });
    for choice in choices {
        let y = convolve(&gpu, case, operands, [-0.5, 1.0], choice).unwrap();
        let y = download(&y).unwrap();
        for (at, (&y, expected)) in y.read::<T>().unwrap().iter().zip(&expected).enumerate() {
            let (y, expected) = (to(y), expected.clamp(-0.5, 1.0));
            assert!((y - expected).abs() < rounding, "{choice} {transposed}: {at} is {y} for {expected}");
        }
    }
}

#[test]
fn every_form_gives_the_same_result() {
    for transposed in [false, true] {
        check_forms(transposed, |x| x as f32, f64::from, &[1, 3], 1e-5);
        check_forms(transposed, |x| x, |x| x, &[1, 2], 1e-13);
        check_forms(transposed, f16::from_f64, f64::from, &[2], 1e-3);
        check_forms(transposed, bf16::from_f64, f64::from, &[1], 1e-2);
    }
}

#[test]
fn padding_is_zero_and_nan_propagates() {
    let conv = |epilogue| Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: Padding::Explicit(vec![[1, 1], [1, 1]]),
        groups: 1,
        epilogue,
    };
    let relu = Some(Program { code: vec![Instruction::Unary(Unary::Relu)] });
    for (outputs, epilogue) in [(1, None), (20, None), (1, relu.clone()), (20, relu)] {
        let mut x = vec![1f32; 25];
        (x[0], x[24]) = (f32::NAN, f32::INFINITY);
        let w = Some(tensor(&vec![0.5f32; 9 * outputs], &[outputs, 1, 3, 3]));
        run(&conv(epilogue), &[Some(tensor(&x, &[1, 1, 5, 5])), w]).unwrap();
    }
}

#[test]
fn empty_and_single_element_results() {
    let f = |dims: &[usize]| Some(tensor(&vec![2f32; dims.iter().product()], dims));
    let conv = |pad: usize| Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: Padding::Explicit(vec![[pad; 2]; 2]),
        groups: 1,
        epilogue: None,
    };
    for (x, w, pad) in [
        ([0, 3, 4, 4], [17, 3, 1, 1], 0),
        ([2, 0, 4, 4], [17, 0, 1, 1], 0),
        ([2, 0, 4, 4], [3, 0, 3, 3], 1),
        ([2, 3, 4, 4], [0, 3, 1, 1], 0),
        ([1, 1, 1, 1], [1, 1, 1, 1], 0),
        ([1, 2, 0, 4], [17, 2, 2, 2], 2),
    ] {
        let bias = f(&[w[0]]);
        run(&conv(pad), &[f(&x), f(&w), bias]).unwrap();
    }
}

#[test]
fn long_sums_are_split_into_parts() {
    let mut draw = Draw(4);
    let (strides, dilations, pads) = (vec![1], vec![1], Padding::Explicit(vec![[0, 0]]));
    let conv = Conv { strides, dilations, pads, groups: 1, epilogue: None };
    let inputs = [of_dtype(&mut draw, 3, &[1, 150, 70]), of_dtype(&mut draw, 3, &[40, 150, 2])];
    run(&conv, &inputs).unwrap();
}
