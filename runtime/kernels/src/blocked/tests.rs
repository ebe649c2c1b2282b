use super::dispatch::conv;
use super::filter::Filter;
use super::form::{Form, Tile};
use super::*;
use crate::conv::tests::{draw, expected, same, Draw};
use crate::conv_shape::Shape;
use crate::gemm::tests::noise;
use crate::isa::Isa;
use crate::pool::{Divisor, Window};

fn images(batch: usize, channels: usize, plane: usize) -> Images {
    Images { batch, channels, plane }
}

#[test]
fn blocks_hold_the_channels_of_each_pixel() {
    for (batch, channels, plane) in
        [(1, 16, 1), (2, 3, 5), (1, 40, 9), (1, 40, 17), (3, 33, 64), (0, 4, 4), (2, 0, 4), (2, 5, 0)]
    {
        let images = images(batch, channels, plane);
        let x = noise(images.len(), 1);
        for (isa, count) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 3)]) {
            let threads = Threads::new(count).unwrap();
            let mut blocked = vec![f32::NAN; images.blocked_len()];
            to_blocks(isa, &threads, images, &x, &mut blocked);
            for (i, &found) in blocked.iter().enumerate() {
                let (lane, pixel, block) = (i % BLOCK, i / BLOCK % plane, i / BLOCK / plane);
                let (image, channel) = (block / images.blocks(), block % images.blocks() * BLOCK + lane);
                let expected = if channel < channels { x[(image * channels + channel) * plane + pixel] } else { 0.0 };
                assert_eq!(found, expected, "{images:?} {i}");
            }
            let mut back = vec![f32::NAN; images.len()];
            from_blocks(isa, &threads, images, &blocked, &mut back, None);
            assert_eq!(back, x, "{images:?}");
        }
    }
}

/// Converts `[N, C, plane]` to blocks, with NaN in the lanes beyond C.
fn blocked(batch: usize, channels: usize, plane: usize, x: &[f32]) -> Vec<f32> {
    let images = images(batch, channels, plane);
    let mut out = vec![0.0; images.blocked_len()];
    to_blocks(Isa::SCALAR, &Threads::serial(), images, x, &mut out);
    for (i, value) in out.iter_mut().enumerate() {
        if i / BLOCK / plane % images.blocks() * BLOCK + i % BLOCK >= channels {
            *value = f32::NAN;
        }
    }
    out
}

/// Checks every form that supports the shape against the definition.
fn check(s: &Shape) {
    check_form(s, None, 1e-6);
    for form in Form::ALL.into_iter().filter(|form| form.fits(s)) {
        check_form(s, Some(form), if form == Form::Square(Tile::Two) { 1e-6 } else { 3e-6 });
    }
    check_filter(s, "rows", |isa, w| Filter::for_rows(isa, s, w), 1e-6, <[f32]>::to_vec);
}

fn check_form(s: &Shape, form: Option<Form>, tolerance: f64) {
    let pack = |isa: Isa, w: &[f32]| Filter::new(isa, s, w, form);
    let name = format!("{form:?}");
    check_filter(s, &name, pack, tolerance, |x| blocked(s.batch, s.channels, s.input[0] * s.input[1], x));
}

