//! Convolutions with dilated windows, tap by tap, that read the image in place. The output is divided into regions
//! whose windows have the same taps inside the image. Taps outside the image cost nothing, and nothing is copied.

use std::ops::Range;
use std::sync::Arc;

use super::axis::{Axis, Run};
use super::conv::{split, Convolution};
use super::tile::{Tap, Tile, Tiles};
use super::window::{term, Windows};
use super::BLOCK;
use crate::conv_shape::Shape;
use crate::threads::Threads;

/// Elements of a part's input that fit in the L2 cache together with weights and results. With many weights, a part is
/// larger, because it reads all of them.
const ROOM: [usize; 2] = [1 << 16, 1 << 18];
/// The weights, in elements, that fit in the L2 cache.
const FEW_WEIGHTS: usize = 192 << 10;
/// The minimum and the maximum of a part's columns, if it does not have all columns.
const COLUMNS: [usize; 2] = [64, 512];
/// The maximum number of taps in the lists of all regions. A window of more taps is copied.
const MOST_TAPS: usize = 1 << 17;
/// The maximum number of outputs along an axis.
const MOST_OUTPUTS: usize = 1 << 20;
/// The pixels that take as long as the start of a row of tiles.
const START: f64 = 1.0;

/// The time of a convolution that reads its image in place, in pixels with a whole window. `None` if its image can only
/// be copied.
pub(super) fn pixels(shape: &Shape, unit: usize) -> Option<f64> {
    let is_dilated = (0..2).any(|a| shape.kernel[a] > 1 && shape.dilations[a] > 1);
    let is_even = unit == BLOCK || shape.strides[1] == 1;
    let is_small = shape.output.iter().all(|&outputs| outputs <= MOST_OUTPUTS);
    if !is_dilated || !is_even || !is_small || shape.kernel.contains(&0) {
        return None;
    }
    let [down, across] = [0, 1].map(|a| Axis::new(shape, a).runs());
    let taps = |runs: &[Run]| runs.iter().map(|run| run.taps.len()).sum::<usize>();
    let blocks = (shape.channels / shape.groups).div_ceil(unit);
    let listed = taps(&down).checked_mul(taps(&across)).and_then(|taps| taps.checked_mul(blocks));
    let time = |runs: &[Run], start: f64, a: usize| {
        let each = runs.iter().map(|run| (run.outputs.len() as f64 + start) * run.taps.len() as f64);
        each.sum::<f64>() / shape.kernel[a] as f64
    };
    listed.filter(|&taps| taps <= MOST_TAPS).map(|_| time(&down, 0.0, 0) * time(&across, START, 1))
}

/// The regions of a convolution: each pair of runs.
pub(super) struct Regions {
    down: Vec<Run>,
    across: Vec<Run>,
    /// For each region, row by row.
    taps: Vec<Vec<Tap>>,
    /// The rows and columns of the parts of the output that tasks compute.
    parts: Vec<[Range<usize>; 2]>,
}

impl Regions {
    /// Returns the regions, if reading the image in place is faster than copying it.
    pub fn new(shape: &Shape, unit: usize, threads: usize) -> Option<Regions> {
        let in_place = pixels(shape, unit)?;
        let outputs = (shape.outputs / shape.groups).div_ceil(BLOCK) * shape.taps();
        let copied = (shape.pixels() * outputs) as f64 + Windows::copying(shape, unit);
        if in_place * outputs as f64 >= copied {
            return None;
        }
        let [down, across] = [0, 1].map(|a| Axis::new(shape, a).runs());
        let taps = down.iter().flat_map(|down| across.iter().map(move |across| taps(shape, unit, down, across)));
        let (taps, parts) = (taps.collect(), parts(shape, threads));
        Some(Regions { down, across, taps, parts })
    }
}

/// The taps of a region, from the first one.
fn taps(shape: &Shape, unit: usize, down: &Run, across: &Run) -> Vec<Tap> {
    let [height, width] = shape.input;
    let blocks = (shape.channels / shape.groups).div_ceil(unit);
    let each =
        (0..blocks).flat_map(|b| down.taps.clone().flat_map(move |i| across.taps.clone().map(move |j| (b, i, j))));
    let tap = |(b, i, j): (usize, usize, usize)| {
        let row = b * height + (i - down.taps.start) * shape.dilations[0];
        let place = row * width + (j - across.taps.start) * shape.dilations[1];
        Tap { x: (place * unit) as u32, w: term(shape, unit, b, i * shape.kernel[1] + j) }
    };
    each.map(tap).collect()
}

/// Divides the output into parts whose input fits in the cache, and into several for each thread.
fn parts(shape: &Shape, threads: usize) -> Vec<[Range<usize>; 2]> {
    let [height, width] = shape.output;
    let channels = shape.channels / shape.groups;
    let many = shape.taps() * (shape.outputs / shape.groups) > FEW_WEIGHTS;
    let room = ROOM[usize::from(many)] / (channels * shape.kernel[0]).max(1);
    let columns = if room < width || height == 1 { room.clamp(COLUMNS[0], COLUMNS[1]).min(width) } else { width };
    let rows = (room / columns).clamp(1, height.div_ceil(if threads > 1 { 2 * threads } else { 1 }));
    let ranges = |size: usize, most: usize| {
        let count = size.div_ceil(most);
        (0..count).map(move |i| size * i / count..size * (i + 1) / count)
    };
    ranges(height, rows).flat_map(|y| ranges(width, columns).map(move |x| [y.clone(), x])).collect()
}

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
        let (tiles, outputs, down) = (Tiles::of(filter.isa), end - first, &regions.down[r]);
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
        for block in (first..end).step_by(BLOCK) {
            for y in rows.clone() {
                let pixel = y * self.convolution.shape.output[1] + columns.start;
                // SAFETY: these pixels belong to this task and have been written.
                unsafe { self.convolution.finish(image, block, pixel, columns.len()) };
            }
        }
    }
}
