//! Convolutions over blocks of channels, tap by tap.

use super::tile::{Tile, Tiles};
use super::window::{Part, Windows};
use super::BLOCK;
use crate::conv::Shape;
use crate::gemm::{Finish, Shared};
use crate::isa::Isa;
use crate::threads::Threads;

/// Multiplications that are worth a thread of their own.
const TASK: usize = 1 << 20;

/// Weights in the order in which tiles read them: for each group and span of outputs `[C / 16][kh][kw][16][outputs of the span]`.
#[derive(Debug, Clone)]
pub struct Filter {
    isa: Isa,
    groups: usize,
    /// Of one group.
    channels: usize,
    /// Of one group.
    outputs: usize,
    kernel: [usize; 2],
    data: Vec<f32>,
}

impl Filter {
    /// Whether a convolution can be done in blocks: a group is a number of whole blocks.
    pub fn fits(groups: usize, channels: usize, outputs: usize) -> bool {
        groups == 1
            || (groups > 1 && (channels / groups).is_multiple_of(BLOCK) && (outputs / groups).is_multiple_of(BLOCK))
    }

    /// Packs `w`, of shape `[groups · outputs, channels, kernel…]`.
    ///
    /// # Panics
    /// `w` is not of that shape, or the groups are not whole blocks.
    pub fn new(isa: Isa, groups: usize, outputs: usize, channels: usize, kernel: [usize; 2], w: &[f32]) -> Filter {
        let window = kernel[0] * kernel[1];
        assert!(Filter::fits(groups, groups * channels, groups * outputs), "{groups} groups of {channels} channels");
        assert_eq!(w.len(), groups * outputs * channels * window);
        let mut filter = Filter { isa, groups, channels, outputs, kernel, data: Vec::new() };
        filter.data.reserve_exact(groups * outputs.next_multiple_of(BLOCK) * channels * window);
        for group in 0..groups {
            for [first, end] in filter.spans() {
                for (c, tap) in filter.terms() {
                    filter.data.extend((first..end).map(|o| match o < outputs {
                        true => w[((group * outputs + o) * channels + c) * window + tap],
                        false => 0.0,
                    }));
                }
            }
        }
        filter
    }

    /// The outputs of one group in spans that a tile covers; the last may reach beyond the last output.
    fn spans(&self) -> Vec<[usize; 2]> {
        let (step, end) = (Tiles::of(self.isa).outputs, self.outputs.next_multiple_of(BLOCK));
        (0..end).step_by(step).map(|first| [first, end.min(first + step)]).collect()
    }

    /// The terms of an output's sum, as channel and tap, in order.
    fn terms(&self) -> Vec<(usize, usize)> {
        let blocks = (0..self.channels).step_by(BLOCK).map(|first| (first, self.channels.min(first + BLOCK)));
        blocks
            .flat_map(|(first, end)| {
                (0..self.kernel[0] * self.kernel[1]).flat_map(move |tap| (first..end).map(move |c| (c, tap)))
            })
            .collect()
    }

    /// The weights of outputs `first ..` of a group.
    fn span(&self, group: usize, first: usize) -> &[f32] {
        let terms = self.channels * self.kernel[0] * self.kernel[1];
        &self.data[(group * self.outputs.next_multiple_of(BLOCK) + first) * terms..]
    }
}

/// `out = bias + filter * x`, then `finish` over runs of whole rows of one block of outputs. `x` is `[N, C / 16, H, W, 16]`, `out`
/// `[N, O / 16, H', W', 16]`.
///
/// # Panics
/// The slices do not fit the shape, or its offsets do not fit 32 bits.
pub fn conv(
    threads: &Threads,
    shape: &Shape,
    filter: &Filter,
    bias: Option<&[f32]>,
    x: &[f32],
    out: &mut [f32],
    finish: Option<Finish>,
) {
    check(shape, filter, bias, x, out);
    if out.is_empty() {
        return;
    }
    let bias = bias.map(|bias| padded(bias, filter));
    let images = shape.batch * shape.groups;
    let products = filter.channels * filter.kernel[0] * filter.kernel[1];
    let wanted = if products * out.len() < 2 * TASK { 1 } else { threads.count() };
    let windows = Windows::new(shape, wanted.div_ceil(images));
    let (parts, spans) = (windows.parts(), filter.spans());
    let units = images * parts.len();
    // Too few parts for the threads: each takes some of the outputs of every part.
    let shares = (2 * wanted).div_ceil(units).clamp(1, if wanted == 1 { 1 } else { spans.len() });
    let work = Direct { shape, filter, bias, windows, finish, x, out: Shared::new(out) };
    threads.for_each(if wanted == 1 { 1 } else { units * shares }, |task| {
        let mut scratch = Vec::new();
        let all = if wanted == 1 { 0..units * shares } else { task..task + 1 };
        for (unit, share) in all.map(|i| (i / shares, i % shares)) {
            let [first, end] = [share, share + 1].map(|i| spans.len() * i / shares);
            work.part(unit / parts.len(), &parts[unit % parts.len()], &spans[first..end], &mut scratch);
        }
    });
}

