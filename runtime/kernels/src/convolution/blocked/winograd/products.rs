//! The products of transformed weights and transformed tiles, position by position, which all forms share.

use std::ops::Range;

use super::super::addend::Addend;
use super::super::conv::Convolution;
use super::super::filter::Filter;
use super::super::terms::{Tap, SUMMED};
use super::super::tile::{Tile, Tiles};
use super::super::transforms::Products;
use crate::buffer::collected_up_to;
use crate::convolution::form::Epilogue;
use crate::scratch::Scratch;

/// Bytes of transformed input that fit in the L2 cache, with weights that fit there too and with weights that do not.
const BESIDE_FEW_WEIGHTS: usize = 128 << 10;
const BESIDE_MANY_WEIGHTS: usize = 1 << 20;
/// Additional elements between positions: a cache line. Otherwise, positions would map to the same cache sets.
const LINE: usize = 16;
/// Bytes of weights that fit in the L2 cache.
const FEW_WEIGHTS: usize = 768 << 10;

/// The buffers for some tiles of one image.
#[derive(Default)]
pub(super) struct Buffers {
    /// `[position][piece][C / B][tile][B]`
    pub input: Scratch<f32>,
    /// `[position][outputs of a span / B][tile][B]`
    pub products: Scratch<f32>,
}

impl Buffers {
    /// The length of the input of some tiles, and the stride of positions in it.
    pub fn input(products: Products, filter: &Filter, tiles: usize) -> [usize; 2] {
        let [length, _] = Buffers::lengths(products, filter, tiles);
        [length, length / products.positions]
    }

    /// The lengths of both buffers for some tiles.
    pub fn lengths(products: Products, filter: &Filter, tiles: usize) -> [usize; 2] {
        let terms = products.pieces * filter.channels.next_multiple_of(filter.block());
        let outputs = Tiles::of(filter.blocking).outputs();
        [terms, outputs].map(|each| products.positions * (each * tiles + LINE))
    }
}

/// The least common multiple of two numbers that are not 0.
fn lcm(a: usize, b: usize) -> usize {
    (1..=b).map(|i| i * a).find(|multiple| multiple.is_multiple_of(b)).unwrap_or(a)
}

impl Products {
    /// Returns the number of an image's tiles that fit in the cache, as a multiple of the pixels of all register tiles.
    pub fn tiles_of_a_part(self, filter: &Filter, tiles: usize, parts: usize) -> usize {
        let depth = self.positions * self.pieces * filter.channels * size_of::<f32>();
        let budget = if depth * filter.outputs <= FEW_WEIGHTS { BESIDE_FEW_WEIGHTS } else { BESIDE_MANY_WEIGHTS };
        let at_once = filter.spans().into_iter().map(|[first, end]| Tiles::of(filter.blocking).pixels(1, end - first));
        let at_once = at_once.fold(1, lcm);
        let fitting = (budget / depth.max(1) / at_once).max(1) * at_once;
        if tiles <= at_once {
            tiles
        } else {
            fitting.min(tiles.div_ceil(parts))
        }
    }

    /// Returns the blocks of channels of `count` tiles in the order of a sum's [terms](Products::pack).
    pub fn taps(self, filter: &Filter, count: usize) -> Vec<Tap> {
        let (channels, block) = (filter.channels, filter.block());
        let (whole, blocks) = (channels - channels % SUMMED, channels.div_ceil(block));
        let of = |part: Range<usize>| {
            let tap = move |piece: usize, first: usize, part: &Range<usize>| Tap {
                x: ((piece * blocks + first / block) * count * block) as u32,
                w: (self.pieces * part.start + piece * part.len() + first - part.start) as u32,
            };
            let firsts = part.clone().step_by(block);
            (0..self.pieces).flat_map(move |piece| {
                let part = part.clone();
                firsts.clone().map(move |first| tap(piece, first, &part))
            })
        };
        collected_up_to(self.pieces * blocks, of(0..whole).chain(of(whole..channels)))
    }

    /// Computes the products of `count` tiles of one span at every position, where `step` is the input's stride of
    /// positions. Returns the stride of positions in the products.
    pub(super) fn multiply(
        self,
        convolution: &Convolution,
        image: usize,
        [first, end]: [usize; 2],
        [count, step]: [usize; 2],
        Buffers { input, products }: &mut Buffers,
    ) -> usize {
        let filter = convolution.filter;
        let (outputs, block) = (end - first, filter.block());
        let [last_channels, last_blocks] = filter.partial();
        let taps = self.taps(filter, count);
        let w = filter.span(image % filter.groups, first);
        let out_step = outputs * count + LINE;
        let [_, length] = Buffers::lengths(self, filter, count);
        products.overwrite(length, |products| {
            for position in 0..self.positions {
                let tile = Tile {
                    x: input[position * step..].as_ptr(),
                    pixel: block,
                    row: 0,
                    taps: &taps,
                    piece: self.summed,
                    last: last_blocks * self.pieces,
                    last_channels,
                    w: w[position * self.pieces * filter.channels * outputs..].as_ptr(),
                    start: std::ptr::null(),
                    out: products[position * out_step..].as_mut_ptr(),
                    out_block: count * block,
                    out_row: 0,
                    residual: Addend::NONE,
                    limits: Epilogue::NO_LIMITS,
                };
                // SAFETY: the scratch buffers and the weights hold every position's blocks of `count` tiles. The
                // `Isa` of the filter proves that the processor has the instructions of the tiles.
                unsafe { Tiles::of(filter.blocking).run(1, count, outputs, tile) };
            }
        });
        out_step
    }
}