fn check_filter(
    s: &Shape,
    name: &str,
    pack: impl Fn(Isa, &[f32]) -> Filter,
    tolerance: f64,
    lay_out: impl Fn(&[f32]) -> Vec<f32>,
) {
    let taps = s.channels / s.groups * s.kernel[0] * s.kernel[1];
    let (plane_in, plane_out) = (s.input[0] * s.input[1], s.output[0] * s.output[1]);
    let x = noise(s.batch * s.channels * plane_in, 1);
    let (w, bias) = (noise(s.outputs * taps, 2), noise(s.outputs, 3));
    let expected = expected(s, false, &w, &bias, &x);
    let x = lay_out(&x);
    let to = images(s.batch, s.outputs, plane_out);
    let limits = [-0.5, 1.0];
    let mut results: Vec<Vec<f32>> = Vec::new();
    for (isa, count) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 3)]) {
        let threads = Threads::new(count).unwrap();
        let filter = pack(isa, &w);
        let mut out = vec![f32::NAN; to.blocked_len()];
        let finish = |run: &mut [f32], offset: usize| {
            run.iter_mut().enumerate().for_each(|(i, x)| *x += ((offset + i) / BLOCK % 5) as f32);
        };
        conv(&threads, s, &filter, Some(&bias), &x, &mut out, Epilogue { limits, finish: Some(&finish) });
        out.iter_mut().enumerate().for_each(|(i, x)| *x -= (i / BLOCK % 5) as f32);
        let mut rows = vec![f32::NAN; to.len()];
        from_blocks(isa, &threads, to, &out, &mut rows, None);
        results.push(rows);
    }
    for (i, expected) in expected.iter().enumerate() {
        let found = f64::from(results[0][i]);
        let expected = expected.clamp(f64::from(limits[0]), f64::from(limits[1]));
        assert!((found - expected).abs() <= tolerance * (taps as f64 + 5.0), "{name} {s:?} {i}: {found} {expected}");
    }
    assert!(results.iter().all(|other| *other == results[0]), "{name} {s:?}: not the same bits everywhere");
}

#[test]
fn random_shapes() {
    let mut source = Draw(3);
    let fits = |s: &Shape| Filter::fits(s.groups, s.channels, s.outputs);
    for shape in std::iter::repeat_with(|| draw(&mut source, false)).flatten().filter(fits).take(300) {
        check(&shape);
    }
}

#[test]
fn shapes_of_several_parts_and_tasks() {
    for shape in [
        same(1, 40, 70, 1, 30, 3),
        same(2, 64, 64, 2, 20, 5),
        same(1, 64, 48, 1, 40, 1),
        same(1, 300, 30, 1, 7, 3),
        Shape { strides: [2, 2], output: [30, 30], ..same(1, 40, 32, 1, 60, 3) },
        same(0, 4, 4, 1, 5, 3),
        Shape { output: [0, 5], ..same(1, 4, 4, 1, 5, 3) },
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
        let sizes = [1, 2].map(|_| source.one_of(&[1, 8, 16, 24, 40]));
        let output = [0, 1].map(|a| input[a] + pads[a] - 2 + cut[a]);
        let before = pads.map(|pad| pad as isize);
        check(&Shape { input, output, before, ..same(1, sizes[0], sizes[1], 1, 1, 3) });
    }
}

/// Checks against the definition, with every instruction set and with several threads.
fn check_depthwise(s: &Shape) {
    let taps = s.kernel[0] * s.kernel[1];
    let (plane_in, plane_out) = (s.input[0] * s.input[1], s.output[0] * s.output[1]);
    let x = noise(s.batch * s.channels * plane_in, 1);
    let (w, bias) = (noise(s.outputs * taps, 2), noise(s.outputs, 3));
    let expected = expected(s, false, &w, &bias, &x);
    let x = blocked(s.batch, s.channels, plane_in, &x);
    let to = images(s.batch, s.outputs, plane_out);
    let limits = [-0.5, 1.0];
    let mut results: Vec<Vec<f32>> = Vec::new();
    for (isa, count) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 3)]) {
        let threads = Threads::new(count).unwrap();
        let filter = DepthwiseFilter::new(isa, s, &w);
        let mut out = vec![f32::NAN; to.blocked_len()];
        let finish = |run: &mut [f32], offset: usize| {
            run.iter_mut().enumerate().for_each(|(i, x)| *x += ((offset + i) / BLOCK % 5) as f32);
        };
        depthwise(&threads, s, &filter, Some(&bias), &x, &mut out, Epilogue { limits, finish: Some(&finish) });
        let mut rows = vec![f32::NAN; to.len()];
        out.iter_mut().enumerate().for_each(|(i, x)| *x -= (i / BLOCK % 5) as f32);
        from_blocks(isa, &threads, to, &out, &mut rows, None);
        results.push(rows);
    }
    for (i, expected) in expected.iter().enumerate() {
        let found = f64::from(results[0][i]);
        let expected = expected.clamp(f64::from(limits[0]), f64::from(limits[1]));
        assert!((found - expected).abs() <= 1e-6 * (taps as f64 + 5.0), "{s:?} {i}: {found} {expected}");
    }
    assert!(results.iter().all(|other| *other == results[0]), "{s:?}: not the same bits everywhere");
}

