//! Transposed convolutions against the definition.

use super::super::candidate::Candidate;
use super::super::tests::{run_in_layouts, LIMITS};
use super::super::{ConvWeights, PlannedConv};
use super::division::Division;
use crate::blocking::tests::every;
use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::convolution::form::{ConvCase, ConvOperands, Epilogue, ImageLayout};
use crate::convolution::rows::conv_transposed_plain;
use crate::convolution::rows::tests::{draw, same, Draw};
use crate::gemm::tests::noise;
use crate::isa::{Isa, Level};
use crate::threads::Threads;

/// The operands of a transposed convolution, and its result by the definition.
struct Case {
    shape: Shape,
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Option<Vec<f32>>,
    expected: Vec<f64>,
}

impl Case {
    fn new(shape: &Shape, has_bias: bool) -> Case {
        let x = noise(shape.batch * shape.channels * shape.input[0] * shape.input[1], 1);
        let w = noise(shape.channels * shape.outputs / shape.groups * shape.kernel[0] * shape.kernel[1], 2);
        let bias = has_bias.then(|| noise(shape.outputs, 3));
        let wide = |x: &Vec<f32>| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let mut expected = vec![f64::NAN; shape.batch * shape.outputs * shape.pixels()];
        let bias64 = bias.as_ref().map(wide);
        conv_transposed_plain(&Threads::serial(), shape, &wide(&w), bias64.as_deref(), &wide(&x), &mut expected);
        expected.iter_mut().for_each(|x| *x = x.clamp(f64::from(LIMITS[0]), f64::from(LIMITS[1])));
        Case { shape: shape.clone(), x, w, bias, expected }
    }

    /// Computes a result in the second layout from an image in the first one, and returns it in rows.
    fn run(&self, weights: &ConvWeights, layouts: [ImageLayout; 2], threads: &Threads) -> Vec<f32> {
        let (blocking, bias) = (weights.blocking(), self.bias.as_deref().unwrap_or_default());
        run_in_layouts(blocking, layouts, &self.shape, [&self.x, bias], |operands| weights.run(threads, operands))
    }

    /// Compares results with the definition, and with each other bit by bit.
    fn compare(&self, results: &[Vec<f32>], name: &str) {
        let Case { shape, expected, .. } = self;
        let products = shape.channels / shape.groups * shape.kernel[0] * shape.kernel[1];
        let bound = if name.contains("F(4, 3)") { 3e-6 } else { 1e-6 } * (products as f64 + 5.0);
        for (i, (&found, expected)) in results[0].iter().zip(expected).enumerate() {
            assert!((f64::from(found) - expected).abs() <= bound, "{name} {shape:?} {i}: {found} {expected}");
        }
        assert!(results.iter().all(|other| *other == results[0]), "{name} {shape:?}: other bits with other threads");
    }
}

/// Checks every division of a transposed convolution in both layouts, at every level, with every size of blocks and with
/// several threads. The weights are packed for the sizes in `packed`.
fn check_packed(shape: &Shape, packed: &Shape, all_threads: &[Threads]) {
    for has_bias in [true, false] {
        let case = Case::new(shape, has_bias);
        for blocking in every() {
            for result in [ImageLayout::Rows, ImageLayout::Blocks] {
                let of_case = ConvCase::transposed(blocking, packed, true);
                for division in Division::all(&of_case, result) {
                    let (form, packed) = (division.name(), division.pack(&case.w));
                    let [image, _] = division.layouts();
                    let weights = ConvWeights { case: of_case.clone(), form, packed };
                    let run = |threads| case.run(&weights, [image, result], threads);
                    let results: Vec<_> = all_threads.iter().map(run).collect();
                    case.compare(&results, weights.form());
                }
            }
        }
    }
}

/// Checks convolutions with weights packed for their sizes.
fn check(shapes: impl IntoIterator<Item = Shape>) {
    let threads = [1, 2, 5].map(|count| Threads::new(count).unwrap());
    shapes.into_iter().for_each(|shape| check_packed(&shape, &shape, &threads));
}

/// Channels, outputs and groups: with whole and partial blocks, and depthwise.
const SIZES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [3, 16, 1],
    [8, 1, 1],
    [16, 3, 1],
    [20, 40, 1],
    [33, 17, 1],
    [32, 64, 2],
    [40, 24, 2],
    [5, 5, 5],
    [16, 16, 16],
    [35, 35, 35],
    [6, 12, 6],
];

