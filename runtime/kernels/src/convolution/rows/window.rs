//! How a convolution reads its input: the windows of a block of outputs are rows at fixed offsets.
//!
//! Output `(y, x)` of a block at tap `(i, j)` reads padded row `y·s + i·d`. Among the rows of the residue `(i·d) mod s`,
//! this is row `y + ⌊i·d / s⌋`. The block's input is therefore copied with its padding, and split into one plane per
//! residue. Then every tap has one constant offset, for any stride, dilation and padding, and consecutive outputs read
//! consecutive elements.
//!
//! The rows of taps of a dilated window have the distance `d`. If a block of adjacent rows would read mostly rows
//! between its own rows of taps, blocks consist of output rows with a distance instead, so that all input rows have the
//! distance `d` ([`Windows::interleaved`]).

use num_integer::gcd;

use crate::buffer::collected_up_to;
use crate::conv_shape::Shape;
use crate::padded_row::copy_row;
use crate::scratch::Scratch;
use crate::threads::MOST_THREADS;

/// A block of the output: some rows at the distance [`Windows::apart`], columns `x[0] .. x[1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The first row.
    pub y: usize,
    /// The number of rows.
    pub rows: usize,
    pub x: [usize; 2],
}

impl Block {
    pub fn columns(&self) -> usize {
        self.x[1] - self.x[0]
    }
}

/// The order in which one group's taps are summed, and their offsets.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    /// The distance of a block's output rows, and that of the input rows that it reads.
    pub apart: [usize; 2],
    /// The stride from one of these output rows to the next, in these input rows.
    stride: usize,
    /// The residues (position modulo the stride) that have a tap; each has one plane.
    residues: Vec<[usize; 2]>,
    /// The rows and columns that a plane has in addition to the block's own.
    reach: [usize; 2],
    /// The rows and columns of the largest block.
    pub block: [usize; 2],
    /// The row stride of a plane, in elements.
    pub row: usize,
    /// The elements of all planes of one channel.
    channel: usize,
    /// The offset of each channel and tap.
    pub offsets: Vec<u32>,
    /// Whether the planes are the input itself.
    direct: bool,
}

/// Elements of a block's input that fit in the L2 cache together with weights and results.
const BUDGET: usize = 1 << 16;
/// Maximum outputs per block: a few rows of results fit in the L2 cache too.
const OUTPUTS: usize = 1 << 12;

impl Windows {
    /// Divides `shape` into blocks that fit the cache, and into at least `parts` of them if the output is large enough.
    pub fn new(shape: &Shape, parts: usize) -> Windows {
        let adjacent = Windows::of(shape, [1, 1], parts);
        if adjacent.direct || adjacent.block[0] >= adjacent.reach[0] {
            return adjacent;
        }
        Windows::interleaved(shape, parts)
    }

    /// Output row `y = r + k·d/g` reads the input rows `r·s + (k·s/g + i)·d − before`, where `g` is the greatest common
    /// divisor of stride and dilation. The output rows of one `r` are therefore a convolution with stride `s/g` and
    /// dilation 1 of input rows with the distance `d`.
    fn interleaved(shape: &Shape, parts: usize) -> Windows {
        let (stride, dilation) = (shape.strides[0], shape.dilations[0]);
        let common = gcd(stride, dilation);
        let apart = dilation / common;
        let rows = Shape {
            strides: [stride / common, shape.strides[1]],
            dilations: [1, shape.dilations[1]],
            output: [shape.output[0].div_ceil(apart), shape.output[1]],
            ..shape.clone()
        };
        Windows::of(&rows, [apart, dilation], parts.div_ceil(apart))
    }

    fn of(shape: &Shape, apart: [usize; 2], parts: usize) -> Windows {
        let Shape { strides, dilations, .. } = *shape;
        let taps = |axis: usize| (0..shape.kernel[axis]).map(move |i| i * dilations[axis]);
        let residues_of = |axis: usize, stride: usize| {
            let mut found = Scratch::of(taps(axis).map(|tap| tap % stride));
            found.sort_unstable();
            collected_up_to(found.len(), found.chunk_by(|a, b| a == b).map(|run| run[0]))
        };
        let columns = residues_of(1, strides[1]);
        let rows = residues_of(0, strides[0]);
        let residues = rows.iter().flat_map(|&y| columns.iter().map(move |&x| [y, x]));
        let residues = collected_up_to(rows.len() * columns.len(), residues);
        let reach = [0, 1].map(|axis| taps(axis).next_back().unwrap_or(0) / strides[axis]);
        let direct = strides == [1, 1]
            && apart == [1, 1]
            && (0..2).all(|a| shape.before[a] == 0 && shape.output[a] + reach[a] <= shape.input[a]);
        let (offsets, block) = (Vec::new(), [0, 0]);
        let mut windows =
            Windows { apart, stride: strides[0], residues, reach, block, row: 0, channel: 0, offsets, direct };
        windows.block = windows.block_size(shape, parts);
        windows.lay_out(shape);
        windows
    }

