//! The transforms of Winograd's algorithm: how they divide a convolution into tiles, and how they transform its weights.

mod line;
mod matrices;
mod products;
mod tiling;

use super::terms::SUMMED;
use super::tile::PIECE;
use crate::buffer::with_capacity;
use crate::conv_shape::Shape;
pub(super) use line::{axis, products, INPUTS, OUTPUTS, TAPS};
pub(super) use matrices::{input, output, Tile};
pub(super) use products::Products;
pub(super) use tiling::Tiling;

/// The terms that `F(4, 3)` along both axes sums separately. It enlarges the errors of sums most: with this length, its
/// root mean square error is about three times that of direct sums, for 16 to 512 channels.
const PIECE_OF_FOUR: usize = 2 * SUMMED;

/// How a convolution is divided into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    /// Squares of outputs.
    Square(Tile),
    /// `F(4, 3)` along one axis.
    Line,
}

impl Transform {
    /// Whether the transform is for a convolution of this shape.
    pub fn fits(self, shape: &Shape) -> bool {
        match self {
            Transform::Square(_) => shape.kernel == [3, 3] && shape.strides == [1, 1],
            Transform::Line => line::axis(shape).is_some(),
        }
    }

    /// The number of tiles per image.
    pub fn tiles(self, shape: &Shape) -> usize {
        match self {
            Transform::Square(tile) => tile.tilings(shape).iter().map(Tiling::tiles).product(),
            Transform::Line => line::tiles(shape),
        }
    }

    /// The number of products for a window.
    pub fn products(self, [height, width]: [usize; 2]) -> Products {
        match self {
            Transform::Square(tile) => {
                let summed = if tile == Tile::Four { PIECE_OF_FOUR } else { PIECE };
                Products { positions: (tile as usize + 2).pow(2), pieces: 1, summed }
            }
            Transform::Line => line::products(height * width),
        }
    }

    /// Appends one group's transformed weights, `[span of outputs][position][term][outputs of the span]`.
    pub fn pack(self, channels: usize, kernel: [usize; 2], spans: &[[usize; 2]], w: &[f32], packed: &mut Vec<f32>) {
        let (products, taps) = (self.products(kernel), kernel[0] * kernel[1]);
        for &[first, end] in spans {
            // Works span by span: the transformed weights of all spans would take as much memory as the packed ones.
            let [from, to] = [first, end].map(|output| w.len().min(output * channels * taps));
            let transformed = match self {
                Transform::Square(tile) => squares(tile, &w[from..to]),
                Transform::Line => line::weights(taps, &w[from..to]),
            };
            products.pack(end - first, channels, &transformed, packed);
        }
    }
}

impl Tile {
    /// The tiles along both axes of a convolution.
    pub fn tilings(self, shape: &Shape) -> [Tiling; 2] {
        [0, 1].map(|a| Tiling { size: self as usize, length: shape.output[a], dilation: shape.dilations[a] })
    }
}

/// Transforms the weights of 3 × 3 windows.
fn squares(tile: Tile, w: &[f32]) -> Vec<f32> {
    let rows = matrices::weight_rows(tile);
    let mut out = with_capacity(w.len() / 9 * rows.len().pow(2));
    w.chunks_exact(9).for_each(|window| matrices::square(&rows, window, &mut out));
    out
}
