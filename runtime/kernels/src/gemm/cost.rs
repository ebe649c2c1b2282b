//! The cost model of matrix products: terms that several forms share.

use super::case::{ProductCase, RightCase};
use super::operands::ProductSizes;
use super::tiles::Tiles;

/// The lanes of a vector whose instructions cost 1.
pub(crate) const UNIT: f64 = 16.0;

/// The cost of a row of a panel that does not follow the one before it in memory. With this value, two panels side by
/// side cost more than the sums that [`FewRows`](super::rows::FewRows) stores.
pub(super) const JUMP: f64 = 4.0;

/// How register tiles cover a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cover {
    /// The cost of an instruction on a vector.
    pub instruction: f64,
    /// The rows and the depth of the product.
    pub rows: f64,
    pub depth: f64,
    /// The vectors of a row of the output.
    pub vectors: f64,
    /// The panels of columns, each as wide as a tile.
    pub panels: f64,
    /// The tiles that cover the rows of a panel.
    pub tiles: f64,
}

impl Cover {
    /// Returns how tiles cover a product. Only panels that are packed in advance have a width of their own.
    pub fn of(case: &ProductCase) -> Cover {
        let (tiles, ProductSizes { m, n, k }) = (Tiles::of(case.isa), case.sizes);
        let vectors = n.div_ceil(tiles.lanes);
        let panels = match case.b {
            RightCase::Packed { width, .. } => n.div_ceil(width),
            RightCase::Plain(_) => vectors.div_ceil(tiles.vectors(m.clamp(1, tiles.rows()))),
        };
        Cover {
            instruction: tiles.lanes as f64 / UNIT,
            rows: m as f64,
            depth: k as f64,
            vectors: vectors as f64,
            panels: panels as f64,
            tiles: m.div_ceil(tiles.rows()) as f64,
        }
    }

    /// The cost of the tiles, if the multiply-adds of one vector of the right operand cost as much as `products`
    /// instructions: besides these, each tile loads the vector once, and each panel broadcasts the elements of the left
    /// operand.
    pub fn tiled(&self, products: f64) -> f64 {
        let each = products * self.vectors + self.vectors * self.tiles + self.rows * self.panels;
        self.instruction * self.depth * each
    }
}
