//! Compares every level with sums computed one by one.

#[cfg(target_arch = "x86_64")]
use super::instructions::Instructions;
use super::*;
use crate::conv_shape::Shape;
use crate::convolution::quantized::{conv, Filter, QUANTIZED};
use crate::isa::Isa;
use crate::products::pack_int8;
use crate::threads::Threads;

/// Pseudo-random bits.
fn noise(seed: usize, len: usize) -> Vec<u8> {
    let mut state = seed as u32 * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn code(bits: u8, signed: bool) -> i32 {
    if signed {
        i32::from(bits as i8)
    } else {
        i32::from(bits)
    }
}

/// The definition of [`Requantize`] in double precision, from the product in single precision.
fn requantized(sum: i32, scale: f32, by: &Requantize) -> u8 {
    let product = sum as f32 * scale;
    let code = (f64::from(product).round_ties_even() + f64::from(by.zero)).clamp(f64::from(by.low), f64::from(by.high));
    if product.is_nan() {
        by.low as u8
    } else {
        code as i32 as u8
    }
}

fn zeros(count: usize, signed: bool, wide: bool) -> Vec<i32> {
    let middle = if signed { 0 } else { 128 };
    (0..count).map(|i| if wide { middle - 100 + (i * 37 % 200) as i32 } else { middle }).collect()
}

#[test]
fn products_are_the_sums_of_products() {
    let small = [(1, 1, 1), (3, 5, 2), (7, 16, 4), (13, 33, 17), (12, 8, 0), (0, 4, 4), (2, 0, 4)];
    let large = [(50, 70, 31), (25, 130, 64), (15, 17, 65), (16, 16, 32), (17, 15, 63), (33, 48, 100), (70, 31, 129)];
    for (_, dots) in Dots::available() {
        for (m, n, k) in small.into_iter().chain(large) {
            for case in 0..8 {
                let (a_signed, b_signed, wide) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
                let (a, b) = (noise(m + case, m * k), noise(n, k * n));
                let b_zeros = zeros(if case < 6 { n } else { 1 }, b_signed, wide);
                let a_zero = if a_signed { -3 } else { 200 };
                let bias: Vec<i32> = (0..n as i32).map(|j| j * 1000 - 7).collect();
                let sum = |i: usize, j: usize| -> i32 {
                    let zero = b_zeros[if b_zeros.len() == 1 { 0 } else { j }];
                    let term =
                        |d: usize| (code(a[i * k + d], a_signed) - a_zero) * (code(b[d * n + j], b_signed) - zero);
                    bias[j] + (0..k).map(term).sum::<i32>()
                };
                let expected: Vec<i32> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
                let matrix = Matrix { bits: &b, signed: b_signed, zeros: &b_zeros, row: n, column: 1 };
                let weights = Weights::gather(dots, k, n, &matrix, |i| Some(i * n));
                let left = Codes { bits: &a, signed: a_signed, zero: a_zero };
                let columns: Vec<u8> = (0..k * n).map(|at| b[at % k * n + at / k]).collect();
                let transposed = Weights::new(dots, k, n, &Matrix { bits: &columns, row: 1, column: k, ..matrix });
                for weights in [&weights, &transposed] {
                    let mut sums = vec![0; m * n];
                    product(&Threads::serial(), left, weights, Some(&bias), Out::Sums(&mut sums));
                    assert_eq!(sums, expected, "{m}x{n}x{k} by {dots:?}, {case}");
                }

                check_ends(left, &weights, &bias, &expected);
            }
        }
    }
}

/// Checks the conversion of sums with the expected values.
fn check_ends(left: Codes, weights: &Weights, bias: &[i32], expected: &[i32]) {
    let n = weights.columns();
    for (zero, low, high, factor) in ENDS {
        let scale: Vec<f32> =
            (0..n).map(|j| if j == 3 { f32::NAN } else { factor * (1e-3 + j as f32 * 1e-4) }).collect();
        let by = Requantize { scale: &scale, zero, low, high };
        let mut codes = vec![0; expected.len()];
        product(&Threads::serial(), left, weights, Some(bias), Out::Codes(&mut codes, by));
        let mut floats = vec![0.0; expected.len()];
        product(&Threads::serial(), left, weights, Some(bias), Out::Floats(&mut floats, &scale));
        for (at, &sum) in expected.iter().enumerate() {
            assert_eq!(codes[at], requantized(sum, scale[at % n], &by), "{sum} by {}", weights.form());
            assert_eq!(floats[at].to_bits(), (sum as f32 * scale[at % n]).to_bits(), "{sum} by {}", weights.form());
        }
    }
}

/// The code of 0, the smallest and the largest code, and a factor for the scales.
const ENDS: [(i32, i32, i32, f32); 5] =
    [(7, -100, 90, 1.0), (0, 0, 255, 1.0), (0, -128, 127, 1e9), (200, 3, 250, -1e9), (-128, -128, 127, 1.0)];

fn shape(channels: usize, outputs: usize, groups: usize, input: [usize; 2], kernel: [usize; 2]) -> Shape {
    Shape {
        batch: 2,
        channels,
        outputs,
        groups,
        input,
        output: [0; 2],
        kernel,
        strides: [1; 2],
        dilations: [1; 2],
        before: [0; 2],
    }
}

/// Returns the shape with as many outputs as fit with padding `before` on both sides.
fn padded(shape: Shape, strides: [usize; 2], dilations: [usize; 2], before: [isize; 2]) -> Shape {
    let output = [0, 1].map(|a| {
        let reach = (shape.kernel[a] - 1) * dilations[a] + 1;
        (shape.input[a].checked_add_signed(2 * before[a]).unwrap() - reach) / strides[a] + 1
    });
    Shape { output, strides, dilations, before, ..shape }
}

fn shapes() -> Vec<Shape> {
    vec![
        padded(shape(3, 8, 1, [9, 7], [3, 3]), [2, 2], [1, 1], [1, 1]),
        padded(shape(16, 24, 1, [5, 6], [1, 1]), [1, 1], [1, 1], [0, 0]),
        padded(shape(3, 40, 1, [9, 61], [3, 3]), [2, 2], [1, 1], [1, 1]),
        padded(shape(8, 20, 1, [7, 27], [3, 3]), [1, 1], [2, 1], [1, 0]),
        padded(shape(5, 9, 1, [6, 40], [2, 2]), [1, 1], [1, 1], [-1, -1]),
        padded(shape(6, 5, 1, [5, 6], [1, 1]), [2, 1], [1, 1], [0, 0]),
        padded(shape(8, 40, 2, [6, 5], [3, 2]), [1, 1], [2, 1], [2, 1]),
        padded(shape(4, 4, 1, [1, 30], [1, 5]), [1, 2], [1, 2], [0, 4]),
        padded(shape(4, 4, 1, [6, 6], [2, 2]), [1, 1], [1, 1], [-1, -1]),
        padded(shape(40, 33, 1, [5, 7], [1, 1]), [1, 1], [1, 1], [0, 0]),
        padded(shape(64, 17, 1, [4, 5], [1, 1]), [1, 1], [1, 1], [0, 0]),
        padded(shape(20, 40, 1, [4, 33], [3, 3]), [1, 1], [1, 1], [1, 1]),
        padded(shape(23, 16, 1, [5, 53], [3, 3]), [2, 2], [1, 1], [1, 1]),
        padded(shape(72, 70, 2, [6, 5], [3, 2]), [1, 1], [2, 1], [2, 1]),
        padded(shape(5, 5, 5, [6, 7], [3, 3]), [1, 1], [1, 1], [1, 1]),
        padded(shape(24, 24, 24, [8, 9], [3, 3]), [2, 2], [1, 1], [1, 1]),
        padded(shape(150, 150, 150, [5, 5], [5, 5]), [1, 1], [1, 1], [2, 2]),
        padded(shape(80, 80, 80, [7, 4], [3, 2]), [1, 1], [2, 1], [2, 0]),
        padded(shape(48, 48, 48, [7, 90], [3, 3]), [2, 2], [1, 1], [1, 1]),
        padded(shape(40, 40, 40, [11, 9], [5, 3]), [2, 2], [1, 2], [2, 3]),
        padded(shape(160, 160, 160, [3, 70], [3, 3]), [1, 1], [1, 1], [1, 1]),
        padded(shape(20, 20, 20, [6, 6], [2, 2]), [1, 1], [1, 1], [-1, -1]),
        padded(shape(8, 8, 8, [5, 6], [3, 3]), [1, 1], [1 << 40, 1 << 30], [1 << 40, 1 << 30]),
        padded(shape(2, 3, 1, [3, 24], [3, 1]), [1, 1], [1 << 40, 1], [1 << 40, 0]),
        padded(shape(6, 12, 6, [4, 4], [3, 3]), [1, 1], [1, 1], [1, 1]),
        padded(shape(0, 3, 1, [4, 4], [3, 3]), [1, 1], [1, 1], [1, 1]),
        padded(shape(3, 0, 1, [4, 4], [3, 3]), [1, 1], [1, 1], [1, 1]),
        padded(shape(4, 4, 1, [0, 5], [3, 3]), [1, 1], [1, 1], [2, 1]),
    ]
}

fn sum(s: &Shape, x: &Codes, w: &[u8], signed: bool, zeros: &[i32], at: usize) -> i32 {
    let (o, pixel) = (at % s.outputs, at / s.outputs);
    let (image, y, column) = (pixel / s.pixels(), pixel / s.output[1] % s.output[0], pixel % s.output[1]);
    let each = s.channels / s.groups;
    let first = o / (s.outputs / s.groups) * each;
    let inside = |axis: usize, index: usize, tap: usize| {
        let at = (index * s.strides[axis] + tap * s.dilations[axis]) as isize - s.before[axis];
        (0..s.input[axis] as isize).contains(&at).then_some(at as usize)
    };
    let mut sum = 0;
    for (i, j) in (0..s.kernel[0]).flat_map(|i| (0..s.kernel[1]).map(move |j| (i, j))) {
        let (Some(y), Some(column)) = (inside(0, y, i), inside(1, column, j)) else { continue };
        for c in 0..each {
            let bits = x.bits[((image * s.input[0] + y) * s.input[1] + column) * s.channels + first + c];
            let w = w[((o * each + c) * s.kernel[0] + i) * s.kernel[1] + j];
            sum += (code(bits, x.signed) - x.zero) * (code(w, signed) - zeros[if zeros.len() == 1 { 0 } else { o }]);
        }
    }
    sum
}

#[test]
fn convolutions_are_the_sums_of_products() {
    for (isa, dots) in Dots::available() {
        for s in shapes() {
            for case in 0..8 {
                let (x_signed, w_signed, wide) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
                let bits = noise(1, s.batch * s.input[0] * s.input[1] * s.channels);
                let x = Codes { bits: &bits, signed: x_signed, zero: if x_signed { 5 } else { 120 } };
                let w = noise(2, s.outputs * s.channels / s.groups * s.kernel[0] * s.kernel[1]);
                let w_zeros = zeros(if wide { s.outputs } else { 1 }, w_signed, wide);
                let Shape { groups, outputs, kernel, .. } = s;
                let taps = Taps { groups, outputs, kernel, bits: &w, signed: w_signed, zeros: &w_zeros };
                let case = QuantizedConvCase::of(isa, dots, &taps);
                let bias: Vec<i32> = (0..s.outputs as i32).map(|o| o * 100 - 50).collect();
                let len = s.batch * s.pixels() * s.outputs;
                let expected: Vec<i32> =
                    (0..len).map(|at| sum(&s, &x, &w, w_signed, &w_zeros, at) + bias[at % s.outputs]).collect();
                for form in QUANTIZED.iter().filter(|form| form.fits(&case)) {
                    let filter = Filter::packed(*form, case, &taps);
                    check_filter(&s, &filter, x, &bias, &expected);
                }
            }
        }
    }
}

/// Compares the results of a packed convolution with the expected sums.
fn check_filter(s: &Shape, filter: &Filter, x: Codes, bias: &[i32], expected: &[i32]) {
    let name = filter.form();
    for threads in [Threads::serial(), Threads::new(3).unwrap()] {
        let mut sums = vec![0; expected.len()];
        conv(&threads, s, filter, x, Some(bias), Out::Sums(&mut sums));
        assert_eq!(sums, expected, "{s:?}: {name}");
    }
    let by = Requantize { scale: &[0.003], zero: 128, low: 128, high: 255 };
    let mut codes = vec![0; expected.len()];
    conv(&Threads::serial(), s, filter, x, Some(bias), Out::Codes(&mut codes, by));
    let expected: Vec<u8> = expected.iter().map(|&sum| requantized(sum, 0.003, &by)).collect();
    assert_eq!(codes, expected, "{s:?}: {name}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn deep_products_use_the_widest_instructions() {
    let form = |k: usize| {
        let (b, isa) = (noise(1, k * 16), Isa::widest());
        pack_int8(isa, k, 16, &Matrix { bits: &b, signed: true, zeros: &[0], row: 16, column: 1 }).form()
    };
    let widest = Dots::of(Isa::widest());
    let has_tiles = widest.instructions() == Instructions::Amx;
    assert_eq!(form(64), widest.name());
    assert_eq!(form(28), if has_tiles { "AVX-512 VNNI" } else { widest.name() });
    let has_amx = Dots::available().iter().any(|(_, dots)| dots.instructions() == Instructions::Amx);
    assert_eq!(has_tiles, Isa::takes_amx() && has_amx);
}

#[test]
fn threads_share_large_products() {
    let (m, n, k) = (300, 200, 100);
    let (a, b) = (noise(1, m * k), noise(2, k * n));
    let matrix = Matrix { bits: &b, signed: true, zeros: &[0], row: n, column: 1 };
    let left = Codes { bits: &a, signed: false, zero: 9 };
    let run = |threads: &Threads, m: usize| {
        let mut sums = vec![0; m * n];
        let left = Codes { bits: &left.bits[..m * k], ..left };
        product(threads, left, &pack_int8(Isa::get(), k, n, &matrix), None, Out::Sums(&mut sums));
        sums
    };
    let threads = Threads::new(4).unwrap();
    for m in [m, 60] {
        assert_eq!(run(&threads, m), run(&Threads::serial(), m));
    }
}
