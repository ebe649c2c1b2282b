//! 3 × 3 convolutions with fewer products, by Winograd's algorithm. `F(m, 3)` computes `m × m` outputs from `(m + 2)²`
//! products, instead of `9 m²`.
//!
//! The algorithm transforms tiles of the input and the weights, multiplies them position by position (matrix products
//! over the channels), and transforms the products back.
//!
//! Sources: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks; for the points, Barabasz et al., Error
//! Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks.

mod form;
mod line;
mod patches;
mod products;

use std::ops::Range;

use super::conv::{split, Convolution};
use super::form::{Form, Products, Tile};
use crate::threads::Threads;
use crate::vector::dispatch_isa;
pub(crate) use form::WinogradForm;
use line::Line;
use patches::Patches;
use products::Buffers;

/// Computes a convolution whose filter is packed for `form`.
pub(super) fn run(form: Form, convolution: &Convolution, threads: &Threads) {
    match form {
        Form::Square(tile) => Squares { convolution, tile }.run(threads),
        Form::Line => Line::new(convolution).run(threads),
    }
}

/// A convolution in square tiles of outputs.
struct Squares<'a> {
    convolution: &'a Convolution<'a>,
    tile: Tile,
}

impl Squares<'_> {
    pub fn run(&self, threads: &Threads) {
        let Convolution { filter, .. } = self.convolution;
        let (images, tiles) = (self.convolution.images(), self.rows() * self.columns());
        let products = images * tiles * self.products().positions * filter.channels * filter.outputs;
        let wanted = self.convolution.wanted(threads, products);
        let parts = tiles.div_ceil(self.products().tiles_of_a_part(self.convolution, tiles, wanted.div_ceil(images)));
        split(threads, wanted, images * parts, &filter.spans(), |unit, spans, scratch| {
            let [first, end] = [unit % parts, unit % parts + 1].map(|i| tiles * i / parts);
            self.part(unit / parts, first..end, spans, scratch);
        });
    }

    fn rows(&self) -> usize {
        self.convolution.shape.output[0].div_ceil(self.tile as usize)
    }

    fn columns(&self) -> usize {
        self.convolution.shape.output[1].div_ceil(self.tile as usize)
    }

    fn products(&self) -> Products {
        Form::Square(self.tile).products(self.convolution.shape.kernel)
    }

    fn part(&self, image: usize, tiles: Range<usize>, spans: &[[usize; 2]], scratch: &mut Buffers) {
        let Convolution { shape, filter, .. } = self.convolution;
        let (blocks, count, isa) = (filter.channels.div_ceil(filter.block()), tiles.len(), filter.isa);
        let step = scratch.grow(self.products(), filter, count);
        let patches = Patches { work: self, image, tiles, step };
        let size = shape.input[0] * shape.input[1] * filter.block();
        for b in 0..blocks {
            let x = &self.convolution.input(image)[b * size..(b + 1) * size];
            let (patches, out) = (&patches, &mut scratch.input[b * count * filter.block()..]);
            dispatch_isa!(isa, (patches: &Patches = patches, x: &[f32] = x, out: &mut [f32] = out), V => patches.input::<V>(x, out));
        }
        for &span in spans {
            let step = self.products().multiply(self.convolution, image, span, [count, step], scratch);
            let patches = Patches { step, tiles: patches.tiles.clone(), ..patches };
            for block in (span[0]..span[1]).step_by(filter.block()) {
                let (patches, products) = (&patches, &scratch.products[(block - span[0]) * count..]);
                dispatch_isa!(isa, (patches: &Patches = patches, block: usize = block, products: &[f32] = products), V => patches.output::<V>(block, products));
                self.finish(image, block, &patches.tiles);
            }
        }
    }

    /// Runs the epilogue on the rows, or parts of rows, that the tiles wrote in one block.
    fn finish(&self, image: usize, block: usize, tiles: &Range<usize>) {
        let ([height, width], m, columns) = (self.convolution.shape.output, self.tile as usize, self.columns());
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
