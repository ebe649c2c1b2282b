//! Convolutions of 3 × 3 with fewer products, after Winograd: `F(m, 3)` makes `m × m` outputs of `(m + 2)²` products, where the
//! definition takes `9 m²`.
//!
//! Tiles of the input and the weights are transformed, multiplied position by position (matrix products over the channels),
//! and the products transformed back.
//!
//! Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks; for the points, Barabasz et al., Error Analysis
//! and Improving the Accuracy of Winograd Convolution for Deep Neural Networks.

mod patches;
mod transform;

use std::ops::Range;

pub(super) use transform::Tile as Form;

use super::conv::{split, Convolution};
use super::tile::{Tile, Tiles};
use super::{Epilogue, BLOCK};
use crate::buffer;
use crate::threads::Threads;
use crate::vector::dispatch_isa;
use patches::Patches;

/// The weights of one group's outputs, `[span of outputs][position][channel][outputs of the span]`.
pub(super) fn pack(form: Form, outputs: usize, channels: usize, spans: &[[usize; 2]], w: &[f32]) -> Vec<f32> {
    let transformed: Vec<f32> = w.chunks_exact(9).flat_map(|w| transform::weights(form, w)).collect();
    let weight = |o: usize, c: usize, position: usize| match o < outputs {
        true => transformed[(o * channels + c) * positions(form) + position],
        false => 0.0,
    };
    let mut data = Vec::new();
    for &[first, end] in spans {
        for position in 0..positions(form) {
            for c in 0..channels {
                data.extend((first..end).map(|o| weight(o, c, position)));
            }
        }
    }
    data
}

/// The products of a tile.
pub(super) fn positions(form: Form) -> usize {
    (form as usize + 2).pow(2)
}

/// Bytes of transformed input that stay in the second-level cache, beside weights that do and beside weights that do not.
const BESIDE_FEW_WEIGHTS: usize = 128 << 10;
const BESIDE_MANY_WEIGHTS: usize = 1 << 20;
/// Bytes of weights that stay in the second-level cache.
const FEW_WEIGHTS: usize = 768 << 10;

pub(super) struct Winograd<'a> {
    pub convolution: &'a Convolution<'a>,
    pub form: Form,
}

/// Some tiles of one image.
#[derive(Default)]
struct Scratch {
    /// `[position][C / 16][tile][16]`
    input: Vec<f32>,
    /// `[position][outputs of a span / 16][tile][16]`
    products: Vec<f32>,
}

