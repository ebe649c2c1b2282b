//! The products of transformed weights and transformed tiles, position by position, which all forms share.

use super::super::addend::Addend;
use super::super::conv::Convolution;
use super::super::form::Products;
use super::super::tile::{Tap, Tile, Tiles};
use super::super::BLOCK;
use crate::buffer::collected_up_to;
use crate::conv_form::Epilogue;
use crate::scratch::Scratch;

/// Bytes of transformed input that fit in the L2 cache, with weights that fit there too and with weights that do not.
const BESIDE_FEW_WEIGHTS: usize = 128 << 10;
const BESIDE_MANY_WEIGHTS: usize = 1 << 20;
/// Bytes of weights that fit in the L2 cache.
const FEW_WEIGHTS: usize = 768 << 10;

/// The buffers for some tiles of one image.
#[derive(Default)]
pub(super) struct Buffers {
    /// `[position][piece][C / 16][tile][16]`
    pub input: Scratch<f32>,
    /// `[position][outputs of a span / 16][tile][16]`
    pub products: Scratch<f32>,
}

impl Buffers {
    /// Allocates the buffers for some tiles. Returns the stride of positions in the input.
    pub fn grow(&mut self, products: Products, channels: usize, tiles: usize) -> usize {
        // An additional cache line between positions, which would otherwise map to the same cache sets.
        let step = (products.pieces * channels.div_ceil(BLOCK) * tiles + 1) * BLOCK;
        self.input.alloc_uninit(products.positions * step);
        self.products.alloc_uninit(products.positions * (2 * tiles + 1) * BLOCK);
        step
    }
}

impl Products {
    /// Returns the number of an image's tiles that fit in the cache, as a multiple of the widest register tile.
    pub fn tiles_of_a_part(self, convolution: &Convolution, tiles: usize, parts: usize) -> usize {
        let filter = convolution.filter;
        let depth = self.positions * self.pieces * filter.channels * size_of::<f32>();
        let budget = if depth * filter.outputs <= FEW_WEIGHTS { BESIDE_FEW_WEIGHTS } else { BESIDE_MANY_WEIGHTS };
        let at_once = Tiles::of(filter.isa).pixels(1, Tiles::of(filter.isa).outputs);
        let fitting = (budget / depth.max(1) / at_once).max(1) * at_once;
        if tiles <= at_once {
            tiles
        } else {
            fitting.min(tiles.div_ceil(parts))
        }
    }

    /// The blocks of channels of `count` tiles, first those of 16 channels, and how many have fewer.
    fn taps(self, channels: usize, count: usize) -> (Vec<Tap>, usize) {
        let (whole, partial, blocks) = (channels / BLOCK, channels % BLOCK, channels.div_ceil(BLOCK));
        let place = |piece: usize, b: usize| ((piece * blocks + b) * count * BLOCK) as u32;
        let tap = |piece: usize, b: usize| Tap { x: place(piece, b), w: ((piece * whole + b) * BLOCK) as u32 };
        let full = (0..self.pieces).flat_map(|piece| (0..whole).map(move |b| tap(piece, b)));
        let last = if partial > 0 { self.pieces } else { 0 };
        let partly =
            |piece: usize| Tap { x: place(piece, whole), w: (self.pieces * whole * BLOCK + piece * partial) as u32 };
        (collected_up_to(self.pieces * blocks, full.chain((0..last).map(partly))), last)
    }

    /// Computes the products of `count` tiles of one span at every position, where `step` is the input's stride of
    /// positions. Returns the stride of positions in the products.
    pub(super) fn multiply(
        self,
        convolution: &Convolution,
        image: usize,
        [first, end]: [usize; 2],
        [count, step]: [usize; 2],
        scratch: &mut Buffers,
    ) -> usize {
        let filter = convolution.filter;
        let (outputs, partial) = (end - first, filter.channels % BLOCK);
        let (taps, last) = self.taps(filter.channels, count);
        let w = filter.span(image % filter.groups, first);
        let out_step = (outputs / BLOCK * count + 1) * BLOCK;
        for position in 0..self.positions {
            let tile = Tile {
                x: scratch.input[position * step..].as_ptr(),
                pixel: BLOCK,
                row: 0,
                taps: &taps,
                last,
                last_channels: partial,
                w: w[position * self.pieces * filter.channels * outputs..].as_ptr(),
                start: std::ptr::null(),
                out: scratch.products[position * out_step..].as_mut_ptr(),
                out_block: count * BLOCK,
                out_row: 0,
                residual: Addend::NONE,
                limits: Epilogue::NO_LIMITS,
            };
            // SAFETY: the scratch buffers and the weights hold every position's blocks of `count` tiles. The filter's
            // `isa` proves that the processor has the instructions of the tiles.
            unsafe { Tiles::of(filter.isa).run(1, count, outputs, tile) };
        }
        out_step
    }
}
