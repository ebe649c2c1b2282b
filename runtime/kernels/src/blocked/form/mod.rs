//! The forms of Winograd's algorithm: how a convolution is cut into tiles, and its transformed weights.

mod line;
mod products;
mod transform;

use crate::buffer::with_capacity;
use crate::conv_shape::Shape;
pub(super) use line::{axis, products, INPUTS, OUTPUTS, TAPS};
pub(super) use products::Products;
pub(super) use transform::{input, output, Tile};

/// How a convolution is tiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Squares of outputs.
    Square(Tile),
    /// `F(4, 3)` along one axis.
    Line,
}

impl Form {
    /// All.
    pub const ALL: [Form; 3] = [Form::Square(Tile::Two), Form::Square(Tile::Four), Form::Line];

    /// Whether it can do a convolution.
    pub fn fits(self, shape: &Shape) -> bool {
        match self {
            Form::Square(_) => shape.kernel == [3, 3] && shape.strides == [1, 1] && shape.dilations == [1, 1],
            Form::Line => line::axis(shape).is_some(),
        }
    }

    /// The tiles of an image.
    pub fn tiles(self, shape: &Shape) -> usize {
        match self {
            Form::Square(tile) => shape.output.map(|size| size.div_ceil(tile as usize)).iter().product(),
            Form::Line => line::tiles(shape),
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Form::Square(tile) => tile.name(),
            Form::Line => "Winograd F(4, 3) along one axis",
        }
    }

    /// The products for a window.
    pub fn products(self, [height, width]: [usize; 2]) -> Products {
        match self {
            Form::Square(tile) => Products { positions: (tile as usize + 2).pow(2), pieces: 1 },
            Form::Line => line::products(height * width),
        }
    }

    /// Appends one group's weights, `[span of outputs][position][term][outputs of the span]`.
    pub fn pack(self, channels: usize, kernel: [usize; 2], spans: &[[usize; 2]], w: &[f32], packed: &mut Vec<f32>) {
        let (products, taps) = (self.products(kernel), kernel[0] * kernel[1]);
        for &[first, end] in spans {
            // Span by span: the transformed weights of all would take as much memory as the packed ones.
            let [from, to] = [first, end].map(|output| w.len().min(output * channels * taps));
            let transformed = match self {
                Form::Square(tile) => squares(tile, &w[from..to]),
                Form::Line => line::weights(taps, &w[from..to]),
            };
            products.pack(end - first, channels, &transformed, packed);
        }
    }
}

/// The transformed weights of windows of 3 × 3.
fn squares(tile: Tile, w: &[f32]) -> Vec<f32> {
    let rows = transform::weight_rows(tile);
    let mut out = with_capacity(w.len() / 9 * rows.len().pow(2));
    w.chunks_exact(9).for_each(|window| transform::square(&rows, window, &mut out));
    out
}
