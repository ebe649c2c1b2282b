//! Transposed convolutions. Each phase of the output (its position modulo the stride) is a plain convolution.
//!
//! Output `y` uses tap `i` with input row `(y + before − i·d) / s` if that is an integer. With
//! `r = (y + before) mod s`, these are the taps with `(i·d) mod s = r`: every `s / gcd(s, d)`-th tap, with input rows
//! `d / gcd(s, d)` apart. The outputs of one phase are therefore a convolution with stride 1 over the input, with the
//! taps in reverse. One convolution can compute several phases, as more outputs. Each convolution has the form that the
//! planner of plain convolutions chooses. Their results are moved to their places in the output. Outputs of phases
//! without taps equal the bias.

mod division;
mod part;
mod places;
mod taps;

#[cfg(test)]
mod tests;

pub(super) use division::{alternatives, image_for_blocks, times};

use division::Division;
use part::Part;
use places::Places;
use taps::Taps;

use super::planner::Candidate;
use crate::blocking::Blocking;
use crate::buffer::{collected, CACHED};
use crate::conv_form::{ConvCase, ConvOperands, Epilogue, ImageLayout, PackedConv};
use crate::conv_shape::Shape;
use crate::gemm::Finish;
use crate::scratch::Scratch;
use crate::threads::Threads;
use crate::vector::Vector;

/// Elements of results that are computed before they are moved. A larger batch is computed in pieces.
const BUDGET: usize = 1 << 18;

impl Shape {
    /// [`Shape::fits`] for the largest plain convolution of a transposed one.
    pub fn fits_transposed(&self) -> bool {
        let [Some(y), Some(x)] = [0, 1].map(|axis| Taps::all(self, axis).next()) else { return true };
        // The phases of a merged convolution begin at most `dilation` input rows apart.
        let largest =
            |axis: usize, taps: Taps| self.output[axis].div_ceil(self.strides[axis]).checked_add(taps.dilation);
        let (Some(height), Some(width)) = (largest(0, y), largest(1, x)) else { return false };
        let largest = Shape {
            output: [height, width],
            kernel: [y.count, x.count],
            strides: [1, 1],
            dilations: [y.dilation, x.dilation],
            ..self.clone()
        };
        largest.fits()
    }
}

/// Packs `w` `[C, O / groups, kernel…]` for a result in this layout. Returns the name of the form, too.
///
/// # Panics
/// `w` does not have this shape, or no form has its result in this layout.
pub(super) fn pack(case: &ConvCase, result: ImageLayout, w: &[f32]) -> (String, Box<dyn PackedConv>) {
    let Some(division) = Division::fastest(case, result) else { panic!("no form for {case:?}") };
    (division.name(), division.pack(case, w))
}

/// The packed weights of a transposed convolution.
#[derive(Debug)]
struct Transposed {
    /// The channels of a pixel of the image and of the result.
    lanes: [usize; 2],
    /// Whether one convolution computes several phases.
    is_merged: bool,
    /// The weights of each [`Part`].
    parts: Vec<Box<dyn PackedConv>>,
}

/// The channels of a pixel: one in rows, those of a block in blocks.
fn lanes(blocking: Blocking, layout: ImageLayout) -> usize {
    match layout {
        ImageLayout::Rows => 1,
        ImageLayout::Blocks => blocking.block(),
    }
}

impl Transposed {
    fn new(case: &ConvCase, division: &Division, w: &[f32]) -> Transposed {
        let (shape, [kh, kw]) = (&case.shape, case.shape.kernel);
        assert_eq!(w.len(), shape.channels * (shape.outputs / shape.groups) * kh * kw, "{shape:?}");
        let pack = |(part, (own, form)): (&Part, &(ConvCase, Candidate))| form.pack(own, &part.weights(shape, w));
        let parts = collected(division.parts.iter().zip(&division.forms).map(pack));
        let lanes = division.layouts.map(|layout| lanes(case.blocking, layout));
        Transposed { lanes, is_merged: division.is_merged, parts }
    }

    /// The convolutions, in the order of their weights.
    fn all_parts(&self, shape: &Shape) -> Vec<Part> {
        Part::all(shape, self.is_merged, self.lanes[1])
    }

