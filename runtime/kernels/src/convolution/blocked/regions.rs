//! The regions of a dilated convolution's output whose windows have the same taps inside the image. Taps outside the
//! image cost nothing, and nothing is copied ([`InPlace`](super::in_place::InPlace)).

use std::ops::Range;

use super::axis::{Axis, Run};
use super::terms::{taps, Tap};
use super::window::Windows;
use crate::blocking::Blocking;
use crate::buffer::collected_up_to;
use crate::conv_shape::Shape;

/// Elements of a part's input that fit in the L2 cache together with weights and results. With many weights, a part is
/// larger, because it reads all of them.
const BUDGETS: [usize; 2] = [1 << 16, 1 << 18];
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

/// The time of a convolution that reads its image in place, in pixels with a whole window. `None` if the window is not
/// dilated, or its image can only be copied.
pub(super) fn pixels(shape: &Shape, unit: usize) -> Option<f64> {
    let is_dilated = (0..2).any(|a| shape.kernel[a] > 1 && shape.dilations[a] > 1);
    let is_even = unit > 1 || shape.strides[1] == 1;
    let is_small = shape.output.iter().all(|&outputs| outputs <= MOST_OUTPUTS);
    if !is_dilated || !is_even || !is_small || shape.kernel.contains(&0) || shape.channels == 0 {
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

/// The most elements of the lists of parts, regions and taps of a convolution whose window is dilated.
pub(super) fn lengths(shape: &Shape, unit: usize) -> [usize; 3] {
    if pixels(shape, unit).is_none() {
        return [0; 3];
    }
    let regions: usize = [0, 1].map(|a| Axis::new(shape, a).runs().len()).into_iter().product();
    let parts = shape.output[0] * shape.output[1].div_ceil(COLUMNS[0]);
    let elements = |bytes: usize| bytes / size_of::<f32>();
    let taps = Axis::length(shape.output[0].max(shape.output[1]));
    [elements(parts * size_of::<[Range<usize>; 2]>()), elements(regions * size_of::<Vec<Tap>>()), taps]
}

/// The regions of a convolution: each pair of runs.
pub(super) struct Regions {
    pub down: Vec<Run>,
    pub across: Vec<Run>,
    /// For each region, row by row.
    pub taps: Vec<Vec<Tap>>,
    /// The rows and columns of the parts of the output that tasks compute.
    pub parts: Vec<[Range<usize>; 2]>,
}

impl Regions {
    /// Returns the regions, if reading the image in place is faster than copying it. The choice does not depend on the
    /// size of blocks, because a copy has the taps outside the image, and its sums have other pieces.
    pub fn new(shape: &Shape, unit: usize, threads: usize) -> Option<Regions> {
        let most = if unit > 1 { Blocking::MOST } else { 1 };
        let in_place = pixels(shape, most)?;
        let products = ((shape.outputs / shape.groups).div_ceil(Blocking::MOST) * shape.taps()) as f64;
        if in_place * products >= shape.pixels() as f64 * products + Windows::copying(shape, most) {
            return None;
        }
        let [down, across] = [0, 1].map(|a| Axis::new(shape, a).runs());
        let [height, width] = shape.input;
        let place = |block: usize, y: usize, x: usize| ((block * height + y) * width + x) * unit;
        let region = |down: &Run, across: &Run| taps(shape, unit, [&down.taps, &across.taps], place);
        let taps = down.iter().flat_map(|down| across.iter().map(|across| region(down, across)));
        let (taps, parts) = (collected_up_to(down.len() * across.len(), taps), parts(shape, threads));
        Some(Regions { down, across, taps, parts })
    }
}

/// Divides the output into parts whose input fits in the cache, and into several for each thread.
fn parts(shape: &Shape, threads: usize) -> Vec<[Range<usize>; 2]> {
    let [height, width] = shape.output;
    let channels = shape.channels / shape.groups;
    let many = shape.taps() * (shape.outputs / shape.groups) > FEW_WEIGHTS;
    let fitting = BUDGETS[usize::from(many)] / (channels * shape.kernel[0]).max(1);
    let columns = if fitting < width || height == 1 { fitting.clamp(COLUMNS[0], COLUMNS[1]).min(width) } else { width };
    let rows = (fitting / columns).clamp(1, height.div_ceil(if threads > 1 { 2 * threads } else { 1 }));
    let ranges = |size: usize, most: usize| {
        let count = size.div_ceil(most);
        (0..count).map(move |i| size * i / count..size * (i + 1) / count)
    };
    let count = height.div_ceil(rows) * width.div_ceil(columns);
    collected_up_to(count, ranges(height, rows).flat_map(|y| ranges(width, columns).map(move |x| [y.clone(), x])))
}
