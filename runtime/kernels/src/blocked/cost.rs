//! The times of the forms of a convolution in blocks.

use super::form::{Form, Tile};
use super::BLOCK;
use crate::conv_shape::Shape;

/// Multiply-adds of a vector that cost as much as transforming one vector of a tile's input, and of its output: loads and
/// stores, mostly.
const SQUARES_OF_TWO: [f64; 2] = [90.0, 70.0];
const SQUARES_OF_FOUR: [f64; 2] = [250.0, 200.0];
const LINES: [f64; 2] = [110.0, 90.0];
/// Multiply-adds of a vector that take as long as fetching a vector of weights, which fewer pixels wait for: of so few
/// weights that they stay in a cache near, and of more, for which a core has some 12 GB/s where the others are busy, too.
const FETCH: [f64; 2] = [16.0, 32.0];
/// Vectors of weights that stay there: 1 MB.
const NEAR: f64 = 16384.0;

/// The time of each pixel's product with vectors of weights, which are fetched in some time.
pub(super) fn products(weights: f64, pixels: f64) -> f64 {
    weights * pixels.max(FETCH[usize::from(weights > NEAR)])
}

/// The time of one group tap by tap.
pub(super) fn direct(shape: &Shape) -> f64 {
    let (channels, outputs) = (shape.channels / shape.groups, (shape.outputs / shape.groups).div_ceil(BLOCK) as f64);
    let terms = (channels * shape.kernel[0] * shape.kernel[1]) as f64;
    products(terms * outputs, shape.pixels() as f64)
}

/// The time of one group in a form of Winograd's algorithm.
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
