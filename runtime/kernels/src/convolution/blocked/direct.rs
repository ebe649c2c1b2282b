//! Convolutions over blocks of channels, tap by tap. If the window is dilated, see also [regions](super::regions).

use std::sync::Arc;

use super::conv::{split, Convolution};
use super::tile::{Tile, Tiles};
use super::window::{Part, Windows};
use crate::threads::Threads;

/// Pixels that the epilogue processes together.
const FINISHED: usize = 112;

pub(super) struct Direct<'a> {
    convolution: &'a Convolution<'a>,
    windows: Arc<Windows>,
    wanted: usize,
}

impl<'a> Direct<'a> {
    pub fn new(convolution: &'a Convolution, threads: &Threads) -> Direct<'a> {
        let Convolution { shape, filter, .. } = convolution;
        let terms = filter.channels * filter.kernel[0] * filter.kernel[1];
        let wanted = convolution.wanted(threads, terms * convolution.images() * filter.outputs * shape.pixels());
        let parts = wanted.div_ceil(convolution.images());
        let windows =
            filter.windows.get(((*shape).clone(), parts), |(shape, parts)| Windows::new(shape, filter.unit, *parts));
        Direct { convolution, windows, wanted }
    }

    /// A convolution of single pixels in a buffer of `pixels` pixels.
    pub fn of_pixels(convolution: &'a Convolution, pixels: usize) -> Direct<'a> {
        let windows = Windows::of_pixels(convolution.shape, convolution.block(), pixels);
        Direct { convolution, windows: Arc::new(windows), wanted: 1 }
    }

    /// Computes the outputs of an image, starting at pixel `first`, from `x` `[C / B, pixels, B]`.
    pub fn pixels(&self, image: usize, first: usize, x: &[f32]) {
        let part = Part { y: [0, 1], x: [first, first + self.windows.row / self.convolution.block()] };
        self.convolution.filter.spans().into_iter().for_each(|span| self.span(image, &part, span, x));
    }

    pub fn run(&self, threads: &Threads) {
        let (parts, spans) = (self.windows.parts(), self.convolution.filter.spans());
        split(threads, self.wanted, self.convolution.images() * parts.len(), &spans, |unit, spans, scratch| {
            let (image, part) = (unit / parts.len(), &parts[unit % parts.len()]);
            let x = self.windows.read(self.convolution.shape, self.convolution.input(image), part, scratch);
            spans.iter().for_each(|&span| self.span(image, part, span, x));
        });
    }

    /// Computes one part of a span of one image's outputs. The epilogue processes whole rows, or pieces of a single
    /// row, while they are in the L1 cache.
    fn span(&self, image: usize, part: &Part, [first, end]: [usize; 2], x: &[f32]) {
        let (tiles, outputs, block) =
            (Tiles::of(self.convolution.filter.blocking), end - first, self.convolution.block());
        let (height, width) = (part.y[1] - part.y[0], part.x[1] - part.x[0]);
        let pixel = part.y[0] * self.windows.output[1] + part.x[0];
        let tile = self.tile(image, first, pixel, x);
        let piece = if height == 1 && self.convolution.epilogue.finish.is_some() { FINISHED } else { width };
        let (mut y, mut done) = (0, 0);
        while y < height {
            let rows = if width <= tiles.pixels(2, outputs) && y + 1 < height { 2 } else { 1 };
            for at in (0..width).step_by(piece) {
                let columns = piece.min(width - at);
                let x = tile.x.wrapping_add(y * tile.row + at * tile.pixel);
                let place = y * tile.out_row + at * block;
                let (out, residual) = (tile.out.wrapping_add(place), tile.residual.from(place));
                // SAFETY: `Filter::run` and `Windows` keep every tap inside `x`, and `Filter` keeps the weights inside
                // its data. Only this task writes this part of these outputs. `tiles` belong to an `Isa`, which proves
                // that the processor has their instructions.
                unsafe { tiles.run(rows, columns, outputs, Tile { x, out, residual, ..tile }) };
                let ready = (y + rows - 1) * width + at + columns;
                if ready - done >= FINISHED || ready == height * width {
                    for output in (first..end).step_by(block) {
                        // SAFETY: a part is whole rows or a part of one row. It belongs to this task and has been
                        // written.
                        unsafe { self.convolution.finish(image, output, pixel + done, ready - done) };
                    }
                    done = ready;
                }
            }
            y += rows;
        }
    }

    /// Returns the tile of one image's outputs from `first` on that starts at a pixel.
    fn tile<'t>(&'t self, image: usize, first: usize, pixel: usize, x: &[f32]) -> Tile<'t> {
        let (Convolution { shape, filter, .. }, windows) = (self.convolution, &self.windows);
        Tile {
            x: x.as_ptr(),
            pixel: windows.pixel,
            row: shape.strides[0] * windows.row,
            last: self.convolution.last(windows.taps.len(), filter.kernel[0] * filter.kernel[1]),
            out_row: windows.output[1] * self.convolution.block(),
            ..self.convolution.tile(image, first, pixel, &windows.taps)
        }
    }
}
