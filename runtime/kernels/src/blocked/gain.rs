//! What a convolution gains in blocks of channels.

use super::cost::{cheapest, direct, products, winograd};
use super::depthwise::DepthwiseFilter;
use super::weights::Weights;
use super::BLOCK;
use crate::conv_shape::Shape;
use crate::gemm::tiles::Tiles;
use crate::isa::Isa;

/// Multiply-adds of a vector that cost as much as moving a vector from rows to blocks or back.
pub const REORDER: f64 = 15.0;
/// What a tap of a depthwise convolution saves over blocks, in its own time: it needs no shuffles.
const DEPTHWISE: f64 = 2.0;
/// The time of a multiply-add in a tile of `r` rows of pixels, in that of one over blocks: `ALL + FEW / r`. Few rows
/// leave the processor waiting for the elements that each multiply-add reads.
const ALL: f64 = 0.85;
const FEW: f64 = 3.0;
/// Multiply-adds of a vector that cost as much as copying a row with its padding: for itself, and for each vector of it.
const COPY: [f64; 2] = [60.0, 6.0];

/// Whether a convolution of an image in rows takes less time in blocks of channels, the way there and back included.
pub fn is_worth_reordering(isa: Isa, shape: &Shape) -> bool {
    if !Weights::fits(shape) || shape.outputs < BLOCK {
        return false;
    }
    let in_blocks = if is_depthwise(shape) { depthwise(shape) } else { shape.groups as f64 * blocks(shape) };
    in_blocks + reordered(shape) < shape.groups as f64 * rows(isa, shape)
}

fn is_depthwise(shape: &Shape) -> bool {
    shape.groups > 1 && DepthwiseFilter::fits(shape.groups, shape.channels, shape.outputs)
}

/// The time of a depthwise convolution in blocks.
fn depthwise(shape: &Shape) -> f64 {
    (shape.kernel[0] * shape.kernel[1] * shape.channels.div_ceil(BLOCK) * shape.pixels()) as f64
}

/// The time that moving one image to blocks and its result back takes; one of few channels stays in rows.
fn reordered(shape: &Shape) -> f64 {
    let input = if Weights::take_rows(shape) { 0 } else { shape.channels.div_ceil(BLOCK) };
    let vectors = input * shape.input[0] * shape.input[1] + shape.outputs.div_ceil(BLOCK) * shape.pixels();
    vectors as f64 * REORDER
}

/// The time of one group in blocks.
fn blocks(shape: &Shape) -> f64 {
    let form = cheapest(shape).filter(|_| !Weights::take_rows(shape));
    form.map_or_else(|| direct(shape), |form| winograd(shape, form))
}

/// What a convolution saves in blocks of channels, in multiply-adds of a vector, when nothing has to be moved there or
/// back.
pub fn gain(isa: Isa, shape: &Shape) -> i64 {
    let shape = &shape.lying();
    if is_depthwise(shape) {
        return (DEPTHWISE * shape.batch as f64 * depthwise(shape)) as i64;
    }
    let [in_rows, in_blocks] = [rows(isa, shape), blocks(shape)].map(|time| shape.groups as f64 * time);
    let saved = if is_worth_reordering(isa, shape) { reordered(shape) } else { in_rows - in_blocks };
    (shape.batch as f64 * saved) as i64
}

/// The time of one group over rows of pixels.
fn rows(isa: Isa, shape: &Shape) -> f64 {
    let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
    let tiles = Tiles::of(isa);
    let reach = [0, 1].map(|a| shape.kernel[a].saturating_sub(1) * shape.dilations[a]);
    let [height, width] = shape.output;
    let vectors = |elements: usize| elements.next_multiple_of(tiles.lanes) as f64 / BLOCK as f64;
    // Rows one by one, or in one line with what stands between them.
    let line = height.saturating_sub(1) * (width + reach[1] / shape.strides[1]) + width;
    let in_a_tile = outputs as f64 / outputs.div_ceil(tiles.rows()).max(1) as f64;
    let terms = (channels * shape.kernel[0] * shape.kernel[1] * outputs) as f64;
    let copied = (channels * (height * shape.strides[0] + reach[0])) as f64;
    let length = vectors(width * shape.strides[1] + reach[1]);
    let copies = if reach == [0, 0] { 0.0 } else { copied * (COPY[0] + COPY[1] * length) };
    let time = (height as f64 * vectors(width)).min(vectors(line)) * (ALL + FEW / in_a_tile.max(1.0));
    products(terms / BLOCK as f64, time * BLOCK as f64) + copies
}
