//! `F(4, 3)` along one axis, for windows of one row or column. It processes three taps at a time, and adds their
//! products before the transform back. If the window is dilated, the outputs of a tile have the same distance.

use std::ops::Range;

use super::super::conv::{split, Convolution};
use super::super::transforms::{self, axis, products, Products, INPUTS, OUTPUTS, TAPS};
use super::products::Buffers;
use crate::blocking::dispatch_blocking;
use crate::conv_shape::Shape;
use crate::threads::Threads;
use crate::vector::Vector;

/// An image as lines along the axis of the window: `[outer, length, inner]`, where the `inner` positions have separate
/// windows.
pub(in crate::convolution::blocked) struct Line<'a> {
    convolution: &'a Convolution<'a>,
    /// The length of the input and of the output.
    length: [usize; 2],
    inner: usize,
    before: isize,
    dilation: usize,
    products: Products,
    /// The number of groups per line. A group consists of interleaved tiles, which together cover a contiguous run of
    /// outputs.
    groups: usize,
}

impl<'a> Line<'a> {
    /// # Panics
    /// No [axis] is supported.
    pub fn new(convolution: &'a Convolution<'a>) -> Line<'a> {
        let shape = convolution.shape;
        let Some(axis) = axis(shape) else { panic!("{shape:?}") };
        let dilation = shape.dilations[axis];
        Line {
            convolution,
            length: [shape.input[axis], shape.output[axis]],
            inner: if axis == 0 { shape.output[1] } else { 1 },
            before: shape.before[axis],
            dilation,
            products: products(shape.kernel[axis]),
            groups: shape.output[axis].div_ceil(OUTPUTS * dilation),
        }
    }

    pub fn run(&self, threads: &Threads) {
        let Convolution { shape, filter, .. } = self.convolution;
        let (images, tiles) = (self.convolution.images(), self.tiles_of_a_group());
        let groups = shape.pixels() / (self.length[1] * self.inner).max(1) * self.groups;
        let terms = self.products.positions * self.products.pieces * filter.channels;
        let wanted = self.convolution.wanted(threads, images * groups * tiles * terms * filter.outputs);
        let at_once = self.products.tiles_of_a_part(filter, groups * tiles, wanted.div_ceil(images));
        let parts = groups.div_ceil((at_once / tiles).max(1));
        split(threads, wanted, images * parts, &filter.spans(), |unit, spans, scratch| {
            let [first, end] = [unit % parts, unit % parts + 1].map(|i| groups * i / parts);
            self.part(unit / parts, first..end, spans, scratch);
        });
    }

    fn tiles_of_a_group(&self) -> usize {
        self.dilation * self.inner
    }

    /// The tiles of a group, which are in the same part.
    ///
    /// # Panics
    /// No [axis] is supported.
    pub fn tiles_together(shape: &Shape) -> usize {
        let Some(axis) = axis(shape) else { panic!("{shape:?}") };
        shape.dilations[axis] * if axis == 0 { shape.output[1] } else { 1 }
    }

    fn part(&self, image: usize, groups: Range<usize>, spans: &[[usize; 2]], scratch: &mut Buffers) {
        let Convolution { shape, filter, .. } = self.convolution;
        let (blocks, count) = (filter.channels.div_ceil(filter.block()), groups.len() * self.tiles_of_a_group());
        let size = shape.input[0] * shape.input[1] * filter.block();
        let [length, step] = Buffers::input(self.products, filter, count);
        scratch.input.overwrite(length, |input| {
            let pieces = (0..self.products.pieces).flat_map(|p| (0..blocks).map(move |b| (p, b)));
            for (i, (piece, b)) in pieces.enumerate() {
                let x = &self.convolution.input(image)[b * size..(b + 1) * size];
                let out = &mut input[i * count * filter.block()..];
                dispatch_blocking!(filter.blocking, (this: &Line = self, x: &[f32] = x, groups: Range<usize> = groups.clone(), piece: usize = piece,
                    out: &mut [f32] = out, step: usize = step), V, BLOCK => this.input::<V, BLOCK>(x, groups, piece, out, step));
            }
        });
        for &span in spans {
            let step = self.products.multiply(self.convolution, image, span, [count, step], scratch);
            for block in (span[0]..span[1]).step_by(filter.block()) {
                let products = &scratch.products[(block - span[0]) * count..];
                dispatch_blocking!(filter.blocking, (this: &Line = self, image: usize = image, block: usize = block, groups: Range<usize> = groups.clone(),
                    products: &[f32] = products, step: usize = step), V, BLOCK => this.output::<V, BLOCK>(image, block, groups, products, step));
                self.finish(image, block, groups.clone());
            }
        }
    }

    /// The tiles of some groups.
    #[inline(always)]
    fn tiles(&self, groups: Range<usize>) -> LineTiles {
        let place = groups.start % self.groups * OUTPUTS * self.dilation;
        LineTiles {
            tile: LineTile { number: 0, outer: groups.start / self.groups, beside: 0, place },
            count: groups.len() * self.tiles_of_a_group(),
            inner: self.inner,
            group: self.dilation,
            line: self.groups * OUTPUTS * self.dilation,
        }
    }

    /// Transforms the inputs of one piece of the windows, for one block of channels `[H, W, B]`.
    #[inline(always)]
    fn input<V: Vector, const BLOCK: usize>(
        &self,
        x: &[f32],
        groups: Range<usize>,
        piece: usize,
        out: &mut [f32],
        step: usize,
    ) {
        let tiles = self.tiles(groups);
        assert!(out.len() >= (INPUTS - 1) * step + tiles.count * BLOCK);
        let shift = (piece * TAPS * self.dilation) as isize - self.before;
        let is_inside = |place: isize| (0..self.length[0] as isize).contains(&place);
        for LineTile { number, outer, beside, place } in tiles {
            let first = place as isize + shift;
            let places: [isize; INPUTS] = std::array::from_fn(|j| first + (j * self.dilation) as isize);
            let all = is_inside(places[0]) && is_inside(places[INPUTS - 1]);
            let line = (outer * self.length[0] * self.inner + beside) as isize;
            for lane in (0..BLOCK).step_by(V::LANES) {
                let mut pixels = [V::splat(0.0); INPUTS];
                for (pixel, &place) in pixels.iter_mut().zip(&places) {
                    if all || is_inside(place) {
                        let at = (line + place * self.inner as isize) as usize * BLOCK;
                        debug_assert!(at + BLOCK <= x.len());
                        // SAFETY: the position is inside the line, and the line is inside the image, which
                        // `Convolution` checked.
                        *pixel = unsafe { V::load(x.as_ptr().add(at + lane)) };
                    }
                }
                for (j, value) in transforms::input::<V, OUTPUTS>(pixels).iter().enumerate() {
                    // SAFETY: asserted above.
                    unsafe { value.store(out.as_mut_ptr().add(j * step + number * BLOCK + lane)) };
                }
            }
        }
    }

    /// Transforms the products of one block of outputs, adds the bias and the residual, and stores the part of each tile inside the
    /// output.
    #[inline(always)]
    fn output<V: Vector, const BLOCK: usize>(
        &self,
        image: usize,
        block: usize,
        groups: Range<usize>,
        products: &[f32],
        step: usize,
    ) {
        let tiles = self.tiles(groups);
        assert!(products.len() >= (INPUTS - 1) * step + tiles.count * BLOCK);
        let bias = self.convolution.bias(image, block).map(|bias| &bias[..BLOCK]);
        let limits = self.convolution.epilogue.limits;
        let (first, residual) = (self.convolution.at(image, block, 0), self.convolution.residual(image, block, 0));
        for LineTile { number, outer, beside, place } in tiles {
            for lane in (0..BLOCK).step_by(V::LANES) {
                // SAFETY: asserted above; the bias is a block.
                let (bias, values) = unsafe {
                    let value = |j: usize| V::load(products.as_ptr().add(j * step + number * BLOCK + lane));
                    (bias.map_or(V::splat(0.0), |bias| V::load(bias.as_ptr().add(lane))), std::array::from_fn(value))
                };
                for (i, value) in transforms::output::<V, OUTPUTS>(values).iter().enumerate() {
                    let place = place + i * self.dilation;
                    if place < self.length[1] {
                        let pixel = (outer * self.length[1] + place) * self.inner + beside;
                        let place = pixel * BLOCK + lane;
                        // SAFETY: the position is inside the line and belongs to this task.
                        unsafe { residual.add_to(bias + *value, place).within(limits).store(first.add(place)) };
                    }
                }
            }
        }
    }

    /// Runs the epilogue on the outputs that some groups cover in one block, which are contiguous.
    fn finish(&self, image: usize, block: usize, groups: Range<usize>) {
        let [first, end] = [groups.start, groups.end].map(|group| {
            let place = group % self.groups * OUTPUTS * self.dilation;
            (group / self.groups * self.length[1] + place) * self.inner
        });
        // SAFETY: these pixels belong to this part's tiles.
        unsafe { self.convolution.finish(image, block, first, end - first) };
    }
}

