//! Convolutions with dilated windows, tap by tap, that read the image in place, region by region.

use std::ops::Range;
use std::sync::Arc;

use super::conv::{split, Convolution};
use super::regions::Regions;
use super::tile::{Tile, Tiles};
use crate::threads::Threads;

/// The part of a range inside another one.
fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// A convolution in regions.
pub(super) struct InPlace<'a> {
    convolution: &'a Convolution<'a>,
    regions: Arc<Option<Regions>>,
    wanted: usize,
}

impl<'a> InPlace<'a> {
    /// Returns `None` if the image is copied.
    pub fn new(convolution: &'a Convolution, threads: &Threads) -> Option<InPlace<'a>> {
        let Convolution { shape, filter, .. } = convolution;
        let products = shape.taps() * shape.outputs * shape.pixels() * shape.batch;
        let wanted = convolution.wanted(threads, products);
        let regions =
            filter.regions.get(((*shape).clone(), wanted), |(shape, wanted)| Regions::new(shape, filter.unit, *wanted));
        regions.is_some().then_some(InPlace { convolution, regions, wanted })
    }

    pub fn run(&self, threads: &Threads) {
        let Some(regions) = &*self.regions else { return };
        let (parts, spans) = (&regions.parts, self.convolution.filter.spans());
        split(threads, self.wanted, self.convolution.images() * parts.len(), &spans, |unit, spans, _: &mut ()| {
            let (image, part) = (unit / parts.len(), &parts[unit % parts.len()]);
            for &[first, end] in spans {
                for (r, down) in regions.down.iter().enumerate() {
                    let rows = common(&down.outputs, &part[0]);
                    for y in rows.clone().step_by(2) {
                        let rows = y..rows.end.min(y + 2);
                        self.rows(regions, image, [first, end], r, rows.clone(), &part[1]);
                        self.finish(image, [first, end], rows, &part[1]);
                    }
                }
            }
        });
    }

    /// Computes some columns of one or two rows, which are in the same run.
    fn rows(
        &self,
        regions: &Regions,
        image: usize,
        [first, end]: [usize; 2],
        r: usize,
        rows: Range<usize>,
        columns: &Range<usize>,
    ) {
        let Convolution { shape, filter, .. } = self.convolution;
        let (tiles, outputs, down) = (Tiles::of(filter.blocking), end - first, &regions.down[r]);
        let (unit, width) = (filter.unit, shape.input[1]);
        for (c, across) in regions.across.iter().enumerate() {
            let run = common(&across.outputs, columns);
            let taps = &regions.taps[r * regions.across.len() + c];
            let together = if run.len() <= tiles.pixels(2, outputs) { rows.len() } else { 1 };
            for y in rows.clone().step_by(together) {
                if run.is_empty() {
                    continue;
                }
                let at = [(down, y, 0), (across, run.start, 1)];
                let [top, left] = at.map(|(run, at, a)| run.from + (at - run.outputs.start) * shape.strides[a]);
                let x = self.convolution.input(image).as_ptr();
                let tile = Tile {
                    x: if taps.is_empty() { x } else { x.wrapping_add((top * width + left) * unit) },
                    pixel: shape.strides[1] * unit,
                    row: shape.strides[0] * width * unit,
                    last: self.convolution.last(taps.len(), down.taps.len() * across.taps.len()),
                    ..self.convolution.tile(image, first, y * shape.output[1] + run.start, taps)
                };
                // SAFETY: the taps of the region are inside the image for all of its outputs, and `Filter` keeps the
                // weights inside its data. Only this task writes these outputs. `tiles` belong to an `Isa`, which
                // proves that the processor has their instructions.
                unsafe { tiles.run(together, run.len(), outputs, tile) };
            }
        }
    }

    /// Runs the epilogue on some columns of some rows.
    fn finish(&self, image: usize, [first, end]: [usize; 2], rows: Range<usize>, columns: &Range<usize>) {
        for block in (first..end).step_by(self.convolution.block()) {
            for y in rows.clone() {
                let pixel = y * self.convolution.shape.output[1] + columns.start;
                // SAFETY: these pixels belong to this task and have been written.
                unsafe { self.convolution.finish(image, block, pixel, columns.len()) };
            }
        }
    }
}
