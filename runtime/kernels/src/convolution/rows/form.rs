//! The form of convolutions over rows of pixels.

use super::source::inside;
use super::window::Windows;
use super::{conv, Rows};
use crate::conv_shape::Shape;
use crate::convolution::form::{of_threads, products, ConvCase, ConvForm, ConvOperands, ImageLayout, PackedConv};
use crate::form::Form;
use crate::gemm::tiles::Tiles;
use crate::gemm::UNIT;
use crate::isa::{Isa, Level};
use crate::threads::Threads;

/// The time of a multiply-add in a tile of `r` rows of pixels, relative to blocks: `all + few / r`. With few rows, the
/// processor waits for the elements that each multiply-add reads. The third number is the time before and after the
/// products of a tile, in products of each of its outputs.
const AVX512: [f64; 3] = [0.85, 3.0, 0.0];
const OTHERS: [f64; 3] = [1.1, 0.8, 10.0];
/// The cost of copying a row with its padding, in multiply-adds of a vector: per row, and per vector of it.
const COPY: [f64; 2] = [60.0, 6.0];

/// Tap by tap over rows of pixels.
#[derive(Debug)]
pub(crate) struct RowsForm;

impl Form<ConvCase> for RowsForm {
    fn name(&self, _: &ConvCase) -> String {
        "direct, in rows".to_string()
    }

    fn fits(&self, _: &ConvCase) -> bool {
        true
    }

    fn cost(&self, case: &ConvCase) -> f64 {
        case.shape.groups as f64 * group(case.isa(), &case.shape)
    }
}

impl ConvForm for RowsForm {
    fn layouts(&self) -> [ImageLayout; 2] {
        [ImageLayout::Rows; 2]
    }

    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv> {
        let shape = &case.shape;
        Box::new(Rows::new(case.isa(), shape.groups, shape.outputs / shape.groups, shape.taps(), w))
    }
}

/// The time of one group.
fn group(isa: Isa, shape: &Shape) -> f64 {
    let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
    let tiles = Tiles::of(isa);
    let reach = [0, 1].map(|a| shape.kernel[a].saturating_sub(1) * shape.dilations[a]);
    let [height, width] = shape.output;
    let vectors = |elements: usize| elements.next_multiple_of(tiles.lanes) as f64 / UNIT;
    // Row by row, or in one line that includes the gaps between rows.
    let line = height.saturating_sub(1) * (width + reach[1] / shape.strides[1]) + width;
    let in_a_tile = outputs as f64 / outputs.div_ceil(tiles.rows()).max(1) as f64;
    let terms = (channels * shape.kernel[0] * shape.kernel[1] * outputs) as f64;
    let copied = (channels * (height * shape.strides[0] + reach[0])) as f64;
    let length = vectors(width * shape.strides[1] + reach[1]);
    let copies = if reach == [0, 0] || is_read_in_place(shape) { 0.0 } else { copied * (COPY[0] + COPY[1] * length) };
    let [all, few, start] = if isa.level() == Level::Avx512 { AVX512 } else { OTHERS };
    let each = (all + few / in_a_tile.max(1.0)) * (1.0 + start / shape.taps().max(1) as f64);
    // A tile of half a vector takes as long as one of a vector.
    let time = (height as f64 * vectors(width)).min(vectors(line)).max(1.0) * each;
    products(terms / UNIT, time * UNIT) + copies
}

/// Whether tiles read the image in place, without a copy of its rows.
fn is_read_in_place(shape: &Shape) -> bool {
    shape.strides == [1, 1] && shape.dilations == [1, 1] && inside(shape) == Some(0)
}

impl PackedConv for Rows {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        conv(threads, self, operands);
    }

    fn bytes(&self) -> usize {
        Rows::bytes(self)
    }

    fn scratch(&self, shape: &Shape) -> Option<usize> {
        of_threads(shape, |shape| Windows::new(shape, 1).lengths(shape, Tiles::of(self.isa).rows()))
    }
}
