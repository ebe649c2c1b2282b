//! How a convolution reads its input: parts of the output, and the fixed offsets of their taps.

use super::terms::{taps, Tap};
use crate::buffer::collected_up_to;
use crate::conv_shape::Shape;
use crate::gemm::UNIT;
use crate::padded_row::copy_row;
use crate::scratch::Scratch;
use crate::threads::MOST_THREADS;

/// A part of the output: rows `y[0] .. y[1]`, columns `x[0] .. x[1]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub y: [usize; 2],
    pub x: [usize; 2],
}

/// The layout of the input of a part of the output, and the offsets of its taps.
pub(super) struct Windows {
    /// The channels of a pixel that are contiguous.
    unit: usize,
    /// The strides from one row to the next, and from one block of channels to the next.
    pub row: usize,
    block: usize,
    /// The stride from one output's taps to the next one's.
    pub pixel: usize,
    /// If set, each row is split by its column modulo the stride, so that neighboring outputs read adjacent elements of
    /// a single channel: the number of parts of a row, and the length of each.
    split: Option<[usize; 2]>,
    pub taps: Vec<Tap>,
    /// Whether the input is read in place, without padding.
    direct: bool,
    /// The output's rows and columns; a single row if the rows of the input are contiguous and need no gaps.
    pub output: [usize; 2],
    /// The rows and columns of the largest part.
    part: [usize; 2],
}

/// Elements of a part's input that fit in the L2 cache together with weights and results.
const BUDGET: usize = 1 << 16;
/// The cost of copying a vector, in multiply-adds of a vector.
const COPY: f64 = 4.0;
/// The maximum pixels of a part, for inputs with few channels. Its outputs stay in the L2 cache until the epilogue has
/// run.
const PIXELS: usize = 1 << 11;

impl Windows {
    pub fn new(shape: &Shape, unit: usize, parts: usize) -> Windows {
        let reach = [0, 1].map(|a| (shape.kernel[a] - 1) * shape.dilations[a]);
        let is_split = unit == 1 && shape.strides[1] > 1;
        let direct = !is_split
            && (0..2)
                .all(|a| shape.before[a] == 0 && (shape.output[a] - 1) * shape.strides[a] + reach[a] < shape.input[a]);
        let is_flat = direct && shape.strides == [1, 1] && reach == [0, 0] && shape.output == shape.input;
        let channels = (shape.channels / shape.groups).next_multiple_of(unit).max(1);
        let even = |size: usize, limit: usize| size.div_ceil(size.div_ceil(limit.clamp(1, size)));
        let width = (shape.output[1] - 1) * shape.strides[1] + reach[1] + 1;
        let split = is_split.then(|| [shape.strides[1].min(reach[1] + 1), width.div_ceil(shape.strides[1])]);
        let (output, part, row, rows);
        if is_flat {
            let pixels = shape.output[0] * shape.output[1];
            output = [1, pixels];
            part = [1, even(pixels, (BUDGET / channels).clamp(56, PIXELS).min(pixels.div_ceil(parts)))];
            (row, rows) = (pixels, 1);
        } else {
            let padded = split.map_or(width, |[parts, length]| parts * length);
            row = if direct { shape.input[1] } else { padded };
            let fitting = (BUDGET / channels.saturating_mul(row)).saturating_sub(reach[0]) / shape.strides[0];
            output = shape.output;
            let fitting = if unit == 1 { fitting.min(PIXELS / output[1]) } else { fitting };
            part = [even(output[0], fitting.min(output[0].div_ceil(parts))), output[1]];
            rows = if direct { shape.input[0] } else { (part[0] - 1) * shape.strides[0] + reach[0] + 1 };
        }
        let (row, block) = (row * unit, rows * row * unit);
        let column = |x: usize| match split {
            Some([_, length]) => x % shape.strides[1] * length + x / shape.strides[1],
            None => x * unit,
        };
        let place = |b: usize, i: usize, j: usize| b * block + i * row + column(j);
        let taps = taps(shape, unit, [&(0..shape.kernel[0]), &(0..shape.kernel[1])], place);
        let pixel = if unit == 1 { 1 } else { shape.strides[1] * unit };
        Windows { unit, row, block, pixel, split, taps, direct, output, part }
    }

