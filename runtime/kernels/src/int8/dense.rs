//! Convolutions as one matrix product per group: the windows of the pixels times the weights.

use std::ops::Range;

use super::codes::Codes;
use super::direct::Direct;
use super::finish::Out;
use super::form::{PackedQuantizedConv, QuantizedConvCase, QuantizedConvForm, Taps, UNIT};
use super::instructions::Dots;
use super::patches::Patches;
use super::product::{shifted_zero, Product, Rows};
use super::tiles::Tiles;
use super::weights::{Matrix, Weights};
use crate::buffer::{collected, is_cached};
use crate::conv_shape::Shape;
use crate::form::Form;
use crate::threads::Threads;

/// The form with one product per group. It fits any convolution.
pub(crate) struct DenseForm;

/// The time to gather the windows of a product, relative to that of the product.
const GATHER: f64 = 0.5;
/// The instructions that copy a contiguous piece of a window.
const COPY: f64 = 8.0;

impl Form<QuantizedConvCase> for DenseForm {
    fn name(&self, case: &QuantizedConvCase) -> String {
        let Layout { dots, row, .. } = Layout::of(case);
        format!("int8, {}", dots.for_depth(1, case.kernel[0] * row).name())
    }

    fn fits(&self, _: &QuantizedConvCase) -> bool {
        true
    }

    fn cost(&self, case: &QuantizedConvCase) -> f64 {
        let Layout { dots, row, is_padded } = Layout::of(case);
        let lanes = Tiles::of(dots).lanes;
        let instructions = case.outputs.div_ceil(lanes) * dots.time(case.kernel[0], row);
        let products = instructions as f64 * lanes as f64 / UNIT;
        let pieces = if case.groups == 1 { case.kernel[0] } else { case.taps() };
        let gathering = if is_padded { 0.0 } else { GATHER * products + COPY * pieces as f64 };
        case.groups as f64 * (products + gathering)
    }
}

impl QuantizedConvForm for DenseForm {
    fn pack(&self, case: &QuantizedConvCase, weights: &Taps) -> Box<dyn PackedQuantizedConv> {
        let &QuantizedConvCase { outputs, kernel, depth, .. } = case;
        let &Taps { bits, signed, zeros, .. } = weights;
        let Layout { dots, row, .. } = Layout::of(case);
        let group = |g: usize| Matrix {
            bits: &bits[g * outputs * depth..][..outputs * depth],
            signed,
            zeros: if zeros.len() == 1 { zeros } else { &zeros[g * outputs..][..outputs] },
            row: 0,
            column: depth,
        };
        let groups = collected((0..case.groups).map(|g| packed(dots, outputs, kernel, row, &group(g))));
        Box::new(Dense { groups, row })
    }
}

/// How the weights of a group are laid out.
struct Layout {
    dots: Dots,
    /// The rows of the matrix per row of the kernel.
    row: usize,
    /// Whether the rows of the kernel are padded such that windows can be read in place.
    is_padded: bool,
}

impl Layout {
    /// Pads if the products with the padding take at most as long as those without it and gathering the windows.
    fn of(case: &QuantizedConvCase) -> Layout {
        let row = case.depth.checked_div(case.kernel[0]).unwrap_or(0);
        let dots = case.dots.for_depth(case.kernel[0], row);
        let padded = dots.padded(row);
        let is_padded = case.groups == 1 && case.is_narrow && padded as f64 <= (1.0 + GATHER) * row as f64;
        Layout { dots, row: if is_padded { padded } else { row }, is_padded }
    }
}

/// Packs the matrix of a group of `outputs`, with `row` rows per row of the kernel. Rows beyond those of `matrix`
/// are 0.
fn packed(dots: Dots, outputs: usize, kernel: [usize; 2], row: usize, matrix: &Matrix) -> Weights {
    let channels = matrix.column.checked_div(kernel[0] * kernel[1]).unwrap_or(0);
    let dots = dots.for_depth(1, kernel[0] * row);
    // the channels of a tap are contiguous, as in the image
    Weights::gather(dots, kernel[0] * row, outputs, matrix, |i| {
        let (i, at) = (i / row, i % row);
        (at < kernel[1] * channels).then(|| (at % channels * kernel[0] + i) * kernel[1] + at / channels)
    })
}

