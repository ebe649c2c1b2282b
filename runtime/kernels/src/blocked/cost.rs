//! The cost model for convolutions in blocks.

use super::form::{Form, Tile};
use super::BLOCK;
use crate::conv_shape::Shape;

/// The cost of transforming one vector of a tile's input, and one of its output, in multiply-adds of a vector. Loads
/// and stores dominate it.
const SQUARES_OF_TWO: [f64; 2] = [90.0, 70.0];
const SQUARES_OF_FOUR: [f64; 2] = [250.0, 200.0];
const LINES: [f64; 2] = [110.0, 90.0];
/// The cost of fetching a vector of weights, in multiply-adds of a vector: if the weights fit in the L2 cache, and if
/// they do not. In the latter case, a core gets about 12 GB/s while the others are busy too. With fewer pixels than
/// this, the products wait for the weights.
const FETCH: [f64; 2] = [16.0, 32.0];
/// The vectors of weights that fit in the L2 cache: 1 MB.
const NEAR: f64 = 16384.0;

/// The time of the products of `pixels` pixels with `weights` vectors of weights, including the fetch of the weights.
pub(super) fn products(weights: f64, pixels: f64) -> f64 {
    weights * pixels.max(FETCH[usize::from(weights > NEAR)])
}

/// The time of one group, tap by tap.
pub(super) fn direct(shape: &Shape) -> f64 {
    let (channels, outputs) = (shape.channels / shape.groups, (shape.outputs / shape.groups).div_ceil(BLOCK) as f64);
    let terms = (channels * shape.kernel[0] * shape.kernel[1]) as f64;
    products(terms * outputs, shape.pixels() as f64)
}

/// The time of one group with Winograd's algorithm.
pub(super) fn winograd(shape: &Shape, form: Form) -> f64 {
    let (channels, outputs) = (shape.channels / shape.groups, (shape.outputs / shape.groups).div_ceil(BLOCK) as f64);
    let (tiles, count) = (form.tiles(shape) as f64, form.products(shape.kernel));
    let [input, output] = match form {
        Form::Square(Tile::Two) => SQUARES_OF_TWO,
        Form::Square(Tile::Four) => SQUARES_OF_FOUR,
        Form::Line => LINES,
    };
    let transforms = (count.pieces * channels.div_ceil(BLOCK)) as f64 * input + outputs * output;
    let terms = (channels * count.count()) as f64;
    products(terms * outputs, tiles) + transforms * tiles
}
