//! Convolutions in `f32` over one or two spatial axes (one axis is an image of one row), in rows.

pub(crate) mod form;
mod packed;
mod plain;
pub(crate) mod product;
mod source;
mod window;

#[cfg(test)]
pub(crate) mod tests;

pub use packed::Rows;
pub use plain::{conv_plain, conv_transposed_plain};

pub use crate::conv_shape::Shape;
use crate::convolution::form::{ConvOperands, Epilogue};
use crate::gemm::tile::{Start, Tile};
use crate::gemm::tiles::Tiles;
use crate::gemm::Shared;
use crate::scratch::Scratch;
use crate::threads::Threads;
use window::{Block, Windows};

/// Multiplications that are worth a thread.
const TASK: usize = 1 << 19;
/// Rows are computed separately if their last vectors waste at most one lane per this many outputs.
const SPARE: usize = 7;

/// The sizes of packed weights: the groups, and the outputs and taps of each.
#[derive(Debug, Clone, Copy)]
struct Weights {
    groups: usize,
    outputs: usize,
    taps: usize,
}

/// Panics if the slices or the weights do not fit the shape.
fn check(operands: &ConvOperands, weights: Weights) {
    let ConvOperands { shape, bias, x, out, .. } = operands;
    assert!(shape.groups > 0 && shape.strides.iter().all(|&s| s > 0) && shape.fits(), "{shape:?}");
    assert!(weights.groups == shape.groups && weights.outputs * shape.groups == shape.outputs, "{shape:?}");
    assert!(weights.taps == shape.taps() && shape.channels.is_multiple_of(shape.groups), "{shape:?}");
    assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "{shape:?}");
    assert_eq!(shape.lengths([1, 1]), Some([x.len(), out.len()]), "{shape:?}");
}

/// `out[n, o, y, x] = bias[o] + Σ w[o, c, i, j] · x[n, c, y·s + i·d − before, x·s + j·d − before]`, then the epilogue,
/// which finishes runs of one output's plane.
///
/// # Panics
/// The slices do not fit the shape, or the shape does not [fit](Shape::fits).
pub fn conv(threads: &Threads, weights: &Rows, operands: ConvOperands) {
    let shape = &operands.shape.row_oriented();
    let operands = ConvOperands { shape, ..operands };
    check(&operands, Weights { groups: weights.groups, outputs: weights.outputs, taps: weights.taps });
    let ConvOperands { bias, x, out, epilogue, .. } = operands;
    if out.is_empty() {
        return;
    }
    let images = shape.batch * shape.groups;
    let wanted = if shape.taps() * out.len() < 2 * TASK { 1 } else { threads.count() };
    let windows = weights.windows.get((shape.clone(), wanted.div_ceil(images)), |(shape, parts)| {
        let windows = Windows::new(shape, *parts);
        let blocks = windows.blocks(shape);
        (windows, blocks)
    });
    let (windows, blocks) = &*windows;
    let units = images * blocks.len();
    // With too few blocks for the threads, each task computes some of the outputs of every block.
    let shares = (2 * wanted).div_ceil(units).clamp(1, if wanted == 1 { 1 } else { weights.panels() });
    let work = Convolution { shape, weights, bias, windows, epilogue, x, out: Shared::new(out) };
    let cost = (shape.taps() * shape.outputs / shape.groups * blocks[0].rows * blocks[0].columns() / shares).max(1);
    let per_task = if wanted == 1 { units * shares } else { (TASK / cost).max(1) };
    threads.for_each((units * shares).div_ceil(per_task), |task| {
        let mut scratch = Buffers::default();
        for i in task * per_task..(units * shares).min((task + 1) * per_task) {
            let (unit, share) = (i / shares, i % shares);
            let panels = [share, share + 1].map(|i| weights.panels() * i / shares);
            work.block(unit / blocks.len(), &blocks[unit % blocks.len()], panels, &mut scratch);
        }
    });
}

struct Convolution<'a> {
    shape: &'a Shape,
    weights: &'a Rows,
    bias: Option<&'a [f32]>,
    windows: &'a Windows,
    epilogue: Epilogue<'a>,
    x: &'a [f32],
    out: Shared,
}