/// A tile of [`OUTPUTS`] outputs of a line.
#[derive(Clone, Copy)]
struct LineTile {
    number: usize,
    outer: usize,
    beside: usize,
    /// The first output in the line.
    place: usize,
}

/// The tiles of some groups. A loop over an iterator, unlike a closure for each tile, always becomes part of the function
/// with the vector instructions.
struct LineTiles {
    /// The next tile.
    tile: LineTile,
    count: usize,
    inner: usize,
    /// The places at which tiles of a group begin.
    group: usize,
    /// The outputs that the groups of a line cover.
    line: usize,
}

impl Iterator for LineTiles {
    type Item = LineTile;

    #[inline(always)]
    fn next(&mut self) -> Option<LineTile> {
        let tile = self.tile;
        if tile.number == self.count {
            return None;
        }
        self.tile.number += 1;
        self.tile.beside += 1;
        if self.tile.beside == self.inner {
            (self.tile.beside, self.tile.place) = (0, tile.place + 1);
            if self.tile.place.is_multiple_of(self.group) {
                self.tile.place += (OUTPUTS - 1) * self.group;
            }
            if self.tile.place == self.line {
                (self.tile.outer, self.tile.place) = (tile.outer + 1, 0);
            }
        }
        Some(tile)
    }
}
