use super::*;
use crate::gemm::tests::noise;
use crate::isa::Isa;

/// Pseudo-random numbers below `limit`.
pub(crate) struct Draw(pub u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }

    pub fn pair(&mut self, limit: usize) -> [usize; 2] {
        [self.below(limit), self.below(limit)]
    }

    pub fn one_of(&mut self, choices: &[usize]) -> usize {
        choices[self.below(choices.len())]
    }
}

/// A random shape whose output has the size that the standard defines; `None` if the window does not fit.
pub(crate) fn draw(draw: &mut Draw, transposed: bool) -> Option<Shape> {
    let groups = draw.one_of(&[1, 1, 1, 2, 3, 7]);
    let image = draw.below(4) > 0;
    let axis = |pair: [usize; 2], first: usize| if image { pair } else { [first, pair[1]] };
    let mut shape = Shape {
        batch: draw.one_of(&[1, 1, 2, 3]),
        channels: groups * draw.one_of(&[1, 2, 3, 5, 16]),
        outputs: groups * draw.one_of(&[1, 2, 3, 8, 9, 17]),
        groups,
        input: axis(draw.pair(21), 1),
        output: [0, 0],
        kernel: axis(draw.pair(5).map(|x| x + 1), 1),
        strides: axis(draw.pair(4).map(|x| x + 1), 1),
        dilations: axis(draw.pair(3).map(|x| x + 1), 1),
        before: axis(draw.pair(4), 0).map(|x| x as isize),
    };
    let after = axis(draw.pair(4), 0);
    for (a, after) in after.into_iter().enumerate() {
        let extent = (shape.kernel[a] - 1) * shape.dilations[a] + 1;
        let pads = shape.before[a] as usize + after;
        shape.output[a] = if transposed {
            (shape.input[a].checked_sub(1)? * shape.strides[a] + extent).checked_sub(pads)?
        } else {
            (shape.input[a] + pads).checked_sub(extent)? / shape.strides[a] + 1
        };
    }
    Some(shape)
}

/// Calls `add(out index, weight index of a plain convolution [O, C, kh, kw], x index)` for every product in the
/// definition. The window slides over the image of size `large`.
fn products(s: &Shape, large: [usize; 2], small: [usize; 2], mut add: impl FnMut([usize; 2], [usize; 3], [usize; 2])) {
    for (y, x) in (0..small[0]).flat_map(|y| (0..small[1]).map(move |x| (y, x))) {
        for (i, j) in (0..s.kernel[0]).flat_map(|i| (0..s.kernel[1]).map(move |j| (i, j))) {
            let at = |p: usize, tap: usize, a: usize| (p * s.strides[a] + tap * s.dilations[a]) as isize - s.before[a];
            let (ly, lx) = (at(y, i, 0), at(x, j, 1));
            if (0..large[0] as isize).contains(&ly) && (0..large[1] as isize).contains(&lx) {
                let (channels, outputs) = (s.channels / s.groups, s.outputs / s.groups);
                for n in 0..s.batch {
                    for o in 0..s.outputs {
                        for c in 0..channels {
                            let channel = o / outputs * channels + c;
                            let place = |planes: usize, plane: usize| n * planes + plane;
                            add(
                                [place(s.outputs, o), place(s.channels, channel)],
                                [o, c, i * s.kernel[1] + j],
                                [ly as usize * large[1] + lx as usize, y * small[1] + x],
                            );
                        }
                    }
                }
            }
        }
    }
}

fn expected(s: &Shape, transposed: bool, w: &[f32], bias: &[f32], x: &[f32]) -> Vec<f64> {
    let plane = s.output[0] * s.output[1];
    let mut out: Vec<f64> =
        (0..s.batch * s.outputs * plane).map(|i| f64::from(bias[i / plane.max(1) % s.outputs])).collect();
    let (size, window) = (s.input[0] * s.input[1], s.kernel[0] * s.kernel[1]);
    let (channels, outputs) = (s.channels / s.groups, s.outputs / s.groups);
    let (large, small) = if transposed { (s.output, s.input) } else { (s.input, s.output) };
    products(s, large, small, |[o_plane, x_plane], [o, c, tap], [large, small]| {
        let (to, from) = if transposed { (large, small) } else { (small, large) };
        let weight = if transposed {
            w[((o / outputs * channels + c) * outputs + o % outputs) * window + tap]
        } else {
            w[(o * channels + c) * window + tap]
        };
        out[o_plane * plane + to] += f64::from(weight) * f64::from(x[x_plane * size + from]);
    });
    out
}