impl Winograd<'_> {
    pub fn run(&self, threads: &Threads) {
        let Convolution { filter, .. } = self.convolution;
        let (images, tiles) = (self.convolution.images(), self.rows() * self.columns());
        let products = images * tiles * positions(self.form) * filter.channels * filter.outputs;
        let wanted = self.convolution.wanted(threads, products);
        let parts = tiles.div_ceil(self.tiles_of_a_part(wanted.div_ceil(images)));
        split(threads, wanted, images * parts, &filter.spans(), |unit, spans, scratch| {
            let [first, end] = [unit % parts, unit % parts + 1].map(|i| tiles * i / parts);
            self.part(unit / parts, first..end, spans, scratch);
        });
    }

    fn rows(&self) -> usize {
        self.convolution.shape.output[0].div_ceil(self.form as usize)
    }

    fn columns(&self) -> usize {
        self.convolution.shape.output[1].div_ceil(self.form as usize)
    }

    /// As many tiles as the cache holds, a multiple of what the products' widest tile takes.
    fn tiles_of_a_part(&self, parts: usize) -> usize {
        let Convolution { filter, .. } = self.convolution;
        let (tiles, depth) = (self.rows() * self.columns(), positions(self.form) * filter.channels * size_of::<f32>());
        let room = if depth * filter.outputs <= FEW_WEIGHTS { BESIDE_FEW_WEIGHTS } else { BESIDE_MANY_WEIGHTS };
        let at_once = Tiles::of(filter.isa).pixels(1, Tiles::of(filter.isa).outputs);
        let fitting = (room / depth.max(1) / at_once).max(1) * at_once;
        if tiles <= at_once {
            tiles
        } else {
            fitting.min(tiles.div_ceil(parts))
        }
    }

    fn part(&self, image: usize, tiles: Range<usize>, spans: &[[usize; 2]], scratch: &mut Scratch) {
        let Convolution { shape, filter, .. } = self.convolution;
        let (blocks, count, isa) = (filter.channels.div_ceil(BLOCK), tiles.len(), filter.isa);
        // A line of the cache between positions, which would otherwise fall onto one another in it.
        let step = (blocks * count + 1) * BLOCK;
        grow(&mut scratch.input, positions(self.form) * step);
        grow(&mut scratch.products, positions(self.form) * (2 * count + 1) * BLOCK);
        let patches = Patches { work: self, image, tiles, step };
        let size = shape.input[0] * shape.input[1] * BLOCK;
        for b in 0..blocks {
            let x = &self.convolution.input(image)[b * size..(b + 1) * size];
            let (patches, out) = (&patches, &mut scratch.input[b * count * BLOCK..]);
            dispatch_isa!(isa, (patches: &Patches = patches, x: &[f32] = x, out: &mut [f32] = out), V => patches.input::<V>(x, out));
        }
        for &span in spans {
            let step = self.multiply(image, span, count, step, scratch);
            let patches = Patches { step, tiles: patches.tiles.clone(), ..patches };
            for block in (span[0]..span[1]).step_by(BLOCK) {
                let (patches, products) = (&patches, &scratch.products[(block - span[0]) * count..]);
                dispatch_isa!(isa, (patches: &Patches = patches, block: usize = block, products: &[f32] = products), V => patches.output::<V>(block, products));
                self.finish(image, block, &patches.tiles);
            }
        }
    }

    /// The products of one span at every position, the distance of which it gives.
    fn multiply(
        &self,
        image: usize,
        [first, end]: [usize; 2],
        count: usize,
        step: usize,
        scratch: &mut Scratch,
    ) -> usize {
        let Convolution { filter, .. } = self.convolution;
        let (outputs, partial) = (end - first, filter.channels % BLOCK);
        let taps: Vec<u32> = (0..filter.channels.div_ceil(BLOCK)).map(|b| (b * count * BLOCK) as u32).collect();
        let w = filter.span(image % filter.groups, first);
        let out_step = (outputs / BLOCK * count + 1) * BLOCK;
        for position in 0..positions(self.form) {
            let tile = Tile {
                x: scratch.input[position * step..].as_ptr(),
                pixel: BLOCK,
                row: 0,
                taps: &taps,
                last: usize::from(partial > 0),
                last_channels: partial,
                w: w[position * filter.channels * outputs..].as_ptr(),
                start: std::ptr::null(),
                out: scratch.products[position * out_step..].as_mut_ptr(),
                out_block: count * BLOCK,
                out_row: 0,
                limits: Epilogue::NO_LIMITS,
            };
            // SAFETY: the scratch buffers and the weights hold every position's blocks of `count` tiles.
            unsafe { Tiles::of(filter.isa).run(1, count, outputs, tile) };
        }
        out_step
    }

    /// Finishes the rows, or parts of rows, that the tiles wrote of one block.
    fn finish(&self, image: usize, block: usize, tiles: &Range<usize>) {
        let ([height, width], m, columns) = (self.convolution.shape.output, self.form as usize, self.columns());
        for row in tiles.start / columns..tiles.end.div_ceil(columns) {
            let first = tiles.start.saturating_sub(row * columns) * m;
            let end = ((tiles.end - row * columns).min(columns) * m).min(width);
            let (y, last) = (row * m, height.min((row + 1) * m));
            let runs = if end - first == width { y..y + 1 } else { y..last };
            let pixels = if end - first == width { (last - y) * width } else { end - first };
            for y in runs {
                // SAFETY: these pixels belong to this part's tiles.
                unsafe { self.convolution.finish(image, block, y * width + first, pixels) };
            }
        }
    }
}

fn grow(scratch: &mut Vec<f32>, len: usize) {
    if scratch.len() < len {
        *scratch = buffer::for_overwrite(len);
    }
}
