//! The forms of convolutions by Winograd's algorithm over blocks of channels.

use super::super::filter::Filter;
use super::super::transforms::{Tile, Transform};
use crate::convolution::form::{products, ConvCase, ConvForm, ImageLayout, PackedConv};
use crate::form::Form;
use crate::isa::{Isa, Level};

/// The time of transforms of pixels that are not adjacent, relative to adjacent ones.
const APART: f64 = 1.3;

/// Winograd's algorithm with one of its tiles.
#[derive(Debug)]
pub(crate) struct WinogradForm(Transform);

impl WinogradForm {
    /// `F(2, 3)` along both axes.
    pub const TWO: WinogradForm = WinogradForm(Transform::Square(Tile::Two));
    /// `F(4, 3)` along both axes.
    pub const FOUR: WinogradForm = WinogradForm(Transform::Square(Tile::Four));
    /// `F(4, 3)` along one axis.
    pub const LINE: WinogradForm = WinogradForm(Transform::Line);

    /// The cost of transforming one vector of a tile's input, and one of its output, in multiply-adds of a vector.
    /// Loads and stores dominate it. Without AVX-512, the values of a square tile do not fit in the registers.
    fn transform(&self, isa: Isa) -> [f64; 2] {
        let slower = if isa.level() == Level::Avx512 { 1.0 } else { 5.0 / 3.0 };
        match self.0 {
            Transform::Square(Tile::Two) => [90.0, 70.0].map(|cost| slower * cost),
            Transform::Square(Tile::Four) => [250.0, 200.0].map(|cost| slower * cost),
            Transform::Line => [110.0, 90.0],
        }
    }

    /// The time of one group.
    fn group(&self, case: &ConvCase) -> f64 {
        let shape = &case.shape;
        let (channels, outputs) = (shape.channels / shape.groups, case.vectors(shape.outputs / shape.groups));
        let (tiles, count) = (self.0.tiles(shape) as f64, self.0.products(shape.kernel));
        let is_apart = self.0 != Transform::Line && shape.dilations != [1, 1];
        let apart = if is_apart { APART } else { 1.0 };
        let [input, output] = self.transform(case.isa()).map(|time| time * apart);
        let transforms = count.pieces as f64 * case.vectors(channels) * input + outputs * output;
        let terms = (channels * count.count()) as f64;
        products(terms * outputs, tiles) + transforms * tiles
    }
}

impl Form<ConvCase> for WinogradForm {
    fn name(&self, _: &ConvCase) -> String {
        let name = match self.0 {
            Transform::Square(Tile::Two) => "Winograd F(2, 3), in blocks",
            Transform::Square(Tile::Four) => "Winograd F(4, 3), in blocks",
            Transform::Line => "Winograd F(4, 3) along one axis, in blocks",
        };
        name.to_string()
    }

    /// The transformed weights are larger than the weights.
    fn fits(&self, case: &ConvCase) -> bool {
        let shape = &case.shape;
        let takes_blocks = Filter::takes_blocks(case.blocking, shape);
        case.may_transform && takes_blocks && shape.pixels() > 0 && self.0.fits(shape)
    }

    fn cost(&self, case: &ConvCase) -> f64 {
        case.shape.groups as f64 * self.group(case)
    }
}

impl ConvForm for WinogradForm {
    fn layouts(&self) -> [ImageLayout; 2] {
        [ImageLayout::Blocks; 2]
    }

    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        Box::new(Filter::new(case.blocking, &case.shape, w, Some(self.0)))
    }
}