fn check(shape: &Shape, filter: &Filter, bias: Option<&[f32]>, x: &[f32], out: &[f32]) {
    assert!(shape.groups > 0 && shape.strides.iter().all(|&s| s > 0) && shape.fits(), "{shape:?}");
    assert!(filter.groups == shape.groups && filter.kernel == shape.kernel, "{shape:?}");
    assert!(
        filter.channels * shape.groups == shape.channels && filter.outputs * shape.groups == shape.outputs,
        "{shape:?}"
    );
    assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "{shape:?}");
    let length = |channels: usize, [h, w]: [usize; 2]| shape.batch * channels.next_multiple_of(BLOCK) * h * w;
    assert_eq!(x.len(), length(shape.channels, shape.input), "{shape:?}");
    assert_eq!(out.len(), length(shape.outputs, shape.output), "{shape:?}");
}

/// The bias with a value for every lane of every block.
fn padded(bias: &[f32], filter: &Filter) -> Vec<f32> {
    let mut padded = bias.to_vec();
    padded.resize(filter.groups * filter.outputs.next_multiple_of(BLOCK), 0.0);
    padded
}

struct Direct<'a> {
    shape: &'a Shape,
    filter: &'a Filter,
    bias: Option<Vec<f32>>,
    windows: Windows,
    finish: Option<Finish<'a>>,
    x: &'a [f32],
    out: Shared,
}

impl Direct<'_> {
    /// One part of some spans of one image (batch entry and group).
    fn part(&self, image: usize, part: &Part, spans: &[[usize; 2]], scratch: &mut Vec<f32>) {
        let (shape, windows) = (self.shape, &self.windows);
        let size = self.filter.channels.next_multiple_of(BLOCK) * shape.input[0] * shape.input[1];
        let x = windows.read(shape, &self.x[image * size..(image + 1) * size], part, scratch);
        for &[first, end] in spans {
            self.span(image, part, [first, end], x);
            for block in (first..end).step_by(BLOCK) {
                self.finish(image, part, block);
            }
        }
    }

    /// Where an output of the part lies.
    fn at(&self, image: usize, output: usize, y: usize, x: usize) -> usize {
        let [height, width] = self.windows.output;
        let outputs = self.filter.outputs.next_multiple_of(BLOCK);
        (image * outputs + output) * height * width + (y * width + x) * BLOCK
    }

    fn span(&self, image: usize, part: &Part, [first, end]: [usize; 2], x: &[f32]) {
        let (shape, windows, filter) = (self.shape, &self.windows, self.filter);
        let tiles = Tiles::of(filter.isa);
        let (group, width) = (image % filter.groups, part.x[1] - part.x[0]);
        let partial = filter.channels % BLOCK;
        let lanes = group * filter.outputs.next_multiple_of(BLOCK) + first;
        let tile = Tile {
            x: x.as_ptr(),
            pixel: shape.strides[1] * BLOCK,
            row: shape.strides[0] * windows.row,
            taps: &windows.taps,
            last: if partial == 0 { 0 } else { filter.kernel[0] * filter.kernel[1] },
            last_channels: partial,
            w: filter.span(group, first).as_ptr(),
            start: self.bias.as_ref().map_or(std::ptr::null(), |bias| bias[lanes..].as_ptr()),
            out: self.out.at(self.at(image, first, part.y[0], part.x[0])),
            out_block: windows.output[0] * windows.output[1] * BLOCK,
            out_row: windows.output[1] * BLOCK,
        };
        let mut y = 0;
        while y < part.y[1] - part.y[0] {
            let rows = if width <= tiles.pixels(2, end - first) && y + 1 < part.y[1] - part.y[0] { 2 } else { 1 };
            let (x, out) = (tile.x.wrapping_add(y * tile.row), tile.out.wrapping_add(y * tile.out_row));
            // SAFETY: `check` and `Windows` keep every tap inside `x`, and `Filter` the weights; this part of these outputs
            // is this task's.
            unsafe { tiles.run(rows, width, end - first, Tile { x, out, ..tile }) };
            y += rows;
        }
    }

    fn finish(&self, image: usize, part: &Part, block: usize) {
        let Some(finish) = self.finish else { return };
        let (start, pixels) = (self.at(image, block, part.y[0], part.x[0]), part.x[1] - part.x[0]);
        let length = (part.y[1] - part.y[0]) * pixels * BLOCK;
        // SAFETY: a part has whole rows, or is part of one row; no other task touches them.
        finish(unsafe { std::slice::from_raw_parts_mut(self.out.at(start), length) }, start);
    }
}
