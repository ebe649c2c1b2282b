//! Depthwise convolutions over blocks of channels: every channel has its own window.
//!
//! Windows of common sizes run over whole [rows]. For other windows, adjacent pixels whose windows have the same
//! columns inside the image run along rows, and the few pixels of a narrow edge along columns. No tile needs to check
//! for the end of the image.

pub(crate) mod form;
mod rows;
mod tile;

use std::ops::Range;

use super::axis::{dilation, Axis, Run};
use crate::blocking::Blocking;
use crate::buffer::collected_up_to;
use crate::conv_shape::Shape;
use crate::convolution::form::{ConvOperands, Epilogue};
use crate::gemm::Shared;
use crate::padded_row::copy_row;
use crate::scratch::Scratch;
use crate::threads::Threads;
use rows::Rows;
use tile::Tile;

/// Multiplications that are worth a thread.
const TASK: usize = 1 << 17;
/// Outputs that the epilogue processes together, while they are in the L1 cache.
const PART: usize = 1 << 13;
/// The fewest adjacent pixels with the same taps for which computing row by row is faster. For a dilated window, the
/// fewest pixels of a row, one dilation apart, for which tiles that read each pixel once are faster.
const WIDE: usize = 4;
/// Pixels of an image with its padding that fit in the L1 cache.
const MOST: usize = 1 << 9;

/// The windows of all channels, `[C / B, kh, kw, B]`.
#[derive(Debug, Clone)]
pub struct DepthwiseFilter {
    blocking: Blocking,
    channels: usize,
    kernel: [usize; 2],
    data: Vec<f32>,
}

impl DepthwiseFilter {
    /// Whether a convolution has one group per channel, with one output.
    fn fits(shape: &Shape) -> bool {
        shape.groups == shape.channels && shape.channels == shape.outputs
    }

    /// Packs the weights `w` `[C, 1, kernel…]`.
    ///
    /// # Panics
    /// `w` does not have this shape, or the convolution is not depthwise.
    pub fn new(blocking: Blocking, shape: &Shape, w: &[f32]) -> DepthwiseFilter {
        let (channels, window) = (shape.channels, shape.kernel[0] * shape.kernel[1]);
        assert!(DepthwiseFilter::fits(shape), "{shape:?}");
        assert_eq!(w.len(), channels * window, "{shape:?}");
        let block = blocking.block();
        let lane = |first: usize, i: usize| match first + i % block {
            c if c < channels => w[c * window + i / block],
            _ => 0.0,
        };
        let data = (0..channels).step_by(block).flat_map(|c| (0..window * block).map(move |i| lane(c, i)));
        let data = collected_up_to(channels.next_multiple_of(block) * window, data);
        DepthwiseFilter { blocking, channels, kernel: shape.kernel, data }
    }

    /// The channels of a block.
    pub fn block(&self) -> usize {
        self.blocking.block()
    }

    fn is_for(&self, shape: &Shape) -> bool {
        [shape.groups, shape.channels, shape.outputs] == [self.channels; 3] && shape.has_window(self.kernel)
    }
}

/// `out[n, c, y, x] = bias[c] + Σ filter[c, i, j] · x[n, c, y·s + i·d − before, x·s + j·d − before]`, then the
/// epilogue. `x` is `[N, C / B, H, W, B]` and `out` is `[N, C / B, H', W', B]`.
///
/// # Panics
/// The slices or the filter do not fit the shape.
pub fn depthwise(threads: &Threads, filter: &DepthwiseFilter, operands: ConvOperands) {
    let ConvOperands { shape, bias, x, out, epilogue } = operands;
    assert!(shape.strides.iter().all(|&s| s > 0) && shape.fits() && filter.is_for(shape), "{shape:?}");
    assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "{shape:?}");
    let block = filter.block();
    let blocks = shape.channels.div_ceil(block);
    assert_eq!(shape.lengths([block; 2]), Some([x.len(), out.len()]), "{shape:?}");
    if out.is_empty() {
        return;
    }
    let mut padded = Scratch::filled(0.0, blocks * block);
    if let Some(bias) = bias {
        padded[..bias.len()].copy_from_slice(bias);
    }
    let (products, row) = (out.len() * shape.kernel[0] * shape.kernel[1], shape.output[1] * block);
    let parts = shape.output[0].div_ceil((PART / row).clamp(1, shape.output[0]));
    let units = shape.batch * blocks * parts;
    let window = WindowLoop::of(filter.blocking, shape);
    let work = Depthwise { shape, lanes: block, filter, bias: padded, window, x, out: Shared::new(out), epilogue };
    let tasks = if threads.count() == 1 { 1 } else { (products / TASK).clamp(1, units) };
    threads.for_each(tasks, |task| {
        let mut scratch = Scratch::new();
        for unit in units * task / tasks..units * (task + 1) / tasks {
            let (image, part, block) = (unit / (parts * blocks), unit / blocks % parts, unit % blocks);
            let [first, end] = [part, part + 1].map(|i| shape.output[0] * i / parts);
            work.part(image * blocks + block, first..end, &mut scratch);
        }
    });
}