    /// The time to copy the rows and columns between the taps of a dilated window, for one group, in multiply-adds of a
    /// vector.
    pub fn copying(shape: &Shape, unit: usize) -> f64 {
        let Shape { output, strides, .. } = *shape;
        let channels = (shape.channels / shape.groups).next_multiple_of(unit).max(1);
        let copied = |dilations: [usize; 2]| {
            let extent = |a: usize, outputs: usize| {
                let reach = shape.kernel[a].saturating_sub(1).saturating_mul(dilations[a]);
                (outputs.max(1) - 1).saturating_mul(strides[a]).saturating_add(reach).saturating_add(1)
            };
            let row = extent(1, output[1]);
            let between = extent(0, 1) - 1;
            let fitting = (BUDGET / channels.saturating_mul(row)).saturating_sub(between) / strides[0];
            let parts = output[0].div_ceil(fitting.clamp(1, output[0].max(1)));
            let rows = parts as f64 * between as f64 + output[0] as f64 * strides[0] as f64;
            rows * row as f64 * (channels as f64 / UNIT)
        };
        if shape.dilations == [1, 1] {
            return 0.0;
        }
        COPY * (copied(shape.dilations) - copied([1, 1])).max(0.0)
    }

    /// Windows of single pixels in a buffer of `pixels` pixels, `[C / block, pixels, block]`.
    pub fn of_pixels(shape: &Shape, block: usize, pixels: usize) -> Windows {
        let row = pixels * block;
        let taps = taps(shape, block, [&(0..1), &(0..1)], |b, _, _| b * row);
        let output = [1, shape.pixels()];
        Windows {
            unit: block,
            row,
            block: row,
            pixel: block,
            split: None,
            taps,
            direct: true,
            output,
            part: [1, pixels],
        }
    }

    /// The most elements of the buffers of a convolution in these windows: the copy of a part's image, the list of taps, and
    /// the list of parts. The list has one more part for each thread.
    pub fn lengths(&self, shape: &Shape) -> [usize; 3] {
        let blocks = (shape.channels / shape.groups).div_ceil(self.unit);
        let copied = if self.direct { 0 } else { blocks * self.block };
        let parts = self.parts().len() + MOST_THREADS;
        [copied, self.taps.len() * size_of::<Tap>() / size_of::<f32>(), parts * size_of::<Part>() / size_of::<f32>()]
    }

    pub fn parts(&self) -> Vec<Part> {
        let ranges = |size: usize, step: usize| (0..size).step_by(step).map(move |i| [i, size.min(i + step)]);
        let [rows, columns] = [0, 1].map(|axis| ranges(self.output[axis], self.part[axis]));
        let count = rows.len() * columns.len();
        collected_up_to(count, rows.flat_map(|y| columns.clone().map(move |x| Part { y, x })))
    }

    /// Returns the elements from the first output's first tap on. `x` is one group's input `[C / unit, H, W, unit]`.
    pub fn read<'a>(&self, shape: &Shape, x: &'a [f32], part: &Part, scratch: &'a mut Scratch<f32>) -> &'a [f32] {
        let first = [part.y[0] * shape.strides[0], part.x[0] * shape.strides[1]];
        if self.taps.is_empty() {
            return &[];
        }
        if self.direct {
            return &x[first[0] * self.row + first[1] * self.unit..];
        }
        let height = shape.input[0] as isize;
        let line = shape.input[1] * self.unit;
        let image = shape.input[0] * line;
        let blocks = (shape.channels / shape.groups).div_ceil(self.unit);
        let rows = (part.y[1] - part.y[0] - 1) * shape.strides[0] + (shape.kernel[0] - 1) * shape.dilations[0] + 1;
        scratch.overwrite(blocks * self.block, |copy| {
            for b in 0..blocks {
                for (r, out) in copy[b * self.block..].chunks_exact_mut(self.row).take(rows).enumerate() {
                    let y = (first[0] + r) as isize - shape.before[0];
                    if (0..height).contains(&y) {
                        self.copy_row(shape, &x[b * image + y as usize * line..][..line], out);
                    } else {
                        out.fill(0.0);
                    }
                }
            }
        })
    }

    /// Copies a row with its padding.
    fn copy_row(&self, shape: &Shape, x: &[f32], out: &mut [f32]) {
        match self.split {
            None => copy_row(x, -shape.before[1] * self.unit as isize, 1, out),
            Some([_, length]) => {
                for (place, out) in out.chunks_exact_mut(length).enumerate() {
                    copy_row(x, place as isize - shape.before[1], shape.strides[1], out);
                }
            }
        }
    }
}
