//! Convolutions of images of codes with their channels last.

use std::ops::Range;

use super::depthwise::{self, Depthwise};
use super::product::{shifted_zero, Product, Rows};
use super::weights::{Matrix, Weights};
use super::{Codes, Out, SIGN};
use crate::conv::Shape;
use crate::isa::Isa;
use crate::threads::Threads;

/// The packed weights of a convolution.
#[derive(Debug, Clone)]
pub struct Filter(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// A matrix `[kernel · C / groups, O / groups]` a group.
    Dense(Vec<Weights>),
    /// A channel a group, each with one output.
    Depthwise(Depthwise),
}

impl Filter {
    /// Packs `w`, `[O, C / groups, kernel]`, whose `kernel` has so many taps; `zeros` are one, or one an output.
    ///
    /// # Panics
    /// The sizes do not fit.
    pub fn new(isa: Isa, groups: usize, outputs: usize, taps: usize, w: &[u8], signed: bool, zeros: &[i32]) -> Filter {
        assert!(groups > 0 && outputs.is_multiple_of(groups) && (zeros.len() == 1 || zeros.len() == outputs));
        let depth = w.len().checked_div(outputs).unwrap_or(0);
        assert!(w.len() == outputs * depth && (taps == 0 || depth.is_multiple_of(taps)), "the weights do not fit");
        if groups == outputs && groups > 1 && depth == taps {
            return Filter(Kind::Depthwise(Depthwise::new(isa, taps, w, signed, zeros)));
        }
        let (each, channels) = (outputs / groups, depth.checked_div(taps).unwrap_or(0));
        let group = |g: usize| {
            let zeros = if zeros.len() == 1 { zeros } else { &zeros[g * each..(g + 1) * each] };
            let bits = &w[g * each * depth..(g + 1) * each * depth];
            let matrix = Matrix { bits, signed, zeros, row: 0, column: depth };
            // the channels of a tap follow one another, as they do in the image
            Weights::gather(isa, depth, each, &matrix, |i| i % channels * taps + i / channels)
        };
        Filter(Kind::Dense((0..groups).map(group).collect()))
    }
}

/// `sum[n, y, x, o] = bias[o] + Σ (w[o, c, i, j] − zero[o]) · (x[n, y·s + i·d − before, x·s + j·d − before, c] − x.zero)`, what
/// lies outside the image being `x.zero`; `out`, `[N, H', W', O]`, has what becomes of the sums.
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv(threads: &Threads, shape: &Shape, filter: &Filter, x: Codes, bias: Option<&[i32]>, mut out: Out) {
    check(shape, &x, bias, &out);
    match &filter.0 {
        Kind::Depthwise(weights) => depthwise::conv(threads, shape, weights, x, bias, out),
        Kind::Dense(groups) => {
            assert_eq!(groups.len(), shape.groups, "{shape:?}");
            for (group, weights) in groups.iter().enumerate() {
                dense(threads, shape, group, weights, &x, bias, &mut out);
            }
        }
    }
}

fn check(shape: &Shape, x: &Codes, bias: Option<&[i32]>, out: &Out) {
    assert!(shape.groups > 0 && shape.channels.is_multiple_of(shape.groups), "{shape:?}");
    assert!(
        shape.outputs.is_multiple_of(shape.groups) && bias.is_none_or(|bias| bias.len() == shape.outputs),
        "{shape:?}"
    );
    assert_eq!(x.bits.len(), shape.batch * shape.input[0] * shape.input[1] * shape.channels, "{shape:?}");
    assert_eq!(out.len(), shape.batch * shape.pixels() * shape.outputs, "{shape:?}");
}

/// One group.
fn dense(
    threads: &Threads,
    shape: &Shape,
    group: usize,
    weights: &Weights,
    x: &Codes,
    bias: Option<&[i32]>,
    out: &mut Out,
) {
    let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
    assert!(weights.k == channels * shape.kernel[0] * shape.kernel[1] && weights.n == outputs, "{shape:?}");
    let patches = Patches { shape, x, group, channels };
    let gather = |pixels: Range<usize>, to: &mut [u8]| patches.write(pixels, to);
    let is_product = shape.groups == 1
        && shape.kernel == [1; 2]
        && shape.strides == [1; 2]
        && shape.before == [0; 2]
        && shape.input == shape.output;
    let lies = is_product && !x.signed && channels.is_multiple_of(4);
    let rows = if lies { Rows::Lying(x.bits) } else { Rows::Gathered(&gather) };
    let bias = bias.map(|bias| &bias[group * outputs..(group + 1) * outputs]);
    let product = Product { m: shape.batch * shape.pixels(), b: weights, rows, out_row: shape.outputs };
    product.run(threads, shifted_zero(x), bias, out, group * outputs);
}

/// What the windows of a group's outputs see: for each pixel, `[kernel, C / groups]` unsigned bytes.
struct Patches<'a> {
    shape: &'a Shape,
    x: &'a Codes<'a>,
    group: usize,
    channels: usize,
}

impl Patches<'_> {
    /// Writes the patches of some pixels, each filled up to a multiple of four bytes.
    fn write(&self, pixels: Range<usize>, to: &mut [u8]) {
        let [height, width] = self.shape.output;
        let row = self.shape.kernel[1] * self.channels;
        let patch = (self.shape.kernel[0] * row).next_multiple_of(4).max(1);
        for (pixel, to) in pixels.zip(to.chunks_exact_mut(patch)) {
            let (image, y, x) = (pixel / (height * width), pixel / width % height, pixel % width);
            for (i, to) in to.chunks_exact_mut(row.max(1)).take(self.shape.kernel[0]).enumerate() {
                match position(self.shape, 0, y, i) {
                    Some(y) => self.write_row(image * self.shape.input[0] + y, x, to),
                    None => to.fill(shifted_zero(self.x) as u8),
                }
            }
        }
    }

    /// One row of a window: the image's row `y`, counted through all images, around output column `x`.
    fn write_row(&self, y: usize, x: usize, to: &mut [u8]) {
        let (shape, channels) = (self.shape, self.channels);
        let at = |x: usize| (y * shape.input[1] + x) * shape.channels + self.group * channels;
        let ends = (position(shape, 1, x, 0), position(shape, 1, x, shape.kernel[1] - 1));
        if let ((Some(first), Some(_)), true) = (ends, shape.groups == 1 && shape.dilations[1] == 1) {
            return self.copy(at(first), to);
        }
        for (j, to) in to.chunks_exact_mut(channels).enumerate() {
            match position(shape, 1, x, j) {
                Some(x) => self.copy(at(x), to),
                None => to.fill(shifted_zero(self.x) as u8),
            }
        }
    }

    fn copy(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.x.bits[at..at + to.len()]);
        if self.x.signed {
            to.iter_mut().for_each(|to| *to ^= SIGN);
        }
    }
}

/// The input's index along an axis that tap `tap` of output `index` reads; `None`: outside.
pub(super) fn position(shape: &Shape, axis: usize, index: usize, tap: usize) -> Option<usize> {
    let forth = index * shape.strides[axis] + tap * shape.dilations[axis];
    forth.checked_add_signed(-shape.before[axis]).filter(|&at| at < shape.input[axis])
}