/// How a window is computed.
enum WindowLoop {
    /// A window of a common size: by whole rows. The second kernel computes two rows at once.
    Rows(rows::Kernel, Option<rows::Kernel>),
    /// Any other window, with the runs of a row.
    Any([Axis; 2], Vec<Run>),
}

impl WindowLoop {
    fn of(blocking: Blocking, shape: &Shape) -> WindowLoop {
        let dilations = [0, 1].map(|a| dilation(shape, a));
        let fits = dilations[1] == 1 || shape.strides[1] == 1;
        let table = rows::table(blocking, shape.kernel[1], shape.strides[1]).filter(|_| fits);
        let is_square = shape.kernel[0] == shape.kernel[1] && [shape.strides[0], dilations[0]] == [1, 1];
        let [one, two] = table.unwrap_or_default();
        let columns = shape.output[1] / dilations[1];
        match rows::kernel(one, columns).filter(|_| dilations[1] == 1 || columns >= WIDE) {
            Some(one) => WindowLoop::Rows(one, rows::kernel(two, columns).filter(|_| is_square)),
            None => {
                let axes = axes(shape);
                let runs = axes[1].runs();
                WindowLoop::Any(axes, runs)
            }
        }
    }
}

/// Returns the axes of the image. If the padded image is small and many windows cross the border, returns those of the
/// padded image.
fn axes(shape: &Shape) -> [Axis; 2] {
    let axes = [0, 1].map(|a| Axis::new(shape, a));
    let whole = axes[0].whole.len() * axes[1].whole.len();
    let extent = |a: usize| (shape.output[a] - 1) * shape.strides[a] + shape.kernel[a] * axes[a].dilation;
    match 3 * whole < 2 * shape.pixels() && extent(0) * extent(1) <= MOST {
        true => [0, 1].map(|a| Axis::padded(shape, a)),
        false => axes,
    }
}

struct Depthwise<'a> {
    shape: &'a Shape,
    /// The channels of a block.
    lanes: usize,
    filter: &'a DepthwiseFilter,
    bias: Scratch<f32>,
    window: WindowLoop,
    x: &'a [f32],
    out: Shared,
    epilogue: Epilogue<'a>,
}

/// One block of channels of one image.
#[derive(Clone, Copy)]
struct Block<'a> {
    index: usize,
    x: &'a [f32],
}