#[test]
fn depthwise_random_shapes() {
    let mut source = Draw(11);
    let shapes: Vec<Shape> = std::iter::repeat_with(|| draw(&mut source, false)).flatten().take(400).collect();
    for shape in shapes {
        let channels = source.one_of(&[1, 5, 16, 33]);
        check_depthwise(&Shape { channels, outputs: channels, groups: channels, ..shape });
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
            let shape = Shape { input, output, before, strides: [stride; 2], ..same(1, 17, 17, 17, 1, kernel) };
            check_depthwise(&shape);
        }
    }
    check_depthwise(&same(2, 40, 40, 40, 30, 3));
    check_depthwise(&Shape { before: [-1, -2], output: [9, 6], ..same(1, 16, 16, 16, 12, 3) });
    check_depthwise(&Shape { before: [0, 1 << 20], dilations: [1 << 40, 1], ..same(1, 16, 16, 16, 4, 1) });
}

/// Windows of most kinds: padded, overlapping, dilated, cut off, without pixels.
fn windows() -> Vec<[Window; 2]> {
    let window = |input: usize, kernel: usize, stride: usize, dilation: usize, pads: [usize; 2]| {
        let output = (input + pads[0] + pads[1] - (kernel - 1) * dilation - 1) / stride + 1;
        Window { input, output, kernel, stride, dilation, pads }
    };
    let square = |i, k, s, d, p| [window(i, k, s, d, p), window(i + 3, k, s, d, p)];
    let ceil = Window { output: 3, ..window(6, 3, 2, 1, [0, 0]) };
    vec![
        square(8, 2, 2, 1, [0, 0]),
        square(45, 3, 2, 1, [1, 1]),
        square(37, 3, 1, 1, [1, 0]),
        square(20, 13, 1, 1, [6, 6]),
        square(23, 3, 3, 2, [2, 1]),
        square(16, 4, 2, 3, [3, 0]),
        square(3, 3, 1, 1, [5, 5]),
        [ceil, ceil],
        [Window::POINT, window(100, 7, 5, 1, [3, 3])],
        [window(2, 1, 1, 1, [0, 0]), Window { output: 0, ..Window::POINT }],
    ]
}

#[test]
fn pools_of_blocks_are_those_of_rows() {
    for (batch, channels, windows) in windows().into_iter().flat_map(|w| [(1, 16, w), (2, 5, w), (1, 35, w), (0, 3, w)])
    {
        let [from, to] =
            [windows.map(|w| w.input), windows.map(|w| w.output)].map(|[h, w]| images(batch, channels, h * w));
        let x = noise(from.len(), 1);
        let x_blocks = blocked(batch, channels, from.plane, &x);
        for how in [Pool::Max, Pool::Average(Divisor::Inside), Pool::Average(Divisor::Padded)] {
            let mut expected = vec![f32::NAN; to.len()];
            match how {
                Pool::Max => crate::pool::max(Isa::SCALAR, &Threads::serial(), &x, windows, &mut expected),
                Pool::Average(by) => {
                    crate::pool::average(Isa::SCALAR, &Threads::serial(), &x, windows, by, &mut expected)
                }
            }
            for (isa, count) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 3)]) {
                let threads = Threads::new(count).unwrap();
                let mut out = vec![9.0; to.blocked_len()];
                pool(isa, &threads, how, &x_blocks, windows, &mut out);
                let mut found = vec![9.0; to.len()];
                from_blocks(isa, &threads, to, &out, &mut found, None);
                let same = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
                assert!(found.iter().zip(&expected).all(same), "{isa:?} {how:?} {windows:?}");
            }
        }
    }
}

