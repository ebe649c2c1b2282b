use super::terms::SUMMED;
use super::tile::Tiles;
use super::*;
use crate::blocking::tests::every;
use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::convolution::form::{ConvCase, ConvForm, ConvOperands, Epilogue};
use crate::convolution::rows::tests::same;
use crate::gemm::tests::noise;
use crate::isa::Isa;
use crate::pool::Divisor;
use crate::threads::Threads;

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
        for (blocking, count) in every().flat_map(|blocking| [(blocking, 1), (blocking, 3)]) {
            let threads = Threads::new(count).unwrap();
            let (block, blocks) = (blocking.block(), images.blocks(blocking));
            let mut blocked = vec![f32::NAN; images.blocked_len(blocking)];
            to_blocks(blocking, &threads, images, &x, &mut blocked);
            for (i, &found) in blocked.iter().enumerate() {
                let (lane, pixel, at) = (i % block, i / block % plane, i / block / plane);
                let (image, channel) = (at / blocks, at % blocks * block + lane);
                let expected = if channel < channels { x[(image * channels + channel) * plane + pixel] } else { 0.0 };
                assert_eq!(found, expected, "{images:?} {i}");
            }
            let mut back = vec![f32::NAN; images.len()];
            from_blocks(blocking, &threads, images, &blocked, &mut back);
            assert_eq!(back, x, "{images:?}");
        }
    }
}

/// Converts `[N, C, plane]` to blocks, with NaN in the lanes beyond C.
pub(crate) fn blocked(blocking: Blocking, batch: usize, channels: usize, plane: usize, x: &[f32]) -> Vec<f32> {
    let (images, block) = (images(batch, channels, plane), blocking.block());
    let mut out = vec![0.0; images.blocked_len(blocking)];
    to_blocks(blocking, &Threads::serial(), images, x, &mut out);
    for (i, value) in out.iter_mut().enumerate() {
        if i / block / plane % images.blocks(blocking) * block + i % block >= channels {
            *value = f32::NAN;
        }
    }
    out
}

#[test]
fn pools_of_blocks_are_those_of_rows() {
    for (batch, channels, windows) in
        crate::pool::tests::windows().into_iter().flat_map(|w| [(1, 16, w), (2, 5, w), (1, 35, w), (0, 3, w)])
    {
        let [from, to] =
            [windows.map(|w| w.input), windows.map(|w| w.output)].map(|[h, w]| images(batch, channels, h * w));
        let x = noise(from.len(), 1);
        for how in [Pool::Max, Pool::Average(Divisor::Inside), Pool::Average(Divisor::Padded)] {
            let mut expected = vec![f32::NAN; to.len()];
            match how {
                Pool::Max => crate::pool::max(Isa::SCALAR, &Threads::serial(), &x, windows, &mut expected),
                Pool::Average(by) => {
                    crate::pool::average(Isa::SCALAR, &Threads::serial(), &x, windows, by, &mut expected)
                }
            }
            for (blocking, count) in every().flat_map(|blocking| [(blocking, 1), (blocking, 3)]) {
                let threads = Threads::new(count).unwrap();
                let x_blocks = blocked(blocking, batch, channels, from.plane, &x);
                let mut out = vec![9.0; to.blocked_len(blocking)];
                pool(blocking, &threads, how, &x_blocks, windows, &mut out);
                let mut found = vec![9.0; to.len()];
                from_blocks(blocking, &threads, to, &out, &mut found);
                let same = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
                assert!(found.iter().zip(&expected).all(same), "{blocking:?} {how:?} {windows:?}");
            }
        }
    }
}

/// The result of one convolution, in blocks.
fn alone(form: &dyn ConvForm, blocking: Blocking, threads: &Threads, stage: &Stage, w: &[f32], x: &[f32]) -> Vec<f32> {
    let case = ConvCase::new(blocking, stage.shape, true);
    let (shape, bias, epilogue) = (&case.shape, stage.bias, stage.epilogue);
    let mut out = vec![f32::NAN; images(shape.batch, shape.outputs, shape.pixels()).blocked_len(blocking)];
    form.pack(&case, w).run(threads, ConvOperands { shape, bias, x, out: &mut out, epilogue });
    out
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
        let image = noise(batch * channels * shape.input[0] * shape.input[1], 1);
        let bias = noise(channels.max(outputs), 3);
        for (blocking, count) in every().flat_map(|blocking| [(blocking, 1), (blocking, 3)]) {
            let finish = |run: &mut [f32], offset: usize| {
                run.iter_mut().enumerate().for_each(|(i, x)| *x += ((offset + i) / blocking.block() % 5) as f32);
            };
            let epilogue = Epilogue { residual: None, limits: [-0.5, 1.0], finish: Some(&finish) };
            let x = blocked(blocking, batch, channels, shape.input[0] * shape.input[1], &image);
            let threads = Threads::new(count).unwrap();
            let w = [noise(channels * shape.kernel[0] * shape.kernel[1], 2), noise(channels * outputs, 4)];
            let [one, other] = [&shape, &next].map(|shape| ConvCase::new(blocking, shape, true));
            let weights = SeparableWeights::new([&one, &other], [&w[0], &w[1]]);
            let first = Stage { shape: &shape, bias: Some(&bias[..channels]), epilogue };
            let second = Stage { shape: &next, bias: Some(&bias[..outputs]), epilogue };
            let between = alone(&DepthwiseForm, blocking, &threads, &first, &w[0], &x);
            let expected = alone(&DirectForm, blocking, &threads, &second, &w[1], &between);
            let mut found = vec![f32::NAN; expected.len()];
            separable(&threads, &weights, [first, second], &x, &mut found);
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            assert_eq!(bits(&found), bits(&expected), "{shape:?} {blocking:?} {count}");
        }
    }
}

#[test]
fn tiles_cover_every_number_of_blocks() {
    for (blocking, blocks) in every().flat_map(|blocking| (0..20).map(move |blocks| (blocking, blocks))) {
        let (tiles, outputs) = (Tiles::of(blocking), blocks * blocking.block());
        let spans: Vec<[usize; 2]> = tiles.spans(outputs).collect();
        let ends: Vec<usize> = [0].into_iter().chain(spans.iter().map(|&[_, end]| end)).collect();
        assert_eq!(ends.last(), Some(&outputs), "{blocking:?} {blocks}");
        assert!(spans.iter().zip(&ends).all(|([first, _], end)| first == end), "{blocking:?} {spans:?}");
        assert!(
            spans.iter().all(|&[first, end]| first < end && end - first <= tiles.outputs()),
            "{blocking:?} {spans:?}"
        );
        assert_eq!(SUMMED % blocking.block(), 0);
    }
}