impl Depthwise<'_> {
    /// Computes some rows of one block.
    fn part(&self, index: usize, rows: Range<usize>, scratch: &mut Scratch<f32>) {
        let size = self.shape.input[0] * self.shape.input[1] * self.lanes;
        let x = &self.x[index * size..][..size];
        match &self.window {
            WindowLoop::Rows(one, two) => self.whole_rows(Block { index, x }, rows.clone(), *one, *two),
            WindowLoop::Any(axes, runs) => {
                self.any_rows(axes, runs, Block { index, x: self.padded(axes, x, scratch) }, rows.clone())
            }
        }
        if let Some(finish) = self.epilogue.finish {
            let (start, row) = (self.offset(index, rows.start, 0), self.shape.output[1] * self.lanes);
            // SAFETY: these rows belong to this task and were written above.
            finish(unsafe { std::slice::from_raw_parts_mut(self.out.at(start), rows.len() * row) }, start);
        }
    }

    /// Computes rows for a window of a common size: two at a time as far as possible.
    fn whole_rows(&self, block: Block, rows: Range<usize>, one: rows::Kernel, two: Option<rows::Kernel>) {
        let channel = block.index % self.shape.channels.div_ceil(self.lanes);
        let [kh, kw] = self.shape.kernel;
        let middle = if two.is_some() { rows.end - rows.len() % 2 } else { rows.start };
        for (kernel, rows) in [(two.unwrap_or(one), rows.start..middle), (one, middle..rows.end)] {
            if rows.is_empty() {
                continue;
            }
            let rows = Rows {
                x: block.x.as_ptr(),
                input: self.shape.input,
                from: [(rows.start * self.shape.strides[0]) as isize - self.shape.before[0], -self.shape.before[1]],
                stride: self.shape.strides[0],
                dilation: dilation(self.shape, 0),
                taps: kh,
                w: self.filter.data[channel * kh * kw * self.lanes..].as_ptr(),
                bias: self.bias[channel * self.lanes..].as_ptr(),
                limits: self.epilogue.limits,
                out: self.out.at(self.offset(block.index, rows.start, 0)),
                rows: rows.len(),
                columns: self.shape.output[1],
                apart: dilation(self.shape, 1),
            };
            // SAFETY: `depthwise` checked the slices, and [`WindowLoop::of`] the window. The rows belong to this task. The
            // kernel belongs to the filter's `Isa`, which proves that the processor has its instructions.
            unsafe { kernel(&rows) };
        }
    }

    /// Computes rows for any window.
    fn any_rows(&self, axes: &[Axis; 2], runs: &[Run], block: Block, rows: Range<usize>) {
        for run in runs {
            if run.taps.len() == self.shape.kernel[1] || run.outputs.len() >= WIDE {
                rows.clone().for_each(|y| self.row(axes, block, y, run.outputs.clone()));
            } else {
                run.outputs.clone().for_each(|x| self.column(axes, block, x, rows.clone()));
            }
        }
    }

    /// Returns the image `[H, W, B]` with the padding that the axes specify.
    fn padded<'a>(&self, [down, across]: &[Axis; 2], x: &'a [f32], scratch: &'a mut Scratch<f32>) -> &'a [f32] {
        let ([height, width], lanes) = (self.shape.input, self.lanes);
        if [down.input, across.input] == [height, width] && [down.added, across.added] == [0, 0] {
            return x;
        }
        let row = |y: usize, out: &mut [f32]| match y.checked_add_signed(-down.added).filter(|&y| y < height) {
            Some(y) => copy_row(&x[y * width * lanes..][..width * lanes], -across.added * lanes as isize, 1, out),
            None => out.fill(0.0),
        };
        scratch.overwrite(down.input * across.input * lanes, |image| {
            image.chunks_exact_mut(across.input * lanes).enumerate().for_each(|(y, out)| row(y, out));
        })
    }

    /// Computes pixels of a row whose windows have the same columns inside the image.
    fn row(&self, axes: &[Axis; 2], block: Block, y: usize, columns: Range<usize>) {
        let tile = Tile { pixel: axes[1].stride * self.lanes, ..self.tile(axes, block, y, columns.start) };
        // SAFETY: these taps of all columns are inside the image. The `Isa` of the filter proves that the processor has
        // the instructions of the tiles.
        unsafe { tile::run(tile::tiles(self.filter.blocking), columns.len(), tile) };
    }

    /// Computes one column of outer pixels.
    fn column(&self, axes: &[Axis; 2], block: Block, x: usize, rows: Range<usize>) {
        let down = &axes[0];
        let any = tile::tiles(self.filter.blocking);
        let run = |y: usize, pixels: usize| {
            let tile = self.tile(axes, block, y, x);
            let (pixel, out_pixel) = (tile.pixel * down.stride, self.shape.output[1] * self.lanes);
            // SAFETY: the taps are inside the image, both for one pixel and for pixels that have all taps of a column.
            // For the `Isa`, see `row`.
            unsafe { tile::run(any, pixels, Tile { pixel, out_pixel, ..tile }) };
        };
        let whole = rows.start.max(down.whole.start)..rows.end.min(down.whole.end);
        if whole.is_empty() {
            return rows.for_each(|y| run(y, 1));
        }
        (rows.start..whole.start).chain(whole.end..rows.end).for_each(|y| run(y, 1));
        run(whole.start, whole.len());
    }

    /// Returns the index of an output.
    fn offset(&self, block: usize, y: usize, x: usize) -> usize {
        let [height, width] = self.shape.output;
        ((block * height + y) * width + x) * self.lanes
    }

    /// Returns the tile whose first pixel is an output, with only the taps inside the image. The pixels are one input
    /// row apart.
    fn tile(&self, [down, across]: &[Axis; 2], block: Block, y: usize, x: usize) -> Tile {
        let [kh, kw] = self.shape.kernel;
        let (i, j, row) = (down.taps[y], across.taps[x], across.input * self.lanes);
        let channel = block.index % self.shape.channels.div_ceil(self.lanes);
        Tile {
            x: block.x.as_ptr().wrapping_add(i.from * row + j.from * self.lanes),
            pixel: row,
            row: down.dilation * row,
            column: across.dilation * self.lanes,
            taps: [i.count, j.count],
            w: self.filter.data.as_ptr().wrapping_add(((channel * kh + i.first) * kw + j.first) * self.lanes),
            w_row: kw * self.lanes,
            bias: self.bias[channel * self.lanes..].as_ptr(),
            out: self.out.at(self.offset(block.index, y, x)),
            out_pixel: self.lanes,
            limits: self.epilogue.limits,
        }
    }
}