/// A random convolution, with the output size that the standard defines and output padding; `None` if nothing is left.
fn random(source: &mut Draw, stride: usize, kernel: usize) -> Option<Shape> {
    let [channels, outputs, groups] = SIZES[source.pair(SIZES.len())[0]];
    let is_image = source.one_of(&[0, 1, 1]) == 1;
    let axis = |pair: [usize; 2], first: usize| if is_image { pair } else { [first, pair[1]] };
    let mut shape = Shape {
        batch: source.one_of(&[1, 1, 2]),
        input: axis(source.pair(9).map(|size| size + 1), 1),
        kernel: axis([source.one_of(&[kernel, kernel, 1, 2]), kernel], 1),
        strides: axis([source.one_of(&[stride, stride, 1, 3]), stride], 1),
        dilations: axis(source.pair(3).map(|x| x + 1), 1),
        before: axis(source.pair(4), 0).map(|x| x as isize),
        ..same(1, channels, outputs, groups, 1, 1)
    };
    let (after, padding) = (axis(source.pair(4), 0), axis(source.pair(stride), 0));
    for a in 0..2 {
        let full = (shape.input[a] - 1) * shape.strides[a] + (shape.kernel[a] - 1) * shape.dilations[a] + 1;
        shape.output[a] = (full + padding[a]).checked_sub(shape.before[a] as usize + after[a])?;
    }
    Some(shape)
}

#[test]
fn random_shapes_of_every_stride_and_kernel() {
    let mut source = Draw(23);
    for (stride, kernel) in (1..=4).flat_map(|stride| (1..=5).map(move |kernel| (stride, kernel))) {
        let shapes = std::iter::repeat_with(|| random(&mut source, stride, kernel)).flatten();
        check(shapes.take(12).collect::<Vec<_>>());
    }
}

#[test]
fn random_shapes_of_few_channels() {
    let mut source = Draw(7);
    let shapes = std::iter::repeat_with(|| draw(&mut source, true)).flatten().take(150);
    check(shapes.collect::<Vec<_>>());
}

#[test]
fn results_of_several_tasks_and_pieces() {
    let sized = |channels, outputs, groups, shape| Shape { channels, outputs, groups, ..shape };
    check([
        sized(24, 20, 1, transposed([40, 50], [2, 2], [2, 2], [0, 0], [0, 0])),
        sized(16, 32, 1, transposed([33, 40], [3, 3], [2, 2], [1, 1], [1, 1])),
        sized(20, 20, 20, transposed([40, 41], [4, 4], [2, 2], [1, 1], [0, 0])),
        sized(16, 40, 1, transposed([1, 700], [1, 16], [1, 8], [0, 4], [0, 0])),
        Shape { batch: 3, ..sized(3, 33, 1, transposed([50, 40], [2, 3], [2, 3], [0, 0], [0, 0])) },
    ]);
}

#[test]
fn weights_packed_for_other_sizes() {
    let threads = [Threads::new(2).unwrap()];
    let one = Shape { channels: 20, outputs: 36, ..transposed([1, 1], [4, 4], [2, 2], [0, 0], [0, 0]) };
    let padded = Shape { channels: 20, outputs: 36, ..transposed([9, 11], [4, 4], [2, 2], [1, 3], [1, 0]) };
    let column = Shape { channels: 20, outputs: 6, ..transposed([9, 1], [4, 1], [2, 1], [1, 0], [0, 0]) };
    let columns = Shape { channels: 20, outputs: 6, ..transposed([8, 9], [4, 1], [2, 1], [1, 0], [0, 0]) };
    for (shape, packed) in [(&padded, &one), (&one, &padded), (&columns, &column), (&column, &columns)] {
        check_packed(shape, packed, &threads);
    }
}

#[test]
fn residues_are_merged_where_this_saves_reads() {
    let of = |channels, outputs, groups, shape| Shape { channels, outputs, groups, ..shape };
    let double = |size| transposed([size, size], [2, 2], [2, 2], [0, 0], [0, 0]);
    for blocking in Isa::available().filter(|&isa| isa != Isa::SCALAR).map(Blocking::largest) {
        // With AVX2, conversions take less time, and depthwise residues run on blocks within the step.
        let is_depthwise_merged = blocking.isa().level() == Level::Avx512;
        let merged = |shape: &Shape, result: ImageLayout| {
            let case = ConvCase::transposed(blocking, shape, true);
            let fastest = Division::all(&case, result).min_by(|a, b| a.time().total_cmp(&b.time()));
            fastest.map(|division| division.is_merged)
        };
        for (shape, expected) in [
            (of(64, 32, 1, double(64)), [Some(true), Some(true)]),
            (of(8, 1, 1, double(160)), [Some(true), Some(true)]),
            (of(256, 128, 1, transposed([16, 16], [4, 4], [2, 2], [1, 1], [0, 0])), [Some(false), Some(false)]),
            (of(64, 32, 1, transposed([40, 40], [3, 3], [2, 2], [1, 1], [0, 0])), [Some(false), Some(false)]),
            (
                of(64, 64, 64, transposed([32, 32], [4, 4], [2, 2], [1, 1], [0, 0])),
                [Some(is_depthwise_merged), Some(false)],
            ),
        ] {
            assert_eq!(
                [ImageLayout::Rows, ImageLayout::Blocks].map(|result| merged(&shape, result)),
                expected,
                "{blocking:?} {shape:?}"
            );
        }
    }
}

