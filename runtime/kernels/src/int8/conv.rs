//! Convolutions of images of codes with their channels last.

use std::ops::Range;

use super::depthwise::{self, Depthwise};
use super::direct::Direct;
use super::instructions::Dots;
#[cfg(target_arch = "x86_64")]
use super::interleaved::{self, Interleaved};
use super::positions::{inside, is_compact, position};
use super::product::{shifted_zero, Product, Rows};
use super::weights::{Matrix, Weights};
use super::{Codes, Out, SIGN};
use crate::conv_shape::Shape;
use crate::isa::Isa;
use crate::threads::Threads;

/// The packed weights of a convolution.
#[derive(Debug, Clone)]
pub struct Filter(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// One matrix `[kernel · C / groups, O / groups]` per group, and its number of rows per row of the kernel.
    Dense(Vec<Weights>, usize),
    /// One channel per group, with one output each.
    Depthwise(Depthwise),
    /// The same, for processors with VNNI.
    #[cfg(target_arch = "x86_64")]
    Interleaved(Interleaved),
}

impl Kind {
    #[cfg(target_arch = "x86_64")]
    fn depthwise(dots: Dots, weights: Depthwise, channels: usize, kernel: [usize; 2]) -> Kind {
        match Interleaved::new(dots, channels, kernel, &weights) {
            Some(weights) => Kind::Interleaved(weights),
            None => Kind::Depthwise(weights),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn depthwise(_: Dots, weights: Depthwise, _: usize, _: [usize; 2]) -> Kind {
        Kind::Depthwise(weights)
    }
}

/// The codes of a convolution's weights.
#[derive(Debug, Clone, Copy)]
pub struct Taps<'a> {
    /// The number of groups of channels and outputs.
    pub groups: usize,
    /// The outputs, over all groups.
    pub outputs: usize,
    /// The rows and columns of the window.
    pub kernel: [usize; 2],
    /// The bits of the codes, `[O, C / groups, kernel]`.
    pub bits: &'a [u8],
    /// Whether they are `i8`.
    pub signed: bool,
    /// The zero points: one for all outputs, or one per output.
    pub zeros: &'a [i32],
}

impl Filter {
    /// Packs weights.
    ///
    /// # Panics
    /// The sizes do not fit.
    pub fn new(isa: Isa, weights: &Taps) -> Filter {
        Filter::summed(isa, Dots::of(isa), weights)
    }

    /// Like [`new`](Filter::new), for specific instructions of a level.
    pub(super) fn summed(isa: Isa, dots: Dots, weights: &Taps) -> Filter {
        let &Taps { groups, outputs, kernel, bits: w, signed, zeros } = weights;
        assert!(groups > 0 && outputs.is_multiple_of(groups) && (zeros.len() == 1 || zeros.len() == outputs));
        let (depth, taps) = (w.len().checked_div(outputs).unwrap_or(0), kernel[0] * kernel[1]);
        assert!(w.len() == outputs * depth && (taps == 0 || depth.is_multiple_of(taps)), "the weights do not fit");
        if groups == outputs && groups > 1 && depth == taps && taps > 0 {
            return Filter(Kind::depthwise(dots, Depthwise::new(isa, taps, w, signed, zeros), groups, kernel));
        }
        let each = outputs / groups;
        let group = |g: usize| Matrix {
            bits: &w[g * each * depth..][..each * depth],
            signed,
            zeros: if zeros.len() == 1 { zeros } else { &zeros[g * each..][..each] },
            row: 0,
            column: depth,
        };
        let row = depth.checked_div(kernel[0]).unwrap_or(0);
        let dots = dots.for_depth(kernel[0], row);
        let dense = |row: usize| -> Vec<Weights> {
            (0..groups).map(|g| Filter::packed(dots, each, kernel, row, &group(g))).collect()
        };
        if groups == 1 && 2 * dots.padded(row) <= 3 * row {
            let weights = dense(dots.padded(row));
            if weights.iter().all(|weights| weights.zeros.is_empty()) {
                return Filter(Kind::Dense(weights, dots.padded(row)));
            }
        }
        Filter(Kind::Dense(dense(row), row))
    }

    /// Packs the matrix of a group of `outputs`, with `row` rows per row of the kernel. Rows beyond those of `matrix`
    /// are 0.
    fn packed(dots: Dots, outputs: usize, kernel: [usize; 2], row: usize, matrix: &Matrix) -> Weights {
        let channels = matrix.column.checked_div(kernel[0] * kernel[1]).unwrap_or(0);
        // the channels of a tap are contiguous, as in the image
        Weights::gather(dots, kernel[0] * row, outputs, matrix, |i| {
            let (i, at) = (i / row, i % row);
            (at < kernel[1] * channels).then(|| (at % channels * kernel[0] + i) * kernel[1] + at / channels)
        })
    }

    /// The name of the chosen form.
    pub fn form(&self) -> String {
        match &self.0 {
            Kind::Dense(groups, _) => format!("int8, {}", groups.first().map_or("empty", Weights::form)),
            Kind::Depthwise(_) => "int8, depthwise".to_string(),
            #[cfg(target_arch = "x86_64")]
            Kind::Interleaved(_) => "int8, depthwise, rows interleaved for VNNI".to_string(),
        }
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kind::Dense(groups, _) => groups.iter().map(Weights::bytes).sum(),
            Kind::Depthwise(weights) => weights.bytes(),
            #[cfg(target_arch = "x86_64")]
            Kind::Interleaved(weights) => weights.bytes(),
        }
    }
}