#[derive(Default)]
struct Buffers {
    input: Scratch<f32>,
    rows: Scratch<f32>,
}

impl Convolution<'_> {
    /// Computes one block of the outputs of some panels, for one image (batch entry and group).
    fn block(&self, image: usize, block: &Block, panels: [usize; 2], scratch: &mut Buffers) {
        let shape = self.shape;
        let size = shape.channels / shape.groups * shape.input[0] * shape.input[1];
        let x = self.windows.read(shape, &self.x[image * size..(image + 1) * size], block, &mut scratch.input);
        for panel in panels[0]..panels[1] {
            self.panel(image, block, panel, x, &mut scratch.rows);
        }
    }

    fn panel(&self, image: usize, block: &Block, panel: usize, x: &[f32], scratch: &mut Scratch<f32>) {
        let panel = self.weights.panel(image % self.shape.groups, panel);
        let [height, width] = self.shape.output;
        let first = image * self.weights.outputs + panel.first;
        let start = first * height * width + block.y * width + block.x[0];
        let bias = self.bias.map(|bias| &bias[first % self.shape.outputs..]);
        let tile = Tile {
            a: panel.data.as_ptr(),
            a_row: 1,
            a_step: panel.rows,
            b: x.as_ptr(),
            offsets: &self.windows.offsets,
            start: bias.map_or(Start::Zero, |bias| Start::Rows(bias.as_ptr())),
            out: self.out.at(start),
            out_row: height * width,
            width: block.columns(),
        };
        self.rows(panel.rows, block, tile, scratch);
        let (runs, length) = match self.windows.apart[0] {
            1 => (1, block.rows * block.columns()),
            _ => (block.rows, block.columns()),
        };
        for (row, run) in (0..panel.rows).flat_map(|row| (0..runs).map(move |run| (row, run))) {
            let offset = start + (row * height + run * self.windows.apart[0]) * width;
            // SAFETY: whole rows of this block, or a part of one row. No other task accesses them.
            let run = unsafe { std::slice::from_raw_parts_mut(self.out.at(offset), length) };
            self.epilogue.apply(run, offset);
        }
    }

    /// Computes all rows of pixels of a block for `outputs` outputs; `tile` starts at the first pixel.
    fn rows(&self, outputs: usize, block: &Block, tile: Tile, scratch: &mut Scratch<f32>) {
        let (tiles, width, row) = (Tiles::of(self.weights.isa), self.shape.output[1], self.windows.row);
        let (out_row, vectors) = (self.windows.apart[0] * width, width.next_multiple_of(tiles.lanes));
        // Rows of the input are longer than rows of the output. Rows are computed separately if their last vectors
        // waste few lanes, or fewer than the gaps would. Otherwise, one pass over all rows also computes the outputs in
        // the gaps, which are discarded.
        let length = (block.rows - 1) * row + block.columns();
        // SAFETY: `check` and `Windows` keep every offset inside the input and the weights. This block's outputs belong
        // to this task.
        unsafe {
            if block.rows == 1 || (row == width && row == out_row) {
                tiles.run(outputs, Tile { width: length, ..tile });
            } else if vectors * SPARE <= width * (SPARE + 1) || vectors < row {
                for y in 0..block.rows {
                    let (b, out) = (tile.b.add(y * row), tile.out.add(y * out_row));
                    tiles.run(outputs, Tile { b, out, ..tile });
                }
            } else {
                let wide = scratch.overwrite(outputs * length, |wide| {
                    tiles.run(outputs, Tile { out: wide.as_mut_ptr(), out_row: length, width: length, ..tile });
                });
                for (output, wide) in wide.chunks_exact(length).take(outputs).enumerate() {
                    for (y, wide) in wide.chunks(row).enumerate() {
                        std::ptr::copy_nonoverlapping(
                            wide.as_ptr(),
                            tile.out.add(output * tile.out_row + y * out_row),
                            width,
                        );
                    }
                }
            }
        }
    }
}
