//! The windows of a convolution as the rows of a matrix: row `(n, y, x)`, column `(c, i, j)`.

use crate::conv_shape::Shape;
use crate::gemm::Matrix;
use crate::scratch::Scratch;
use crate::strided::copy_runs;
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

/// The channels of one group in all images.
pub(super) struct Source<'a> {
    shape: &'a Shape,
    /// The elements from the group's first channel on.
    data: &'a [f32],
}

/// Elements whose copy is worth several threads.
const SPLIT: usize = 1 << 16;

impl<'a> Source<'a> {
    /// The channels of a group of `x` `[N, C, H, W]`. The shape fits, and has outputs and taps.
    pub fn new(shape: &'a Shape, group: usize, x: &'a [f32]) -> Source<'a> {
        let first = shape.channels / shape.groups * group;
        Source { shape, data: &x[first * shape.input[0] * shape.input[1]..] }
    }

    /// The matrix of a part's windows. It is the image itself if the windows are a [matrix](layout) there, and a copy
    /// otherwise.
    pub fn windows<'s>(&'s self, threads: &Threads, part: Part, scratch: &'s mut Scratch<f32>) -> Matrix<'s> {
        if let Some([offset, row, column]) = layout(self.shape, part) {
            return Matrix { data: &self.data[offset..], row, column };
        }
        let taps = self.shape.taps();
        let serial = Threads::serial();
        let threads = if part.len() * taps > SPLIT { threads } else { &serial };
        let [first, count] = part.positions;
        let window = |i: usize, out: &mut [f32]| self.copy(part.images[0] + i / count, first + i % count, out);
        let windows = scratch.overwrite(part.len() * taps, |windows| threads.for_each_chunk(windows, taps, window));
        Matrix::contiguous(windows, taps)
    }

    /// Copies the window at a position, with zeros for taps outside the image.
    fn copy(&self, image: usize, position: usize, out: &mut [f32]) {
        let Shape { kernel: [kh, kw], dilations: [dh, dw], input: [h, w], .. } = *self.shape;
        let (width, plane) = (self.shape.output[1], h * w);
        let [rows, columns] = [(0, position / width), (1, position % width)].map(|(a, at)| Taps::at(self.shape, a, at));
        if rows.count < kh || columns.count < kw {
            out.fill(0.0);
        }
        if columns.count == 0 {
            return;
        }
        for row in 0..rows.count {
            let from = image * self.shape.channels * plane + (rows.from + row * dh) * w + columns.from;
            let (x, out) = (&self.data[from..], &mut out[(rows.first + row) * kw + columns.first..]);
            if dw == 1 || kw == 1 {
                copy_runs(x, plane, out, kh * kw, columns.count);
            } else {
                (0..columns.count)
                    .for_each(|column| copy_runs(&x[column * dw..], plane, &mut out[column..], kh * kw, 1));
            }
        }
    }
}

/// The taps of a window that are inside the image, along one axis.
struct Taps {
    first: usize,
    count: usize,
    /// The index that the first of these taps reads.
    from: usize,
}

impl Taps {
    /// The taps of the output at an index.
    fn at(shape: &Shape, a: usize, at: usize) -> Taps {
        let start = (at * shape.strides[a]) as isize - shape.before[a];
        let until = |limit: isize| {
            (limit - start).max(0).unsigned_abs().div_ceil(shape.dilations[a].max(1)).min(shape.kernel[a])
        };
        let (first, end) = (until(0), until(shape.input[a] as isize));
        let from = start.saturating_add_unsigned(first.saturating_mul(shape.dilations[a]));
        Taps { first, count: end.saturating_sub(first), from: from.max(0).unsigned_abs() }
    }
}

/// The place of the first tap of the first window in a plane; `None` if a window exceeds the image.
pub(super) fn inside(shape: &Shape) -> Option<usize> {
    let first = |a: usize| {
        let window = shape.kernel[a].max(1).saturating_sub(1).saturating_mul(shape.dilations[a]).saturating_add(1);
        let reach = (shape.output[a].max(1) - 1).saturating_mul(shape.strides[a]).saturating_add(window);
        let first = usize::try_from(-shape.before[a]).ok()?;
        first.checked_add(reach).filter(|&end| end <= shape.input[a]).map(|_| first)
    };
    Some(first(0)? * shape.input[1] + first(1)?)
}

/// Returns where a part's windows are in the images of a group: the place of the first tap, and the strides of windows
/// and of taps. `None` if a window exceeds the image, or if there are no such strides.
fn layout(shape: &Shape, part: Part) -> Option<[usize; 3]> {
    let Shape { strides: [sh, sw], dilations: [dh, dw], kernel: [kh, kw], input: [h, w], output: [_, width], .. } =
        *shape;
    let (plane, image, [first, count]) = (h * w, shape.channels * h * w, part.positions);
    let offset = inside(shape)? + part.images[0] * image + first / width * sh * w + first % width * sw;
    let lines = count.div_ceil(width);
    // The stride of an axis of one element may overflow. It has no effect.
    let rows = [(part.images[1], image), (lines, sh.wrapping_mul(w)), (count / lines, sw)];
    let columns = [(shape.channels / shape.groups, plane), (kh, dh.wrapping_mul(w)), (kw, dw)];
    let column = stride(columns).filter(|&column| column <= NEAR)?;
    Some([offset, stride(rows)?, column])
}

/// The elements of the windows of an image that have to be copied.
pub(super) fn copied(shape: &Shape) -> usize {
    let part = Part { images: [0, 1], positions: [0, shape.pixels()] };
    match part.len() {
        0 => 0,
        positions if layout(shape, part).is_none() => positions * shape.taps(),
        _ => 0,
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
