//! `F(4, 3)` along one axis: its tiles and its transformed weights.

use super::super::tile::PIECE;
use super::matrices::{self, Tile};
use super::products::Products;
use crate::buffer::with_capacity;
use crate::conv_shape::Shape;

/// The outputs of a tile, the inputs of a piece of its window, and the taps of a piece.
pub(in crate::convolution::blocked) const OUTPUTS: usize = 4;
pub(in crate::convolution::blocked) const INPUTS: usize = 6;
pub(in crate::convolution::blocked) const TAPS: usize = 3;

/// The number of products for a window of `taps` taps.
pub(in crate::convolution::blocked) fn products(taps: usize) -> Products {
    Products { positions: INPUTS, pieces: taps.div_ceil(TAPS), summed: PIECE }
}

/// Transforms the weights of windows of `taps` taps, to `[piece][position]` each.
pub(super) fn weights(taps: usize, w: &[f32]) -> Vec<f32> {
    let rows = matrices::weight_rows(Tile::Four);
    let mut out = with_capacity(w.len() / taps * products(taps).count());
    let pieces = w.chunks_exact(taps).flat_map(|window| window.chunks(TAPS));
    pieces.for_each(|piece| matrices::line(&rows, piece, &mut out));
    out
}

/// Returns the axis of a window with one row or column, if the form supports it. The other axis has size 1 and no
/// padding.
pub(in crate::convolution::blocked) fn axis(shape: &Shape) -> Option<usize> {
    let is_plain = |a: usize| shape.kernel[a] == 1 && shape.before[a] == 0 && shape.input[a] == shape.output[a];
    (0..2).find(|&a| shape.kernel[a] >= TAPS && is_plain(1 - a)).filter(|_| shape.strides == [1, 1])
}

/// The number of tiles per image.
pub(super) fn tiles(shape: &Shape) -> usize {
    let places = |a: usize| match shape.kernel[a] {
        1 => shape.output[a],
        _ => shape.output[a].div_ceil(OUTPUTS * shape.dilations[a]) * shape.dilations[a],
    };
    places(0) * places(1)
}