/// One matrix `[kernel · C / groups, O / groups]` per group.
#[derive(Debug)]
struct Dense {
    groups: Vec<Weights>,
    /// The rows of the matrices per row of the kernel.
    row: usize,
}

impl PackedQuantizedConv for Dense {
    fn run(&self, threads: &Threads, shape: &Shape, x: Codes, bias: Option<&[i32]>, mut out: Out) {
        assert_eq!(self.groups.len(), shape.groups, "{shape:?}");
        for group in 0..self.groups.len() {
            self.group(threads, shape, group, &x, bias, &mut out);
        }
    }

    fn bytes(&self) -> usize {
        self.groups.iter().map(Weights::bytes).sum()
    }

    fn is_cached(&self, shape: &Shape) -> bool {
        let none = Codes { bits: &[], signed: false, zero: 0 };
        self.groups.iter().all(|weights| match Direct::new(shape, &none, weights, self.row) {
            Some(direct) => is_cached::<u8>(direct.band_len()),
            None => weights.is_cached(),
        })
    }
}

impl Dense {
    /// Computes one group.
    fn group(&self, threads: &Threads, shape: &Shape, group: usize, x: &Codes, bias: Option<&[i32]>, out: &mut Out) {
        let (weights, row) = (&self.groups[group], self.row);
        let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
        let fits = weights.k == shape.kernel[0] * row && row >= channels * shape.kernel[1] && weights.n == outputs;
        assert!(fits, "{shape:?}");
        if let Some(direct) = Direct::new(shape, x, weights, row) {
            return direct.run(threads, &weights.finish(shifted_zero(x), bias, out, 0));
        }
        let patches = Patches { shape, x, group, channels, row, patch: weights.depth() };
        let gather = |pixels: Range<usize>, to: &mut [u8]| patches.write(pixels, to);
        let is_product = shape.groups == 1
            && shape.kernel == [1; 2]
            && shape.strides == [1; 2]
            && shape.before == [0; 2]
            && shape.input == shape.output;
        let lies = is_product && !x.signed && weights.depth() == channels;
        let rows = if lies { Rows::Lying(x.bits) } else { Rows::Gathered(&gather) };
        let bias = bias.map(|bias| &bias[group * outputs..(group + 1) * outputs]);
        let product = Product { m: shape.batch * shape.pixels(), b: weights, rows, out_row: shape.outputs, each: None };
        product.run(threads, shifted_zero(x), bias, out, group * outputs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{caught, within};

    #[test]
    fn the_list_of_groups_counts_toward_the_budget() {
        let (groups, outputs, kernel) = (1 << 15, 1, [1, 1]);
        let bits = vec![0; groups];
        let weights = Taps { groups, outputs: groups, kernel, bits: &bits, signed: true, zeros: &[0] };
        for (isa, dots) in Dots::available() {
            let case = QuantizedConvCase { isa, dots, groups, outputs, kernel, depth: 1, is_narrow: true };
            let bytes = |budget: usize| caught(|| within(budget, || DenseForm.pack(&case, &weights).bytes())).ok();
            let needed = size_of::<Weights>() * groups;
            assert!(bytes(needed).is_some() && bytes(needed - 1).is_none());
        }
    }

    #[test]
    fn rows_are_padded_by_at_most_half() {
        for (isa, dots) in Dots::available() {
            for (rows, row) in (0..4).flat_map(|rows| (0..300).map(move |row| (rows, row))) {
                for (groups, is_narrow) in [(1, true), (1, false), (2, true)] {
                    let (kernel, depth) = ([rows, 1], rows * row);
                    let case = QuantizedConvCase { isa, dots, groups, outputs: 8, kernel, depth, is_narrow };
                    let (row, layout) = (if rows == 0 { 0 } else { row }, Layout::of(&case));
                    let padded = dots.for_depth(rows, row).padded(row);
                    let is_padded = groups == 1 && is_narrow && 2 * padded <= 3 * row;
                    assert_eq!((layout.is_padded, layout.row), (is_padded, if is_padded { padded } else { row }));
                }
            }
        }
    }
}