#[test]
fn together_is_one_after_the_other() {
    let depthwise = |batch, channels, size, kernel| same(batch, channels, channels, channels, size, kernel);
    for (shape, outputs) in [
        (depthwise(1, 17, 9, 3), 16),
        (depthwise(2, 40, 30, 3), 70),
        (Shape { strides: [2, 2], output: [30, 30], ..depthwise(1, 33, 60, 5) }, 8),
        (Shape { before: [-1, 1], output: [4, 9], ..depthwise(1, 64, 9, 3) }, 33),
        (depthwise(1, 300, 7, 7), 48),
        (Shape { input: [50, 1], output: [50, 1], kernel: [3, 1], before: [1, 0], ..depthwise(1, 20, 1, 1) }, 20),
        (depthwise(0, 17, 9, 3), 16),
        (Shape { output: [0, 9], ..depthwise(1, 17, 9, 3) }, 16),
    ] {
        let Shape { batch, channels, output, .. } = shape;
        let next = Shape { batch, input: output, output, ..same(1, channels, outputs, 1, 1, 1) };
        let x = noise(batch * channels * shape.input[0] * shape.input[1], 1);
        let x = blocked(batch, channels, shape.input[0] * shape.input[1], &x);
        let bias = noise(channels.max(outputs), 3);
        let finish = |run: &mut [f32], offset: usize| {
            run.iter_mut().enumerate().for_each(|(i, x)| *x += ((offset + i) / BLOCK % 5) as f32);
        };
        let epilogue = Epilogue { limits: [-0.5, 1.0], finish: Some(&finish) };
        for (isa, count) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 3)]) {
            let threads = Threads::new(count).unwrap();
            let window = Weights::new(isa, &shape, &noise(channels * shape.kernel[0] * shape.kernel[1], 2));
            let weights = Weights::new(isa, &next, &noise(channels * outputs, 4));
            let first = Stage { shape: &shape, weights: &window, bias: Some(&bias[..channels]), epilogue };
            let second = Stage { shape: &next, weights: &weights, bias: Some(&bias[..outputs]), epilogue };
            let empty = |channels: usize| vec![f32::NAN; images(batch, channels, output[0] * output[1]).blocked_len()];
            let (mut between, mut expected, mut found) = (empty(channels), empty(outputs), empty(outputs));
            window.conv(&threads, &shape, first.bias, &x, &mut between, epilogue);
            weights.conv(&threads, &next, second.bias, &between, &mut expected, epilogue);
            separable(&threads, first, second, &x, &mut found);
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            assert_eq!(bits(&found), bits(&expected), "{shape:?} {isa:?} {count}");
        }
    }
}

#[test]
fn random_windows_along_a_line() {
    let mut source = Draw(17);
    for _ in 0..80 {
        let [taps, dilation] = [source.one_of(&[3, 4, 5, 7, 11]), source.one_of(&[1, 1, 2, 5])];
        let [channels, outputs] = [1, 2].map(|_| source.one_of(&[1, 8, 16, 24, 40]));
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
fn few_outputs_stay_in_rows() {
    let signal =
        Shape { input: [1, 2176], output: [1, 16], kernel: [1, 256], strides: [1, 128], ..same(1, 1, 258, 1, 1, 1) };
    for (shape, is_worth_it) in [
        (same(1, 64, 64, 1, 56, 3), true),
        (Shape { before: [0, 0], ..signal }, true),
        (same(1, 8, 8, 1, 100, 7), false),
        (same(1, 32, 1, 1, 100, 3), false),
        (same(1, 64, 6, 1, 30, 1), false),
    ] {
        for isa in Isa::available().filter(|&isa| isa != Isa::SCALAR) {
            assert_eq!(is_worth_reordering(isa, &shape), is_worth_it, "{shape:?} {isa:?}");
            assert_eq!(gain(isa, &shape) > 0, is_worth_it, "{shape:?} {isa:?}");
        }
    }
}