    /// The elements of the results of all parts for one image.
    fn results(&self, shape: &Shape, parts: &[Part]) -> usize {
        shape.outputs.next_multiple_of(self.lanes[1]) * parts.iter().map(|part| part.pixels(shape)).sum::<usize>()
    }

    /// The number of images that are computed together.
    fn together(&self, shape: &Shape, parts: &[Part]) -> usize {
        (BUDGET / self.results(shape, parts).max(1)).clamp(1, shape.batch.max(1))
    }

    /// Computes some images.
    fn images(&self, threads: &Threads, parts: &[Part], operands: ConvOperands, scratch: &mut Scratch<f32>) {
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        let (lanes, planes) = (self.lanes[1], shape.outputs.div_ceil(self.lanes[1]));
        let results = scratch.alloc_uninit(shape.batch * self.results(shape, parts));
        let mut rest = &mut results[..];
        for (part, packed) in parts.iter().zip(&self.parts) {
            let out = rest.split_off_mut(..shape.batch * planes * lanes * part.pixels(shape)).unwrap_or_default();
            let merged = bias.filter(|_| part.phases() > 1).map(|bias| part.bias(shape, bias));
            let (bias, shape) = (merged.as_deref().or(bias), &part.shape(shape).row_oriented());
            let epilogue = Epilogue { limits: epilogue.limits, ..Epilogue::NONE };
            packed.run(threads, ConvOperands { shape, bias, x, out, epilogue });
        }
        let places = Places::new(shape, parts, planes);
        let value = |output: usize| {
            let bias = bias.and_then(|bias| bias.get(output).copied());
            bias.unwrap_or(0.0).within(epilogue.limits)
        };
        match lanes {
            1 => places.run::<1>(threads, results, value, out, epilogue.finish),
            Blocking::MOST => places.run::<{ Blocking::MOST }>(threads, results, value, out, epilogue.finish),
            _ => places.run::<8>(threads, results, value, out, epilogue.finish),
        }
    }
}

/// The strides, dilations and `before` of the shape refer to the output.
impl PackedConv for Transposed {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        assert_eq!(shape.lengths(self.lanes), Some([x.len(), out.len()]), "{shape:?}");
        assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "{shape:?}");
        if out.is_empty() {
            return;
        }
        let [image, result] = [x.len(), out.len()].map(|length| length / shape.batch);
        let parts = self.all_parts(shape);
        assert_eq!(parts.len(), self.parts.len(), "{shape:?}");
        if let (Some(part), [1, 1]) = (parts.first(), shape.strides) {
            let shape = &part.shape(shape).row_oriented();
            return self.parts[0].run(threads, ConvOperands { shape, bias, x, out, epilogue });
        }
        let (together, mut scratch) = (self.together(shape, &parts), Scratch::new());
        for first in (0..shape.batch).step_by(together) {
            let (start, batch) = (first * result, together.min(shape.batch - first));
            let finish =
                epilogue.finish.map(|finish| move |run: &mut [f32], offset: usize| finish(run, start + offset));
            let operands = ConvOperands {
                shape: &Shape { batch, ..shape.clone() },
                bias,
                x: &x[first * image..][..batch * image],
                out: &mut out[start..][..batch * result],
                epilogue: Epilogue { finish: finish.as_ref().map(|finish| finish as Finish), ..epilogue },
            };
            self.images(threads, &parts, operands, &mut scratch);
        }
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    fn scratch(&self, shape: &Shape) -> usize {
        let parts = self.all_parts(shape);
        let batch = if shape.strides == [1, 1] { shape.batch } else { self.together(shape, &parts) };
        let shape = &Shape { batch, ..shape.clone() };
        let within = parts.iter().zip(&self.parts).map(|(part, packed)| {
            let shape = &part.shape(shape);
            let is_counted = part.phases() > 1 && shape.outputs > CACHED / size_of::<f32>();
            packed.scratch(shape).saturating_add(if is_counted { shape.outputs } else { 0 })
        });
        let results = if shape.strides == [1, 1] { 0 } else { batch.saturating_mul(self.results(shape, &parts)) };
        results.saturating_add(within.max().unwrap_or(0))
    }
}