    fn block_size(&self, shape: &Shape, parts: usize) -> [usize; 2] {
        let channels = (shape.channels / shape.groups * self.residues.len()).max(1);
        let even = |size: usize, limit: usize| size.div_ceil(size.div_ceil(limit.max(1)).max(1));
        let [height, width] = shape.output;
        let row = channels * (width + self.reach[1]);
        let rows = (BUDGET / row.max(1)).saturating_sub(self.reach[0]).min(OUTPUTS / width.max(1));
        if rows > 0 && (height > 1 || parts == 1) {
            return [even(height, rows.min(height.div_ceil(parts))), width];
        }
        let columns = (BUDGET / (channels * (1 + self.reach[0]))).saturating_sub(self.reach[1]);
        let limit = columns.clamp(64, OUTPUTS).min(width.div_ceil(parts).max(64));
        [1, even(width, limit).next_multiple_of(16).min(width)]
    }

    fn lay_out(&mut self, shape: &Shape) {
        let plane = if self.direct {
            self.row = shape.input[1];
            self.channel = shape.input[0] * shape.input[1];
            self.channel
        } else {
            self.row = self.block[1] + self.reach[1];
            let plane = (self.block[0] + self.reach[0]) * self.row;
            self.channel = self.residues.len() * plane;
            plane
        };
        let place = |c: usize, tap: [usize; 2]| {
            let at = [0, 1].map(|a| tap[a] * shape.dilations[a]);
            let residue = [0, 1].map(|a| at[a] % shape.strides[a]);
            let index = self.residues.iter().position(|&p| p == residue).unwrap_or(0);
            let [y, x] = [0, 1].map(|a| at[a] / shape.strides[a]);
            c * self.channel + index * plane + y * self.row + x
        };
        let [kh, kw] = shape.kernel;
        let taps = || (0..kh).flat_map(move |i| (0..kw).map(move |j| [i, j]));
        let channels = shape.channels / shape.groups;
        let all = (0..channels).flat_map(|c| taps().map(move |tap| (c, tap)));
        self.offsets = collected_up_to(channels * kh * kw, all.map(|(c, tap)| place(c, tap) as u32));
    }

    /// The most elements of the buffers of a convolution in these windows, whose tiles have `rows` rows: the copy of a
    /// block's image, a tile's results, the list of offsets, and the list of blocks. The list has one more block for each
    /// thread.
    pub fn lengths(&self, shape: &Shape, rows: usize) -> [usize; 4] {
        let copied = if self.direct { 0 } else { shape.channels / shape.groups * self.channel };
        let results = rows * ((self.block[0] - 1) * self.row + self.block[1]);
        let blocks = self.blocks(shape).len() + MOST_THREADS;
        [copied, results, self.offsets.len(), blocks * size_of::<Block>() / size_of::<f32>()]
    }

    /// The blocks of the output in row-major order.
    pub fn blocks(&self, shape: &Shape) -> Vec<Block> {
        let ranges = |size: usize, step: usize| (0..size).step_by(step.max(1)).map(move |i| [i, size.min(i + step)]);
        let apart = self.apart[0];
        let rows = (0..apart.min(shape.output[0])).flat_map(|first| {
            let count = (shape.output[0] - first).div_ceil(apart);
            ranges(count, self.block[0]).map(move |[from, end]| (first + from * apart, end - from))
        });
        let columns = ranges(shape.output[1], self.block[1]);
        let count = rows.clone().count() * columns.len();
        let blocks = rows.flat_map(|(y, rows)| columns.clone().map(move |x| Block { y, rows, x }));
        collected_up_to(count, blocks)
    }

    /// Returns the elements that [`Windows::offsets`] refer to, for one block of one group's input `[channels, H, W]`.
    pub fn read<'a>(&self, shape: &Shape, x: &'a [f32], block: &Block, scratch: &'a mut Scratch<f32>) -> &'a [f32] {
        if self.offsets.is_empty() {
            return &[];
        }
        if self.direct {
            return &x[block.y * self.row + block.x[0]..];
        }
        let channels = shape.channels / shape.groups;
        let [h, w] = shape.input;
        let plane = self.channel / self.residues.len();
        scratch.overwrite(channels * self.channel, |planes| {
            for (c, planes) in planes.chunks_exact_mut(self.channel).enumerate() {
                let x = &x[c * h * w..(c + 1) * h * w];
                for (residue, plane) in self.residues.iter().zip(planes.chunks_exact_mut(plane)) {
                    self.copy_plane(shape, x, block, *residue, plane);
                }
            }
        })
    }

    fn copy_plane(&self, shape: &Shape, x: &[f32], block: &Block, residue: [usize; 2], plane: &mut [f32]) {
        let [h, w] = shape.input;
        let columns = block.columns() + self.reach[1];
        for (r, out) in plane.chunks_exact_mut(self.row).take(block.rows + self.reach[0]).enumerate() {
            let y = block.y * shape.strides[0] + (r * self.stride + residue[0]) * self.apart[1];
            match y.checked_add_signed(-shape.before[0]).filter(|&y| y < h) {
                Some(y) => {
                    let first = (block.x[0] * shape.strides[1] + residue[1]) as isize - shape.before[1];
                    copy_row(&x[y * w..(y + 1) * w], first, shape.strides[1], &mut out[..columns]);
                }
                None => out[..columns].fill(0.0),
            }
        }
    }
}