/// `sum[n, y, x, o] = bias[o] + Σ (w[o, c, i, j] − zero[o]) · (x[n, y·s + i·d − before, x·s + j·d − before, c] −
/// x.zero)`; outside the image, x is `x.zero`. Converts the sums as `out` specifies and writes them to `out` `[N, H',
/// W', O]`.
///
/// # Panics
/// The slices do not fit the shape.
pub fn conv(threads: &Threads, shape: &Shape, filter: &Filter, x: Codes, bias: Option<&[i32]>, mut out: Out) {
    check(shape, &x, bias, &out);
    if out.len() == 0 {
        return;
    }
    match &filter.0 {
        Kind::Depthwise(weights) => depthwise::conv(threads, shape, weights, x, bias, out),
        #[cfg(target_arch = "x86_64")]
        Kind::Interleaved(weights) if !is_compact(shape) => {
            depthwise::conv(threads, shape, weights.plain(), x, bias, out);
        }
        #[cfg(target_arch = "x86_64")]
        Kind::Interleaved(weights) => interleaved::conv(threads, shape, weights, x, bias, out),
        Kind::Dense(groups, row) => {
            assert_eq!(groups.len(), shape.groups, "{shape:?}");
            for (group, weights) in groups.iter().enumerate() {
                dense(threads, shape, group, (weights, *row), &x, bias, &mut out);
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

/// Computes one group, whose weights have `row` rows per row of the kernel.
fn dense(
    threads: &Threads,
    shape: &Shape,
    group: usize,
    (weights, row): (&Weights, usize),
    x: &Codes,
    bias: Option<&[i32]>,
    out: &mut Out,
) {
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
    let product = Product { m: shape.batch * shape.pixels(), b: weights, rows, out_row: shape.outputs };
    product.run(threads, shifted_zero(x), bias, out, group * outputs);
}

/// The input of the windows of a group: for each pixel, `[kernel, C / groups]` unsigned bytes. The rows of the kernel
/// are `row` bytes apart.
struct Patches<'a> {
    shape: &'a Shape,
    x: &'a Codes<'a>,
    group: usize,
    channels: usize,
    row: usize,
    /// The bytes per pixel, including padding.
    patch: usize,
}

impl Patches<'_> {
    /// Writes the patches of some pixels. Each is padded to `patch` bytes with arbitrary values.
    fn write(&self, pixels: Range<usize>, to: &mut [u8]) {
        let (shape, patch) = (self.shape, self.patch);
        let together = if shape.groups == 1 && shape.dilations[1] == 1 { inside(shape) } else { 0..0 };
        let (mut pixel, mut rows) = (pixels.start, vec![None; shape.kernel[0]]);
        while pixel < pixels.end {
            let (line, first) = (pixel / shape.output[1], pixel % shape.output[1]);
            let (image, y) = (line / shape.output[0], line % shape.output[0]);
            for (i, row) in rows.iter_mut().enumerate() {
                *row = position(shape, 0, y, i).map(|y| image * shape.input[0] + y);
            }
            let end = shape.output[1].min(first + pixels.end - pixel);
            for x in first..end {
                let start = (pixel + x - first - pixels.start) * patch;
                self.write_patch(&rows, x, together.contains(&x), to, start);
            }
            pixel += end - first;
        }
        if self.x.signed {
            to.iter_mut().for_each(|to| *to ^= SIGN);
        }
    }

    /// Writes the patch of output column `x`, with these rows of the images. If `together`, each row is one contiguous
    /// piece.
    #[inline(always)]
    fn write_patch(&self, rows: &[Option<usize>], x: usize, together: bool, to: &mut [u8], start: usize) {
        let (shape, row) = (self.shape, self.shape.kernel[1] * self.channels);
        for (i, y) in rows.iter().enumerate() {
            let start = start + i * self.row;
            match y {
                Some(y) if together => {
                    let first = (x * shape.strides[1]).wrapping_add_signed(-shape.before[1]);
                    copy(&self.x.bits[(y * shape.input[1] + first) * self.channels..], to, start, row);
                }
                Some(y) => self.write_row(*y, x, &mut to[start..start + row]),
                None => to[start..start + row].fill(self.x.zero as u8),
            }
        }
    }

    /// Writes one row of a window for output column `x`, from the image's row `y`, counted over all images.
    fn write_row(&self, y: usize, x: usize, to: &mut [u8]) {
        let shape = self.shape;
        for (j, to) in to.chunks_exact_mut(self.channels.max(1)).enumerate() {
            match position(shape, 1, x, j) {
                Some(x) => {
                    let at = (y * shape.input[1] + x) * shape.channels + self.group * self.channels;
                    to.copy_from_slice(&self.x.bits[at..at + self.channels]);
                }
                None => to.fill(self.x.zero as u8),
            }
        }
    }
}

/// Copies the first `len` bytes of `from` to `to[start ..]`. If both are long enough, it copies a fixed size instead,
/// which avoids a call; the bytes overwritten beyond `len` are written later.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8], start: usize, len: usize) {
    let to = &mut to[start..];
    match len {
        0..=16 if copy_chunk::<16>(from, to) => {}
        17..=32 if copy_chunk::<32>(from, to) => {}
        _ => to[..len].copy_from_slice(&from[..len]),
    }
}

/// Copies `N` bytes if both slices are long enough.
#[inline(always)]
fn copy_chunk<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    match (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        (Some(from), Some(to)) => *to = *from,
        _ => return false,
    }
    true
}
