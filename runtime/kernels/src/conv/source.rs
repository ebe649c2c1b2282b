//! The windows of a convolution as the rows of a matrix: row `(n, y, x)`, column `(c, i, j)`.

use crate::conv_shape::Shape;
use crate::gemm::Matrix;
use crate::padded_row::copy_row;
use crate::scratch::Scratch;
use crate::strided::{copy, View};
use crate::threads::Threads;

/// Some output positions: those of whole images, whole rows of one image, or a part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The first image and the number of images.
    pub images: [usize; 2],
    /// The first position and the number of positions in each of them.
    pub positions: [usize; 2],
}

impl Part {
    /// The parts of all outputs, of at most `limit` positions each.
    pub fn all(shape: &Shape, limit: usize) -> impl Iterator<Item = Part> {
        let ([batch, plane, width], limit) = ([shape.batch, shape.pixels(), shape.output[1]], limit.max(1));
        let images = (limit / plane.max(1)).max(1);
        let positions = match limit {
            _ if limit >= plane => plane,
            _ if limit >= width => limit / width * width,
            _ => limit,
        };
        // A part of a row must not reach into the next row.
        let run = if positions < width { width } else { plane };
        let starts =
            move |(first, end): (usize, usize)| (first..end).step_by(positions.max(1)).map(move |at| [at, end]);
        (0..batch).step_by(images).flat_map(move |image| {
            let runs = (0..plane).step_by(run.max(1)).map(move |first| (first, first + run));
            runs.flat_map(starts).map(move |[first, end]| Part {
                images: [image, images.min(batch - image)],
                positions: [first, positions.min(end - first)],
            })
        })
    }

    /// The number of positions in all images.
    pub fn len(&self) -> usize {
        self.images[1] * self.positions[1]
    }
}

/// The channels of one group in all images, with zeros around the images if a window exceeds them.
pub(super) struct Source<'a> {
    shape: &'a Shape,
    data: &'a [f32],
    /// The place of the first tap of the first window.
    offset: usize,
    /// The strides of images, channels and rows.
    strides: [usize; 3],
}

/// The rows and columns that all windows together cover.
fn reach(shape: &Shape) -> [usize; 2] {
    [0, 1].map(|a| {
        let window = (shape.kernel[a].max(1) - 1).saturating_mul(shape.dilations[a]).saturating_add(1);
        (shape.output[a].max(1) - 1).saturating_mul(shape.strides[a]).saturating_add(window)
    })
}

/// The place of the first tap in a plane; `None` if a window exceeds the image.
fn inside(shape: &Shape) -> Option<usize> {
    let reach = reach(shape);
    let first = |a: usize| {
        let first = usize::try_from(-shape.before[a]).ok()?;
        first.checked_add(reach[a]).filter(|&end| end <= shape.input[a]).map(|_| first)
    };
    Some(first(0)? * shape.input[1] + first(1)?)
}

/// The elements of the images of one group with zeros around them; 0 if no window exceeds an image.
pub(super) fn padded_len(shape: &Shape) -> usize {
    let [height, width] = reach(shape);
    let all = [shape.channels / shape.groups, height, width].into_iter().fold(shape.batch, usize::saturating_mul);
    if inside(shape).is_some() {
        0
    } else {
        all
    }
}

/// Elements whose copy is worth several threads.
const SPLIT: usize = 1 << 16;

impl<'a> Source<'a> {
    /// The source of a group of `x` `[N, C, H, W]`. The shape fits, and has outputs.
    pub fn new(
        threads: &Threads,
        shape: &'a Shape,
        group: usize,
        x: &'a [f32],
        room: &'a mut Scratch<f32>,
    ) -> Source<'a> {
        let ([h, w], channels) = (shape.input, shape.channels / shape.groups);
        if let Some(offset) = inside(shape) {
            let strides = [shape.channels * h * w, h * w, w];
            return Source { shape, data: &x[group * channels * h * w..], offset, strides };
        }
        let [height, width] = reach(shape);
        let room = room.alloc_uninit(padded_len(shape));
        let serial = Threads::serial();
        let threads = if room.len() > SPLIT { threads } else { &serial };
        threads.for_each_chunk(room, height * width, |plane, out| {
            let channel = plane / channels * shape.channels + group * channels + plane % channels;
            let x = &x[channel * h * w..][..h * w];
            for (row, out) in out.chunks_exact_mut(width).enumerate() {
                match row.checked_add_signed(-shape.before[0]).filter(|&y| y < h) {
                    Some(y) => copy_row(&x[y * w..][..w], -shape.before[1], 1, out),
                    None => out.fill(0.0),
                }
            }
        });
        Source { shape, data: room, offset: 0, strides: [channels * height * width, height * width, width] }
    }

    /// The matrix of a part's windows. It is the source itself if strides lead from row to row and from column to
    /// column, and a copy otherwise.
    pub fn windows<'s>(&'s self, threads: &Threads, part: Part, room: &'s mut Scratch<f32>) -> Matrix<'s> {
        let Source { shape, data, strides: [image, channel, row], .. } = *self;
        let ([sh, sw], [dh, dw], width) = (shape.strides, shape.dilations, shape.output[1]);
        let offset = self.offset
            + part.images[0] * image
            + part.positions[0] / width * sh * row
            + part.positions[0] % width * sw;
        let lines = part.positions[1].div_ceil(width);
        let rows = [(part.images[1], image), (lines, sh.wrapping_mul(row)), (part.positions[1] / lines, sw)];
        let [kh, kw] = shape.kernel;
        let columns = [(shape.channels / shape.groups, channel), (kh, dh.wrapping_mul(row)), (kw, dw)];
        match (stride(rows), stride(columns)) {
            (Some(row), Some(column)) if column <= NEAR => Matrix { data: &data[offset..], row, column },
            _ => {
                let (dims, strides): (Vec<usize>, Vec<isize>) =
                    rows.into_iter().chain(columns).map(|(size, stride)| (size, stride as isize)).unzip();
                let all = View { offset, dims, strides };
                let room = room.alloc_uninit(all.len());
                copy::<u32>(bytemuck::cast_slice(data), &all, bytemuck::cast_slice_mut(room), threads);
                Matrix::contiguous(room, shape.taps())
            }
        }
    }
}

/// The largest stride of a row's elements that is not worth a copy: several elements share a cache line, which every
/// panel of weights reads again.
const NEAR: usize = 8;

/// Returns the stride of the elements of axes, each a size and a stride, in row-major order; `None` if they have no
/// common stride.
fn stride(axes: [(usize, usize); 3]) -> Option<usize> {
    let mut axes = axes.into_iter().rev().filter(|&(size, _)| size != 1);
    let (size, first) = axes.next().unwrap_or((1, 1));
    axes.try_fold(size, |extent, (size, stride)| (Some(stride) == extent.checked_mul(first)).then_some(extent * size))?;
    Some(first)
}
