//! 3 × 3 convolutions with fewer products, by Winograd's algorithm. `F(m, 3)` computes `m × m` outputs from `(m + 2)²`
//! products, instead of `9 m²`. If the window is dilated, the pixels of a tile have the same distance.
//!
//! The algorithm transforms tiles of the input and the weights, multiplies them position by position (matrix products
//! over the channels), and transforms the products back.
//!
//! The transform back takes differences of large sums, and so enlarges their rounding errors. For random images and
//! weights, the root mean square of an output's error is 4.8 times that of a direct sum for `F(4, 3)`, 2.2 times along
//! one axis, and 1.7 times for `F(2, 3)` (a test in `transforms/matrices.rs` computes these factors). The error of a sum
//! grows with the number of terms that are added in a row. `F(4, 3)` along both axes therefore adds shorter pieces than
//! direct sums do.
//!
//! Sources: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks; for the points, Barabasz et al., Error
//! Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks.

mod form;
mod line;
mod patches;
mod products;

use std::ops::Range;

use super::conv::{split, Convolution};
use super::filter::Filter;
use super::terms::Tap;
use super::transforms::{Products, Transform};
use crate::blocking::dispatch_blocking;
use crate::conv_shape::Shape;
use crate::threads::Threads;
pub(crate) use form::WinogradForm;
use line::Line;
use patches::{Patches, Squares};
use products::Buffers;

/// Computes a convolution whose filter is packed for `form`.
pub(super) fn run(form: Transform, convolution: &Convolution, threads: &Threads) {
    match form {
        Transform::Square(tile) => Squares { convolution, tile, axes: tile.tilings(convolution.shape) }.run(threads),
        Transform::Line => Line::new(convolution).run(threads),
    }
}

/// The most elements of the buffers of such a convolution: a part's transformed input, its products, and the list of
/// taps.
pub(super) fn lengths(form: Transform, filter: &Filter, shape: &Shape) -> [usize; 3] {
    let together = if form == Transform::Line { Line::tiles_together(shape) } else { 1 };
    let products = form.products(shape.kernel);
    let tiles = products.tiles_of_a_part(filter, form.tiles(shape), 1).max(together);
    let [input, result] = Buffers::lengths(products, filter, tiles);
    [input, result, products.taps(filter, 0).len() * size_of::<Tap>() / size_of::<f32>()]
}

impl Squares<'_> {
    pub fn run(&self, threads: &Threads) {
        let Convolution { filter, .. } = self.convolution;
        let (images, tiles) = (self.convolution.images(), self.axes[0].tiles() * self.axes[1].tiles());
        let products = images * tiles * self.products().positions * filter.channels * filter.outputs;
        let wanted = self.convolution.wanted(threads, products);
        let parts = tiles.div_ceil(self.products().tiles_of_a_part(filter, tiles, wanted.div_ceil(images)));
        split(threads, wanted, images * parts, &filter.spans(), |unit, spans, scratch| {
            let [first, end] = [unit % parts, unit % parts + 1].map(|i| tiles * i / parts);
            self.part(unit / parts, first..end, spans, scratch);
        });
    }

    fn products(&self) -> Products {
        Transform::Square(self.tile).products(self.convolution.shape.kernel)
    }

    fn part(&self, image: usize, tiles: Range<usize>, spans: &[[usize; 2]], scratch: &mut Buffers) {
        let Convolution { shape, filter, .. } = self.convolution;
        let (blocks, count, blocking) = (filter.channels.div_ceil(filter.block()), tiles.len(), filter.blocking);
        let [length, step] = Buffers::input(self.products(), filter, count);
        let patches = Patches { work: self, columns: self.axes[1].tiles(), image, tiles, step };
        let size = shape.input[0] * shape.input[1] * filter.block();
        scratch.input.overwrite(length, |input| {
            for b in 0..blocks {
                let x = &self.convolution.input(image)[b * size..(b + 1) * size];
                let (patches, out) = (&patches, &mut input[b * count * filter.block()..]);
                dispatch_blocking!(blocking, (patches: &Patches = patches, x: &[f32] = x, out: &mut [f32] = out), V, BLOCK => patches.input::<V, BLOCK>(x, out));
            }
        });
        for &span in spans {
            let step = self.products().multiply(self.convolution, image, span, [count, step], scratch);
            let patches = Patches { step, tiles: patches.tiles.clone(), ..patches };
            for block in (span[0]..span[1]).step_by(filter.block()) {
                let (patches, products) = (&patches, &scratch.products[(block - span[0]) * count..]);
                dispatch_blocking!(blocking, (patches: &Patches = patches, block: usize = block, products: &[f32] = products), V, BLOCK => patches.output::<V, BLOCK>(block, products));
                self.finish(image, block, &patches.tiles);
            }
        }
    }

    /// Runs the epilogue on the outputs that the tiles wrote in one block: on runs that are as long as possible.
    fn finish(&self, image: usize, block: usize, tiles: &Range<usize>) {
        if self.convolution.epilogue.finish.is_none() {
            return;
        }
        let ([down, across], width) = (&self.axes, self.convolution.shape.output[1]);
        let columns = across.tiles();
        let mut run = 0..0;
        // SAFETY: these pixels belong to this part's tiles.
        let finish = |run: &Range<usize>| unsafe { self.convolution.finish(image, block, run.start, run.len()) };
        for row in tiles.start / columns..tiles.end.div_ceil(columns) {
            let first = down.by_residue(row);
            let some = tiles.start.saturating_sub(row * columns)..(tiles.end - row * columns).min(columns);
            for y in (0..down.outputs(first)).map(|i| first + i * down.dilation) {
                across.runs(some.clone(), |next| {
                    let next = y * width + next.start..y * width + next.end;
                    if next.start == run.end {
                        run.end = next.end;
                    } else {
                        if !run.is_empty() {
                            finish(&run);
                        }
                        run = next;
                    }
                });
            }
        }
        finish(&run);
    }
}
