//! The forms of convolutions over blocks of channels, tap by tap.

use super::filter::Filter;
use super::regions;
use super::window::Windows;
use crate::convolution::form::{products, ConvCase, ConvForm, ImageLayout, PackedConv};
use crate::form::Form;
use crate::isa::Level;

/// The time of a product in a tile of 8 outputs, relative to a wider one: the processor loads a pixel for each product.
const NARROW: f64 = 1.25;
/// For a single channel without AVX-512: the time of a product, relative to a product of a block; and the time of the
/// remaining work for an output (the copy of the image, and the sums of pieces), in products.
const SINGLE: [f64; 2] = [1.2, 10.0];

/// Tap by tap over blocks of channels.
#[derive(Debug)]
pub(crate) struct DirectForm;

/// Tap by tap over an image in rows, with too few channels to fill a block, to blocks of channels.
#[derive(Debug)]
pub(crate) struct FromRowsForm;

impl Form<ConvCase> for DirectForm {
    fn name(&self, _: &ConvCase) -> String {
        "direct, in blocks".to_string()
    }

    fn fits(&self, case: &ConvCase) -> bool {
        Filter::takes_blocks(case.blocking, &case.shape)
    }

    fn cost(&self, case: &ConvCase) -> f64 {
        cost(case, case.blocking.block())
    }
}

impl ConvForm for DirectForm {
    fn layouts(&self) -> [ImageLayout; 2] {
        [ImageLayout::Blocks; 2]
    }

    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        Box::new(Filter::new(case.blocking, &case.shape, w, None))
    }
}

impl Form<ConvCase> for FromRowsForm {
    fn name(&self, _: &ConvCase) -> String {
        "direct, from rows to blocks".to_string()
    }

    fn fits(&self, case: &ConvCase) -> bool {
        Filter::takes_rows(case.blocking, &case.shape)
    }

    fn cost(&self, case: &ConvCase) -> f64 {
        cost(case, 1)
    }
}

impl ConvForm for FromRowsForm {
    fn layouts(&self) -> [ImageLayout; 2] {
        [ImageLayout::Rows, ImageLayout::Blocks]
    }

    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        Box::new(Filter::for_rows(case.blocking, &case.shape, w))
    }
}

/// The time of both forms, for an image with `unit` contiguous channels. A dilated window is copied or read in place.
fn cost(case: &ConvCase, unit: usize) -> f64 {
    let shape = &case.shape;
    let outputs = shape.outputs / shape.groups;
    let narrow = if outputs.next_multiple_of(case.blocking.block()) == 8 { NARROW } else { 1.0 };
    let is_single = unit == 1 && case.isa().level() != Level::Avx512;
    let single = if is_single { SINGLE[0] + SINGLE[1] / shape.taps().max(1) as f64 } else { 1.0 };
    let each = narrow * single;
    let time = |pixels: f64| products(shape.taps() as f64 * case.vectors(outputs), each * pixels);
    let copied = time(shape.pixels() as f64) + Windows::copying(shape, unit);
    let in_place = regions::pixels(shape, unit).map(time);
    shape.groups as f64 * in_place.map_or(copied, |time| time.min(copied))
}
