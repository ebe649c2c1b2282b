//! Transposed convolution. Each phase of the output (its position modulo the stride) is a plain convolution.
//!
//! Output `y` uses tap `i` with input row `(y + before − i·d) / s` if that is an integer. With
//! `r = (y + before) mod s`, these are the taps with `(i·d) mod s = r`: every `s / gcd(s, d)`-th tap, with input rows
//! `d / gcd(s, d)` apart. The outputs of one phase are therefore a convolution with stride 1 over the input, with the
//! taps in reverse. The results are interleaved. Outputs of phases without taps equal the bias.

use super::taps::Taps;
use super::{conv, Rows};
use crate::buffer::with_capacity;
use crate::conv_form::{ConvOperands, Epilogue};
use crate::conv_shape::Shape;
use crate::gemm::Finish;
use crate::isa::Isa;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// The weights of a transposed convolution, packed once for each pair of phases that has taps.
#[derive(Debug, Clone)]
pub struct TransposedWeights {
    phases: Vec<Phase>,
}

/// The convolution of one pair of phases.
#[derive(Debug, Clone)]
struct Phase {
    /// The taps along each axis.
    taps: [Taps; 2],
    weights: Rows,
}

impl Phase {
    /// Extracts the weights of `taps` from `w` `[C, O / groups, kernel rows, kernel columns]`.
    fn new(isa: Isa, shape: &Shape, w: &[f32], taps: [Taps; 2]) -> Phase {
        let [kh, kw] = shape.kernel;
        let [y, x] = taps;
        let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
        let count = channels * y.count * x.count;
        let mut phase = with_capacity(shape.outputs * count);
        for (group, output) in (0..shape.groups).flat_map(|g| (0..outputs).map(move |o| (g, o))) {
            for channel in group * channels..(group + 1) * channels {
                let plane = &w[(channel * outputs + output) * kh * kw..][..kh * kw];
                for i in (0..y.count).rev().map(|i| y.first + i * y.step) {
                    phase.extend((0..x.count).rev().map(|j| plane[i * kw + x.first + j * x.step]));
                }
            }
        }
        Phase { taps, weights: Rows::new(isa, shape.groups, outputs, count, &phase) }
    }

    /// Returns the shape of the plain convolution.
    fn shape(&self, shape: &Shape) -> Shape {
        let [y, x] = &self.taps;
        Shape {
            output: [y.outputs(shape, 0).1, x.outputs(shape, 1).1],
            kernel: [y.count, x.count],
            strides: [1, 1],
            dilations: [y.dilation, x.dilation],
            before: [y.before(shape, 0), x.before(shape, 1)],
            ..shape.clone()
        }
    }

    /// The index of its first output in a plane.
    fn origin(&self, shape: &Shape) -> usize {
        self.taps[0].outputs(shape, 0).0 * shape.output[1] + self.taps[1].outputs(shape, 1).0
    }
}

impl Shape {
    /// [`Shape::fits`] for the largest plain convolution of a transposed one.
    pub fn fits_transposed(&self) -> bool {
        let [Some(y), Some(x)] = [0, 1].map(|axis| Taps::all(self, axis).next()) else { return true };
        let largest = Shape {
            output: [0, 1].map(|axis| self.output[axis].div_ceil(self.strides[axis])),
            kernel: [y.count, x.count],
            strides: [1, 1],
            dilations: [y.dilation, x.dilation],
            ..self.clone()
        };
        largest.fits()
    }
}

impl TransposedWeights {
    /// Packs `w` `[C, O / groups, kernel rows, kernel columns]`.
    ///
    /// # Panics
    /// `w` does not have this shape.
    pub fn new(isa: Isa, shape: &Shape, w: &[f32]) -> TransposedWeights {
        let [kh, kw] = shape.kernel;
        assert_eq!(w.len(), shape.channels * (shape.outputs / shape.groups) * kh * kw, "{shape:?}");
        let columns = Taps::all(shape, 1);
        let phases = Taps::all(shape, 0).flat_map(|y| columns.clone().map(move |x| [y, x]));
        TransposedWeights { phases: phases.map(|taps| Phase::new(isa, shape, w, taps)).collect() }
    }

    /// The name of the form: the number of plain convolutions, one per pair of phases that has taps.
    pub fn form(&self) -> String {
        match self.phases.len() {
            1 => "one convolution".to_string(),
            count => format!("{count} convolutions"),
        }
    }

    /// The elements of scratch memory that [`conv_transposed`] needs: the result of one plain convolution, or none if
    /// there is only one.
    pub fn scratch(&self, shape: &Shape) -> usize {
        let sizes = self.phases.iter().map(|phase| phase.shape(shape).pixels());
        match self.alone(shape) {
            Some(_) => 0,
            None => shape.batch * shape.outputs * sizes.max().unwrap_or(0),
        }
    }

    /// The plain convolution, if it computes all outputs.
    fn alone(&self, shape: &Shape) -> Option<&Phase> {
        self.phases.first().filter(|_| shape.strides == [1, 1])
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        self.phases.iter().map(|phase| phase.weights.bytes()).sum()
    }
}

/// `out[n, o, y·s + i·d − before, x·s + j·d − before] += w[c, o, i, j] · x[n, c, y, x]`, starting from the bias. Calls
/// `finish` on every plane. The strides, dilations and `before` of `shape` refer to the output.
///
/// # Panics
/// The slices do not fit the shape, or the shape does not [fit](Shape::fits_transposed).
pub fn conv_transposed(
    threads: &Threads,
    shape: &Shape,
    weights: &TransposedWeights,
    bias: Option<&[f32]>,
    x: &[f32],
    out: &mut [f32],
    finish: Option<Finish>,
) {
    let plane = shape.pixels();
    assert_eq!(out.len(), shape.batch * shape.outputs * plane, "{shape:?}");
    if let Some(phase) = weights.alone(shape) {
        let (shape, epilogue) = (&phase.shape(shape), Epilogue { finish, ..Epilogue::NONE });
        return conv(threads, &phase.weights, ConvOperands { shape, bias, x, out, epilogue });
    }
    if weights.phases.len() < shape.strides[0].saturating_mul(shape.strides[1]) {
        let bias = |plane: usize| bias.map_or(0.0, |bias| bias[plane % shape.outputs]);
        threads.for_each_chunk(out, plane, |plane, run| run.fill(bias(plane)));
    }
    let mut part = Scratch::for_overwrite(weights.scratch(shape));
    for phase in &weights.phases {
        let small = phase.shape(shape);
        let part = &mut part[..shape.batch * shape.outputs * small.pixels()];
        let epilogue = Epilogue::NONE;
        conv(threads, &phase.weights, ConvOperands { shape: &small, bias, x, out: part, epilogue });
        interleave(threads, shape, part, small.output, phase.origin(shape), out);
    }
    if let Some(finish) = finish {
        threads.for_each_chunk(out, plane, |i, run| finish(run, i * plane));
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
