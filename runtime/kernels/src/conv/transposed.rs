//! Transposed convolution: each remainder of the output's position by the stride is a plain convolution of its own.
//!
//! Output `y` takes tap `i` from input row `(y + before − i·d) / s` where that is whole. With `r = (y + before) mod s`, the taps are
//! those with `(i·d) mod s = r`: every `s / gcd(s, d)`-th one, their input rows `d / gcd(s, d)` apart. So the outputs of one
//! remainder are a convolution of stride 1 over the input, with its taps in reverse; the results are interleaved.

use super::{conv, Rows, Shape, Weights};
use crate::buffer;
use crate::gemm::Finish;
use crate::isa::Isa;
use crate::threads::Threads;

/// The weights of a transposed convolution, rearranged once: those of each pair of remainders.
#[derive(Debug, Clone)]
pub struct TransposedWeights {
    phases: Vec<(Taps, Taps, Weights)>,
}

/// The taps of one remainder on one axis.
#[derive(Debug, Clone, Copy)]
struct Taps {
    remainder: usize,
    /// The first tap, the step to the next, and how many there are.
    first: usize,
    step: usize,
    count: usize,
    /// The step between the input rows that they read.
    dilation: usize,
}

impl Taps {
    /// The taps of every remainder of one axis.
    fn all(kernel: usize, stride: usize, dilation: usize) -> impl Iterator<Item = Taps> + Clone {
        let common = gcd(stride, dilation);
        let step = stride / common;
        (0..stride).map(move |remainder| {
            let first = (0..kernel.min(step)).find(|i| i * dilation % stride == remainder).unwrap_or(kernel);
            let count = (kernel - first).div_ceil(step);
            Taps { remainder, first, step, count, dilation: dilation / common }
        })
    }

    /// The first output of this remainder, and how many there are.
    fn outputs(&self, shape: &Shape, axis: usize) -> (usize, usize) {
        let stride = shape.strides[axis];
        let before = shape.before[axis].rem_euclid(stride as isize) as usize;
        let first = (self.remainder + stride - before) % stride;
        (first, shape.output[axis].saturating_sub(first).div_ceil(stride))
    }

    /// The zeros before the input of this remainder's convolution.
    fn before(&self, shape: &Shape, axis: usize) -> isize {
        let stride = shape.strides[axis] as isize;
        let (first, remainder) = (self.outputs(shape, axis).0 as isize, self.remainder as isize);
        let row = (first + shape.before[axis] - remainder) / stride;
        let nearest = ((self.first * shape.dilations[axis]) as isize - remainder) / stride;
        nearest + (self.count as isize - 1) * self.dilation as isize - row
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

impl TransposedWeights {
    /// Packs `w`, of shape `[C, O / groups, kernel rows, kernel columns]`.
    ///
    /// # Panics
    /// `w` is not of that shape.
    pub fn new(isa: Isa, shape: &Shape, w: &[f32]) -> TransposedWeights {
        let [kh, kw] = shape.kernel;
        let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
        assert_eq!(w.len(), shape.channels * outputs * kh * kw, "{shape:?}");
        let columns = Taps::all(kw, shape.strides[1], shape.dilations[1]);
        let pack = |y: Taps, x: Taps| {
            let taps = channels * y.count * x.count;
            let mut phase = Vec::with_capacity(shape.outputs * taps);
            for (group, output) in (0..shape.groups).flat_map(|g| (0..outputs).map(move |o| (g, o))) {
                for channel in group * channels..(group + 1) * channels {
                    let plane = &w[(channel * outputs + output) * kh * kw..][..kh * kw];
                    for i in (0..y.count).rev().map(|i| y.first + i * y.step) {
                        phase.extend((0..x.count).rev().map(|j| plane[i * kw + x.first + j * x.step]));
                    }
                }
            }
            (y, x, Weights::Rows(Rows::new(isa, shape.groups, outputs, taps, &phase)))
        };
        let rows = Taps::all(kh, shape.strides[0], shape.dilations[0]);
        TransposedWeights {
            phases: rows.flat_map(|y| columns.clone().map(move |x| (y, x))).map(|(y, x)| pack(y, x)).collect(),
        }
    }

    /// The form, in words: a convolution for each remainder that output rows and columns leave by the strides.
    pub fn form(&self) -> String {
        match self.phases.len() {
            1 => "one convolution".to_string(),
            count => format!("{count} convolutions"),
        }
    }

    /// The bytes that the packed weights take.
    pub fn bytes(&self) -> usize {
        self.phases.iter().map(|(_, _, weights)| weights.bytes()).sum()
    }
}

/// `out[n, o, y·s + i·d − before, x·s + j·d − before] += w[c, o, i, j] · x[n, c, y, x]` over a bias, then `finish` over every
/// plane. The strides, dilations and `before` of `shape` are those of the output.
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv_transposed(
    threads: &Threads,
    shape: &Shape,
    weights: &TransposedWeights,
    bias: Option<&[f32]>,
    x: &[f32],
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let [height, width] = shape.output;
    assert_eq!(out.len(), shape.batch * shape.outputs * height * width, "{shape:?}");
    if weights.phases.len() == 1 && weights.phases[0].0.step == 1 {
        let (y, x_taps, packed) = &weights.phases[0];
        return conv(threads, &phase_shape(shape, y, x_taps), packed, bias, x, out, finish);
    }
    let mut part = Vec::new();
    for (y, x_taps, packed) in &weights.phases {
        let phase = phase_shape(shape, y, x_taps);
        let [rows, columns] = phase.output;
        let size = shape.batch * shape.outputs * rows * columns;
        if part.len() < size {
            part = buffer::for_overwrite(size);
        }
        conv(threads, &phase, packed, bias, x, &mut part[..size], None);
        let origin = y.outputs(shape, 0).0 * width + x_taps.outputs(shape, 1).0;
        interleave(threads, shape, &part[..size], [rows, columns], origin, out);
    }
    if let Some(finish) = finish {
        threads.for_each_chunk(out, height * width, |plane, run| finish(run, plane * height * width));
    }
}

/// The plain convolution of one pair of remainders.
fn phase_shape(shape: &Shape, y: &Taps, x: &Taps) -> Shape {
    Shape {
        output: [y.outputs(shape, 0).1, x.outputs(shape, 1).1],
        kernel: [y.count, x.count],
        strides: [1, 1],
        dilations: [y.dilation, x.dilation],
        before: [y.before(shape, 0), x.before(shape, 1)],
        ..shape.clone()
    }
}

/// Writes planes of `size` to every `stride`-th element and row of the output's planes.
fn interleave(threads: &Threads, shape: &Shape, part: &[f32], size: [usize; 2], origin: usize, out: &mut [f32]) {
    let [rows, columns] = size;
    let [height, width] = shape.output;
    if rows == 0 || columns == 0 {
        return;
    }
    threads.for_each_chunk(out, height * width, |plane, out| {
        let part = &part[plane * rows * columns..(plane + 1) * rows * columns];
        for (row, part) in part.chunks_exact(columns).enumerate() {
            let out = out[origin + row * shape.strides[0] * width..].iter_mut().step_by(shape.strides[1]);
            out.zip(part).for_each(|(out, part)| *out = *part);
        }
    });
}
