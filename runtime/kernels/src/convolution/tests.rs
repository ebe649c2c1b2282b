//! Runs every form of the table against the definition: the tests of a new form are here already.

mod dilated;
mod positions;
mod rounding;

use super::planner::{fastest_form, FLOAT};
use super::within_step::WithinStep;
use super::*;
use crate::blocking::tests::every;
use crate::convolution::blocked::tests::blocked;
use crate::convolution::blocked::{from_blocks, Images};
use crate::convolution::form::ConvForm;
use crate::convolution::rows::conv_plain;
use crate::convolution::rows::tests::{draw, same, Draw};
use crate::gemm::tests::noise;
use crate::isa::{Isa, Level};

/// The largest error relative to the number of an output's products, and that of forms whose transforms have large
/// factors.
const TOLERANCE: f64 = 1e-6;
const TOLERANCE_OF_FOUR: f64 = 3e-6;

pub(super) const LIMITS: [f32; 2] = [-0.5, 1.0];

/// The operands of a convolution, and its result by the definition.
struct Operands {
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Vec<f32>,
    expected: Vec<f64>,
}

impl Operands {
    fn of(shape: &Shape) -> Operands {
        let x = noise(shape.batch * shape.channels * shape.input[0] * shape.input[1], 1);
        let (w, bias) = (noise(shape.outputs * shape.taps(), 2), noise(shape.outputs, 3));
        let [x64, w64, bias64] = [&x, &w, &bias].map(|x| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        let mut expected = vec![f64::NAN; shape.batch * shape.outputs * shape.pixels()];
        conv_plain(&Threads::serial(), shape, &w64, Some(&bias64), &x64, &mut expected);
        expected.iter_mut().for_each(|x| *x = x.clamp(f64::from(LIMITS[0]), f64::from(LIMITS[1])));
        Operands { x, w, bias, expected }
    }

    /// See [`run_in_layouts`].
    fn run(
        &self,
        blocking: Blocking,
        layouts: [ImageLayout; 2],
        shape: &Shape,
        compute: impl FnOnce(ConvOperands),
    ) -> Vec<f32> {
        run_in_layouts(blocking, layouts, shape, [&self.x, &self.bias], compute)
    }

    /// Compares results with the definition, and with each other bit by bit.
    fn compare(&self, results: &[Vec<f32>], tolerance: f64, shape: &Shape, name: &str) {
        let Some(first) = results.first() else { return };
        let bound = tolerance * (shape.taps() as f64 + 5.0);
        for (i, (&found, expected)) in first.iter().zip(&self.expected).enumerate() {
            assert!((f64::from(found) - expected).abs() <= bound, "{name} {shape:?} {i}: {found} {expected}");
        }
        assert!(results.iter().all(|other| other == first), "{name} {shape:?}: not the same bits everywhere");
    }
}

/// Calls `compute` with an image in the first layout, for a result in the second. The epilogue also multiplies each
/// element by a number that depends on its place. Returns the result without these factors, in rows. `bias` may be empty.
pub(super) fn run_in_layouts(
    blocking: Blocking,
    [image, result]: [ImageLayout; 2],
    shape: &Shape,
    [x, bias]: [&[f32]; 2],
    compute: impl FnOnce(ConvOperands),
) -> Vec<f32> {
    let plane = shape.input[0] * shape.input[1];
    let to = Images { batch: shape.batch, channels: shape.outputs, plane: shape.pixels() };
    let moved = (image == ImageLayout::Blocks).then(|| blocked(blocking, shape.batch, shape.channels, plane, x));
    let (unit, length) = match result {
        ImageLayout::Rows => (1, to.len()),
        ImageLayout::Blocks => (blocking.block(), to.blocked_len(blocking)),
    };
    // Powers of two, which change no bit of the result when they are divided out again.
    let factor = |place: usize| [1.0, 2.0, 4.0, 8.0, 16.0][place / unit % 5];
    let finish = |run: &mut [f32], offset: usize| {
        run.iter_mut().enumerate().for_each(|(i, x)| *x *= factor(offset + i));
    };
    let epilogue = Epilogue { residual: None, limits: LIMITS, finish: Some(&finish) };
    let mut out = vec![f32::NAN; length];
    let (bias, x) = (Some(bias).filter(|bias| !bias.is_empty()), moved.as_deref().unwrap_or(x));
    compute(ConvOperands { shape, bias, x, out: &mut out, epilogue });
    out.iter_mut().enumerate().for_each(|(i, x)| *x /= factor(i));
    if result == ImageLayout::Rows {
        return out;
    }
    let mut rows = vec![f32::NAN; to.len()];
    from_blocks(blocking, &Threads::serial(), to, &out, &mut rows);
    rows
}

/// The name of a form, which is the same for every case.
fn name(form: &dyn ConvForm) -> String {
    form.name(&ConvCase::new(Blocking::largest(Isa::SCALAR), &same(1, 1, 1, 1, 1, 1), true))
}

fn tolerance(form: &dyn ConvForm) -> f64 {
    if name(form).contains("F(4, 3)") {
        TOLERANCE_OF_FOUR
    } else {
        TOLERANCE
    }
}

/// The same convolution of more and larger images.
fn enlarged(shape: &Shape) -> Shape {
    let [input, output] = [shape.input, shape.output].map(|sizes| sizes.map(|size| size + 1));
    Shape { batch: shape.batch + 1, input, output, ..shape.clone() }
}

/// Checks every form that can compute a convolution, in its own layouts and within the step, with every instruction set,
/// with every size of blocks, and with several threads. The weights are packed for other sizes, if the form fits them.
fn check(shape: &Shape) {
    let operands = Operands::of(shape);
    for &form in FLOAT {
        let (mut own, mut within) = (Vec::new(), Vec::new());
        for (blocking, count) in every().flat_map(|blocking| [(blocking, 1), (blocking, 3)]) {
            let (case, threads) = (ConvCase::new(blocking, shape, true), Threads::new(count).unwrap());
            if form.fits(&case) {
                let run = |packed: &dyn PackedConv, layouts: [ImageLayout; 2]| {
                    operands.run(blocking, layouts, &case.shape, |operands| packed.run(&threads, operands))
                };
                let other = ConvCase::new(blocking, &enlarged(shape), true);
                let packed = form.pack(if form.fits(&other) { &other } else { &case }, &operands.w);
                own.push(run(&*packed, form.layouts()));
                if form.layouts() != [ImageLayout::Rows; 2] {
                    within.push(run(&*WithinStep::boxed(blocking, form.layouts(), packed), [ImageLayout::Rows; 2]));
                }
            }
        }
        operands.compare(&own, tolerance(form), shape, &name(form));
        operands.compare(&within, tolerance(form), shape, &name(form));
    }
    check_choice(shape, &operands);
}

/// Checks that the cheapest listed form is chosen and computes the convolution, in both layouts, and whether memory is
/// low or not.
fn check_choice(shape: &Shape, operands: &Operands) {
    let cases = Blocking::all(Isa::widest()).flat_map(|blocking| [(blocking, false), (blocking, true)]);
    for (blocking, may_transform) in cases {
        let case = ConvCase::new(blocking, shape, may_transform);
        let (listed, planned) = (alternatives(&case), PlannedConv::new(&case));
        for result in [ImageLayout::Rows, ImageLayout::Blocks] {
            let of_layout = listed.iter().filter(|each| each.in_blocks == (result == ImageLayout::Blocks));
            let Some(cheapest) = of_layout.min_by(|a, b| a.time.total_cmp(&b.time)) else { continue };
            let (weights, image) = match (&planned, result) {
                (None, _) => (ConvWeights::new(&case, result, &operands.w), ImageLayout::Rows),
                (Some(planned), ImageLayout::Rows) => (planned.pack(result, &operands.w), result),
                (Some(planned), _) => (planned.pack(result, &operands.w), planned.image_for_blocks()),
            };
            assert_eq!(weights.form(), cheapest.form, "{case:?}");
            let form = *FLOAT.iter().find(|form| cheapest.form.starts_with(&name(**form))).unwrap();
            assert!(form.fits(&case), "{case:?}: {form:?}");
            let run = |operands: ConvOperands| weights.run(&Threads::serial(), operands);
            let found = operands.run(blocking, [image, result], shape, run);
            operands.compare(&[found], tolerance(form), shape, weights.form());
        }
    }
}

/// Channels, outputs and groups: of every form, with whole and partial blocks.
const SIZES: [[usize; 3]; 16] = [
    [1, 1, 1],
    [3, 9, 1],
    [8, 24, 1],
    [16, 16, 1],
    [17, 8, 1],
    [24, 40, 1],
    [33, 17, 1],
    [40, 1, 1],
    [32, 64, 2],
    [48, 48, 3],
    [6, 9, 3],
    [20, 4, 2],
    [5, 5, 5],
    [16, 16, 16],
    [17, 17, 17],
    [33, 33, 33],
];

/// A shape with the sizes of `source`'s choice.
fn sized(source: &mut Draw, shape: Shape) -> Shape {
    let [channels, outputs, groups] = SIZES[source.pair(SIZES.len())[0]];
    Shape { channels, outputs, groups, ..shape }
}

#[test]
fn random_shapes() {
    let mut source = Draw(3);
    let shapes: Vec<Shape> = std::iter::repeat_with(|| draw(&mut source, false)).flatten().take(500).collect();
    shapes.into_iter().for_each(|shape| check(&sized(&mut source, shape)));
}

#[test]
fn shapes_of_several_parts_and_tasks() {
    for shape in [
        same(1, 40, 70, 1, 30, 3),
        same(2, 64, 64, 2, 20, 5),
        same(1, 64, 48, 1, 40, 1),
        same(1, 300, 30, 1, 7, 3),
        same(2, 40, 40, 40, 30, 3),
        Shape { strides: [2, 2], output: [30, 30], ..same(1, 40, 32, 1, 60, 3) },
        same(0, 4, 4, 1, 5, 3),
        Shape { output: [0, 5], ..same(1, 24, 24, 1, 5, 3) },
        same(1, 0, 3, 1, 5, 3),
        Shape { input: [0, 9], output: [2, 9], before: [2, 1], ..same(2, 40, 33, 1, 1, 3) },
        Shape { input: [9, 0], output: [9, 5], before: [1, 4], ..same(1, 16, 16, 1, 1, 3) },
    ] {
        check(&shape);
    }
}

#[test]
fn random_shapes_of_three_by_three() {
    let mut source = Draw(5);
    for _ in 0..60 {
        let [pads, cut] = [source.pair(4), source.pair(3)];
        let input = source.pair(30).map(|size| size + 3);
        let [channels, outputs] = [[16, 17, 24, 40], [1, 8, 24, 40]].map(|sizes| source.one_of(&sizes));
        let output = [0, 1].map(|a| input[a] + pads[a] - 2 + cut[a]);
        let before = pads.map(|pad| pad as isize);
        check(&Shape { input, output, before, ..same(1, channels, outputs, 1, 1, 3) });
    }
}

#[test]
fn random_windows_along_a_line() {
    let mut source = Draw(17);
    for _ in 0..50 {
        let [taps, dilation] = [source.one_of(&[3, 4, 5, 7, 11]), source.one_of(&[1, 1, 2, 5])];
        let [channels, outputs] = [[16, 17, 24, 40], [1, 8, 24, 40]].map(|sizes| source.one_of(&sizes));
        let [length, across] = source.pair(40).map(|size| size + 1);
        let [pads, more] = source.pair(1 + taps * dilation);
        let Some(output) = (length + pads + more).checked_sub((taps - 1) * dilation) else { continue };
        let lying = Shape {
            input: [across, length],
            output: [across, output],
            kernel: [1, taps],
            dilations: [1, dilation],
            before: [0, pads as isize],
            ..same(source.one_of(&[1, 1, 2]), channels, outputs, 1, 1, 1)
        };
        let turned = |[a, b]: [usize; 2]| [b, a];
        check(&lying);
        check(&Shape {
            input: turned(lying.input),
            output: turned(lying.output),
            kernel: turned(lying.kernel),
            dilations: turned(lying.dilations),
            before: [lying.before[1], 0],
            ..lying
        });
    }
}

#[test]
fn depthwise_windows_of_every_tile() {
    let mut source = Draw(13);
    for (kernel, stride) in [(1, 1), (3, 1), (5, 1), (7, 1), (3, 2), (5, 2), (7, 2), (9, 1)] {
        for _ in 0..12 {
            let [pads, more] = [source.pair(kernel), source.pair(kernel)];
            let input = source.pair(26).map(|size| size + kernel);
            let output = [0, 1].map(|a| (input[a] + pads[a] + more[a] - kernel) / stride + 1);
            let before = pads.map(|pad| pad as isize);
            check(&Shape { input, output, before, strides: [stride; 2], ..same(1, 17, 17, 17, 1, kernel) });
        }
    }
    check(&Shape { before: [-1, -2], output: [9, 6], ..same(1, 16, 16, 16, 12, 3) });
    check(&Shape { before: [0, 1 << 20], dilations: [1 << 40, 1], ..same(1, 16, 16, 16, 4, 1) });
}

#[test]
fn every_form_is_listed_by_its_name() {
    let point = same(1, 16, 16, 1, 28, 3);
    let line = Shape { input: [1, 90], output: [1, 90], kernel: [1, 3], before: [0, 1], ..same(1, 16, 16, 1, 1, 1) };
    let shapes = [same(1, 3, 16, 1, 28, 3), same(1, 16, 16, 16, 28, 3), same(1, 64, 64, 1, 1, 1), point, line];
    let listed = shapes.map(|shape| alternatives(&ConvCase::new(Blocking::largest(Isa::widest()), &shape, true)));
    let names: Vec<&str> = listed.iter().flatten().map(|each| each.form.as_str()).collect();
    for form in FLOAT {
        let name = name(*form);
        let within = format!("{name} within the step");
        assert!(names.contains(&name.as_str()), "{form:?} fits no shape of this test: add one to `shapes`");
        assert_eq!(names.contains(&within.as_str()), form.layouts() != [ImageLayout::Rows; 2], "{form:?}");
    }
}

#[test]
fn few_outputs_stay_in_rows() {
    let signal =
        Shape { input: [1, 2176], output: [1, 16], kernel: [1, 256], strides: [1, 128], ..same(1, 1, 258, 1, 1, 1) };
    for (shape, is_worth_it, least) in [
        (same(1, 64, 64, 1, 56, 3), true, Level::Neon),
        // With AVX2, both take about the same time.
        (Shape { before: [0, 0], ..signal }, true, Level::Avx512),
        (same(1, 8, 4, 1, 100, 7), false, Level::Neon),
        (same(1, 32, 1, 1, 100, 3), false, Level::Neon),
        (same(1, 64, 6, 1, 30, 1), false, Level::Neon),
    ] {
        for blocking in every().filter(|blocking| blocking.isa().level() >= least) {
            let case = ConvCase::new(blocking, &shape, true);
            let chosen = fastest_form(&case, ImageLayout::Rows).unwrap().name();
            let listed = alternatives(&case);
            assert_eq!(chosen.ends_with(" within the step"), is_worth_it, "{chosen}: {case:?} {listed:#?}");
            let is_gain =
                PlannedConv::new(&case).map(|planned| planned.times()).is_some_and(|[rows, blocks]| rows > blocks);
            assert_eq!(is_gain, is_worth_it, "gain of blocks: {case:?} {listed:#?}");
        }
    }
}

#[test]
fn a_saving_does_not_raise_the_time_in_rows_above_that_of_the_fastest_form() {
    // In rows, the step converts its image: with a window of 25 taps, this takes less time than the shuffles of rows.
    let shape = same(1, 32, 32, 32, 28, 5);
    for blocking in every() {
        let case = ConvCase::new(blocking, &shape, true);
        let fastest = fastest_form(&case, ImageLayout::Rows).unwrap();
        let [rows, blocks] = PlannedConv::new(&case).unwrap().times();
        assert!(fastest.name().ends_with(" within the step"), "{fastest:?}");
        assert!(blocks < rows && rows <= fastest.time(), "{blocks} {rows} {fastest:?}");
    }
}

/// Runs a form on an image of noise, in its own layouts.
fn run_form(
    packed: &dyn PackedConv,
    blocking: Blocking,
    layouts: [ImageLayout; 2],
    shape: &Shape,
    residual: Option<Residual>,
) -> Vec<f32> {
    let of_layout = |layout: ImageLayout, images: Images| match layout {
        ImageLayout::Rows => images.len(),
        ImageLayout::Blocks => images.blocked_len(blocking),
    };
    let images = |channels: usize, [h, w]: [usize; 2]| Images { batch: shape.batch, channels, plane: h * w };
    let x = noise(of_layout(layouts[0], images(shape.channels, shape.input)), 1);
    let length = of_layout(layouts[1], images(shape.outputs, shape.output));
    let mut out = if matches!(residual, Some(Residual::InPlace)) { noise(length, 7) } else { vec![f32::NAN; length] };
    let limits = if residual.is_some() { LIMITS } else { Epilogue::NO_LIMITS };
    let epilogue = Epilogue { residual, limits, finish: None };
    packed.run(&Threads::new(2).unwrap(), ConvOperands { shape, bias: None, x: &x, out: &mut out, epilogue });
    out
}

#[test]
fn residuals_are_added_before_outputs_are_clamped() {
    let line = Shape { input: [1, 90], output: [1, 90], kernel: [1, 3], before: [0, 1], ..same(2, 40, 24, 1, 1, 1) };
    let stem = Shape { strides: [2, 2], output: [15, 15], ..same(1, 3, 24, 1, 30, 3) };
    let mut adding = 0;
    let dilated = Shape { dilations: [5, 9], before: [5, 9], ..same(2, 40, 24, 1, 30, 3) };
    for shape in [same(2, 40, 70, 1, 30, 3), same(1, 300, 30, 1, 7, 3), same(1, 64, 48, 2, 9, 1), line, stem, dilated] {
        let w = noise(shape.outputs * shape.taps(), 2);
        let cases = every().flat_map(|blocking| FLOAT.iter().map(move |form| (blocking, form)));
        for (blocking, form) in cases {
            let case = ConvCase::new(blocking, &shape, true);
            if !form.fits(&case) {
                continue;
            }
            let packed = form.pack(&case, &w);
            if !packed.adds_residual() {
                continue;
            }
            adding += 1;
            let run = |residual| run_form(&*packed, blocking, form.layouts(), &case.shape, residual);
            let plain = run(None);
            let residual = noise(plain.len(), 7);
            let (in_place, separate) = (run(Some(Residual::InPlace)), run(Some(Residual::Separate(&residual))));
            assert_eq!(in_place, separate, "{form:?} {blocking:?} {shape:?}");
            let bound = TOLERANCE * shape.taps() as f64;
            for ((&found, x), added) in in_place.iter().zip(&plain).zip(&residual) {
                let expected = (x + added).clamp(LIMITS[0], LIMITS[1]);
                assert!(
                    f64::from((found - expected).abs()) <= bound,
                    "{form:?} {blocking:?} {shape:?}: {found} {expected}"
                );
            }
        }
    }
    assert!(adding >= 5 * every().count(), "{adding} cases");
}