fn check(s: &Shape, transposed: bool) {
    let taps = s.channels / s.groups * s.kernel[0] * s.kernel[1];
    let x = noise(s.batch * s.channels * s.input[0] * s.input[1], 1);
    let w = noise(s.outputs * taps, 2);
    let bias = noise(s.outputs, 3);
    let expected = expected(s, transposed, &w, &bias, &x);
    check_plain(s, transposed, [&w, &bias, &x], &expected);
    if transposed {
        return;
    }
    let mut results: Vec<Vec<f32>> = Vec::new();
    for isa in Isa::available() {
        for threads in [Threads::serial(), Threads::new(3).unwrap()] {
            let mut out = vec![f32::NAN; expected.len()];
            let finish = |run: &mut [f32], offset: usize| {
                run.iter_mut().enumerate().for_each(|(i, x)| *x += ((offset + i) % 5) as f32);
            };
            let weights = Rows::new(isa, s.groups, s.outputs / s.groups, taps, &w);
            let epilogue = Epilogue { finish: Some(&finish), ..Epilogue::NONE };
            let operands = ConvOperands { shape: s, bias: Some(&bias), x: &x, out: &mut out, epilogue };
            conv(&threads, &weights, operands);
            results.push(out);
        }
    }
    for (i, expected) in expected.iter().enumerate() {
        let found = f64::from(results[0][i]) - (i % 5) as f64;
        assert!((found - expected).abs() <= 1e-6 * (taps as f64 + 5.0), "{s:?} {i}: {found} {expected}");
    }
    assert!(results.iter().all(|other| *other == results[0]), "{s:?}: not the same bits everywhere");
}

fn check_plain(s: &Shape, transposed: bool, operands: [&[f32]; 3], expected: &[f64]) {
    let [w, bias, x] = operands.map(|x| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    let mut out = vec![f64::NAN; expected.len()];
    let form = if transposed { conv_transposed_plain } else { conv_plain };
    form(&Threads::serial(), s, &w, Some(&bias), &x, &mut out);
    assert!(out.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-12), "{s:?}");
}

#[test]
fn random_shapes() {
    for transposed in [false, true] {
        let mut source = Draw(if transposed { 7 } else { 1 });
        for shape in std::iter::repeat_with(|| draw(&mut source, transposed)).flatten().take(400) {
            check(&shape, transposed);
        }
    }
}

pub(crate) fn same(batch: usize, channels: usize, outputs: usize, groups: usize, size: usize, kernel: usize) -> Shape {
    let before = [(kernel / 2) as isize; 2];
    let (size, kernel) = ([size; 2], [kernel; 2]);
    Shape {
        batch,
        channels,
        outputs,
        groups,
        input: size,
        output: size,
        kernel,
        strides: [1, 1],
        dilations: [1, 1],
        before,
    }
}

#[test]
fn shapes_of_several_blocks_and_tasks() {
    let wide = |size, kernel: usize, stride| Shape {
        input: [1, size],
        output: [1, (size - kernel) / stride + 1],
        kernel: [1, kernel],
        strides: [1, stride],
        before: [0, 0],
        ..same(1, 24, 20, 1, 1, 1)
    };
    for shape in [
        same(1, 32, 40, 1, 60, 3),
        same(2, 48, 48, 48, 64, 5),
        same(1, 64, 24, 1, 40, 1),
        same(1, 300, 30, 1, 20, 3),
        Shape { strides: [2, 2], output: [30, 30], ..same(1, 40, 32, 1, 60, 3) },
        wide(9000, 1, 1),
        wide(9000, 7, 1),
        wide(9001, 5, 3),
        same(0, 4, 4, 1, 5, 3),
        Shape { output: [0, 5], ..same(1, 4, 4, 1, 5, 3) },
        same(1, 0, 3, 1, 5, 3),
    ] {
        check(&shape, false);
    }
}

#[test]
fn windows_without_limits_do_not_fit() {
    let shape = same(1, 4, 4, 1, 5, 3);
    assert!(shape.fits());
    assert!(!Shape { dilations: [1 << 40, 1], ..shape.clone() }.fits());
    assert!(!Shape { strides: [usize::MAX, 2], ..shape.clone() }.fits());
    assert!(!Shape { input: [1 << 16, 1 << 14], ..shape }.fits());
}