#[test]
fn blocks_save_time_where_channels_fill_them() {
    let of = |channels, outputs, groups, shape| Shape { channels, outputs, groups, ..shape };
    let double = |size| transposed([size, size], [2, 2], [2, 2], [0, 0], [0, 0]);
    for blocking in every().filter(|blocking| blocking.isa() != Isa::SCALAR) {
        for (shape, image, saves) in [
            (of(64, 32, 1, double(64)), ImageLayout::Blocks, true),
            (of(64, 64, 64, transposed([32, 32], [4, 4], [2, 2], [1, 1], [0, 0])), ImageLayout::Blocks, true),
            (of(8, 1, 1, double(160)), ImageLayout::Rows, false),
        ] {
            if shape.channels < Blocking::MOST && blocking.block() < Blocking::MOST {
                // A smaller block holds all channels.
                continue;
            }
            let case = ConvCase::transposed(blocking, &shape, true);
            let planned = PlannedConv::new(&case).unwrap();
            assert_eq!(planned.image_for_blocks(), image, "{case:?}");
            let [rows, blocks] = planned.times();
            assert_eq!(rows > blocks, saves, "{case:?}: {rows} in rows, {blocks} in blocks");
        }
    }
}

/// A transposed convolution whose output is covered by the window, plus `extra`, starting at `before`.
fn transposed(
    input: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
    before: [isize; 2],
    extra: [usize; 2],
) -> Shape {
    let size = |a: usize| (input[a] - 1) * strides[a] + kernel[a] + extra[a] - before[a] as usize;
    let output = [size(0), size(1)];
    Shape { input, output, kernel, strides, before, ..same(1, 3, 2, 1, 1, 1) }
}

#[test]
fn transposed_shapes_of_large_strides_and_few_taps() {
    check([
        transposed([3, 4], [32, 32], [16, 16], [0, 0], [0, 0]),
        transposed([2, 3], [64, 64], [32, 32], [16, 16], [0, 0]),
        transposed([2, 2], [3, 3], [100, 100], [1, 0], [0, 7]),
        transposed([2, 2], [3, 3], [300, 300], [0, 2], [0, 0]),
        transposed([1, 1], [1, 1], [300, 300], [0, 0], [5, 299]),
        transposed([1, 5], [1, 3], [1, 300], [0, 0], [0, 0]),
        transposed([1, 3], [1, 5000], [1, 5000], [0, 0], [0, 0]),
        transposed([1, 9], [1, 7], [1, 5], [0, 3], [0, 4]),
        transposed([4, 5], [2, 2], [3, 3], [0, 1], [2, 1]),
        transposed([4, 5], [1, 3], [2, 2], [0, 0], [1, 1]),
        Shape { groups: 2, channels: 4, outputs: 6, ..transposed([3, 2], [2, 3], [5, 4], [1, 1], [0, 3]) },
        Shape { dilations: [2, 1], ..transposed([3, 2], [2, 3], [2, 2], [0, 0], [1, 0]) },
        Shape { dilations: [2, 4], ..transposed([3, 2], [3, 3], [4, 6], [0, 0], [2, 6]) },
        Shape { dilations: [7, 3], batch: 2, ..transposed([3, 2], [2, 3], [3, 9], [0, 1], [6, 4]) },
        Shape { output: [40, 1], ..transposed([2, 2], [9, 9], [20, 20], [3, 3], [0, 0]) },
        Shape { output: [0, 9], ..transposed([2, 2], [3, 3], [20, 20], [0, 0], [0, 0]) },
    ]);
}

#[test]
fn outputs_without_taps_are_clamped() {
    let shape = transposed([2, 3], [1, 1], [3, 3], [0, 0], [1, 2]);
    let (x, w) = (noise(shape.channels * 6, 1), noise(shape.channels * shape.outputs, 2));
    let epilogue = Epilogue { limits: [0.5, 1.0], ..Epilogue::NONE };
    for blocking in every() {
        let weights = ConvWeights::new(&ConvCase::transposed(blocking, &shape, true), ImageLayout::Rows, &w);
        let mut out = vec![f32::NAN; shape.outputs * shape.pixels()];
        weights.run(&Threads::serial(), ConvOperands { shape: &shape, bias: None, x: &x, out: &mut out, epilogue });
        assert!(out.iter().all(|x| (0.5..=1.0).contains(x)), "{blocking:?}: {out:?}");
    }
}
