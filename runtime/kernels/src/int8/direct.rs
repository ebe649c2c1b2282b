//! Convolutions that read their windows in place, in a padded band of the image.

use std::ops::Range;

use super::codes::{Codes, SIGN, SPLIT};
use super::finish::Finish;
use super::operands::Tile;
use super::positions::{is_compact, within};
use super::product::BLOCK;
use super::tiles::{configured, Tiles};
use super::weights::{Panel, Weights};
use crate::conv_shape::Shape;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// A convolution of one group. Its weights have a whole number of quads per row of the window.
pub(super) struct Direct<'a> {
    shape: &'a Shape,
    x: &'a Codes<'a>,
    weights: &'a Weights,
    /// The columns of a band, and the bytes per row.
    columns: usize,
    pitch: usize,
    /// The bytes of the weights per row of the window.
    row: usize,
}

/// The minimum number of output columns for which tiles along rows are full enough.
const WORTHWHILE: usize = 24;

impl<'a> Direct<'a> {
    /// Returns `None` if gathering the windows is faster, or the only possibility. The weights have `row` bytes per row
    /// of the window.
    pub fn new(shape: &'a Shape, x: &'a Codes<'a>, weights: &'a Weights, row: usize) -> Option<Direct<'a>> {
        let is_fit = is_compact(shape)
            && shape.groups == 1
            && shape.kernel != [1; 2]
            && shape.dilations[1] == 1
            && shape.output[1] >= WORTHWHILE
            && row == weights.dots.padded(row)
            && weights.zeros.is_empty();
        let columns = (shape.output[1].max(1) - 1) * shape.strides[1] + shape.kernel[1];
        let pitch = columns * shape.channels;
        is_fit.then_some(Direct { shape, x, weights, columns, pitch, row })
    }

    /// Writes all outputs.
    ///
    /// # Panics
    /// The weights do not fit the shape.
    pub fn run(&self, threads: &Threads, finish: &Finish) {
        let (shape, weights) = (self.shape, self.weights);
        assert!(weights.k == shape.kernel[0] * self.row && self.row >= shape.kernel[1] * shape.channels, "{shape:?}");
        assert_eq!(weights.n, shape.outputs, "{shape:?}");
        let work = shape.batch * shape.pixels() * weights.n * weights.k;
        let parts = if work > SPLIT { threads.count() * 2 } else { 1 };
        let band = self.fitting().min(shape.output[0].div_ceil(parts.div_ceil(shape.batch.max(1))));
        let bands = shape.output[0].div_ceil(band);
        let panels = weights.panels();
        let shares = parts.div_ceil(shape.batch * bands).min(panels);
        threads.for_each(shape.batch * bands * shares, |task| {
            let (image, place, share) = (task / shares / bands, task / shares % bands, task % shares);
            let lines = place * band..shape.output[0].min((place + 1) * band);
            self.band(image, lines, panels * share / shares..panels * (share + 1) / shares, finish);
        });
    }

    /// The rows of the output whose image fits the cache, and at least one.
    fn fitting(&self) -> usize {
        (BLOCK / self.pitch.max(1)).saturating_sub(self.rows(1)) / self.shape.strides[0] + 1
    }

    /// The bytes of the largest band.
    pub fn band_len(&self) -> usize {
        self.rows(self.fitting().min(self.shape.output[0])) * self.pitch + self.row
    }

    /// The number of image rows that `lines` rows of the output read.
    fn rows(&self, lines: usize) -> usize {
        (lines - 1) * self.shape.strides[0] + (self.shape.kernel[0] - 1) * self.shape.dilations[0] + 1
    }

    /// Computes some rows of an image's output, in some panels.
    fn band(&self, image: usize, lines: Range<usize>, panels: Range<usize>, finish: &Finish) {
        let (shape, weights, width) = (self.shape, self.weights, self.weights.width());
        // The padding of a window's row may be read beyond the last row.
        let beyond = self.row - shape.kernel[1] * shape.channels;
        let band = Scratch::overwritten(self.rows(lines.len()) * self.pitch + beyond, |band| {
            self.fill(image, lines.start, band);
        });
        let pieces = Scratch::of((0..shape.kernel[0]).map(|i| i * shape.dilations[0] * self.pitch));
        let dots = weights.dots.for_rows(shape.output[1]);
        let (pieces, quads) = dots.cut(&pieces, self.row / 4);
        let _configured = configured(dots, quads);
        for panel in panels {
            let Panel { data, again } = weights.panel(panel, &pieces, quads);
            for line in lines.clone() {
                let tile = Tile {
                    a: band[(line - lines.start) * shape.strides[0] * self.pitch..].as_ptr(),
                    a_row: shape.strides[1] * shape.channels,
                    pieces: &pieces,
                    quads,
                    again: &again,
                    panel: data.as_ptr(),
                    finish,
                    row_sums: std::ptr::null(),
                    column: panel * width,
                    columns: (weights.n - panel * width).min(width),
                    out: (image * shape.output[0] + line) * shape.output[1] * weights.n + panel * width,
                    out_row: weights.n,
                };
                // SAFETY: the band has every row and column that the windows read, including the padding. Panels are
                // whole. The tasks' outputs are disjoint. `dots` proves that the processor has the instructions of the
                // tiles.
                unsafe { Tiles::of(dots).run(shape.output[1], weights.vectors, &tile) };
            }
        }
    }

    /// Copies the input of the output's rows from `first` on, as unsigned bytes.
    fn fill(&self, image: usize, first: usize, band: &mut [u8]) {
        let (shape, channels, zero) = (self.shape, self.shape.channels, self.x.zero as u8);
        let (columns, before) = within(-shape.before[1], self.columns, shape.input[1]);
        let (start, end) = (before * channels, (before + columns.len()) * channels);
        let top = (first * shape.strides[0]) as isize - shape.before[0];
        for (y, to) in (top..).zip(band.chunks_exact_mut(self.pitch.max(1))) {
            let Some(y) = usize::try_from(y).ok().filter(|&y| y < shape.input[0]) else {
                to.fill(zero);
                continue;
            };
            let row = (image * shape.input[0] + y) * shape.input[1];
            to[..start].fill(zero);
            to[start..end]
                .copy_from_slice(&self.x.bits[(row + columns.start) * channels..(row + columns.end) * channels]);
            to[end..].fill(zero);
        }
        if self.x.signed {
            band.iter_mut().for_each(|bits| *bits ^= SIGN);
        }
    }
}
