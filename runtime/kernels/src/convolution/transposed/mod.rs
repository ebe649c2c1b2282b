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

pub(super) use division::{alternatives, gain, image_for_blocks};

use division::Division;
use part::Part;
use places::Places;
use taps::Taps;

use super::planner::Candidate;
use crate::blocked::BLOCK;
use crate::buffer::{collected, CACHED};
use crate::conv_form::{ConvCase, ConvOperands, Epilogue, ImageLayout, PackedConv};
use crate::conv_shape::Shape;
use crate::gemm::Finish;
use crate::isa::Isa;
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
    isa: Isa,
    layouts: [ImageLayout; 2],
    /// Whether one convolution computes several phases.
    is_merged: bool,
    /// The weights of each [`Part`].
    parts: Vec<Box<dyn PackedConv>>,
}

/// The planes of an image, and the elements of their pixels.
fn planes(layout: ImageLayout, channels: usize) -> [usize; 2] {
    match layout {
        ImageLayout::Rows => [channels, 1],
        ImageLayout::Blocks => [channels.div_ceil(BLOCK), BLOCK],
    }
}

impl Transposed {
    fn new(case: &ConvCase, division: &Division, w: &[f32]) -> Transposed {
        let (shape, layouts) = (&case.shape, division.layouts);
        let [kh, kw] = shape.kernel;
        assert_eq!(w.len(), shape.channels * (shape.outputs / shape.groups) * kh * kw, "{shape:?}");
        let pack =
            |(part, (own, form)): (&Part, &(ConvCase, Candidate))| form.pack(own, &part.weights(shape, layouts[1], w));
        let parts = collected(division.parts.iter().zip(&division.forms).map(pack));
        Transposed { isa: case.isa, layouts, is_merged: division.is_merged, parts }
    }

    /// The elements of one image and of one result.
    fn sizes(&self, shape: &Shape) -> [usize; 2] {
        let sides = [(shape.channels, shape.input), (shape.outputs, shape.output)];
        std::array::from_fn(|i| {
            let (channels, [height, width]) = sides[i];
            planes(self.layouts[i], channels).into_iter().product::<usize>() * height * width
        })
    }

    /// The elements of the results of all parts for one image.
    fn results(&self, shape: &Shape, parts: &[Part]) -> usize {
        let [planes, lanes] = planes(self.layouts[1], shape.outputs);
        planes * lanes * parts.iter().map(|part| part.pixels(shape)).sum::<usize>()
    }

    /// The number of images that are computed together.
    fn together(&self, shape: &Shape, parts: &[Part]) -> usize {
        (BUDGET / self.results(shape, parts).max(1)).clamp(1, shape.batch.max(1))
    }

    /// Computes some images.
    fn images(&self, threads: &Threads, parts: &[Part], operands: ConvOperands, scratch: &mut Scratch<f32>) {
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        let result = self.layouts[1];
        let [planes, lanes] = planes(result, shape.outputs);
        let results = scratch.alloc_uninit(shape.batch * self.results(shape, parts));
        let mut rest = &mut results[..];
        for (part, packed) in parts.iter().zip(&self.parts) {
            let out = rest.split_off_mut(..shape.batch * planes * lanes * part.pixels(shape)).unwrap_or_default();
            let merged = bias.filter(|_| part.phases() > 1).map(|bias| part.bias(shape, result, bias));
            let (bias, shape) = (merged.as_deref().or(bias), &part.shape(shape, result).row_oriented());
            let epilogue = Epilogue { limits: epilogue.limits, ..Epilogue::NONE };
            packed.run(threads, ConvOperands { shape, bias, x, out, epilogue });
        }
        let places = Places::new(shape, parts, result, planes);
        let value = |output: usize| bias.and_then(|bias| bias.get(output)).map_or(0.0, |x| x.within(epilogue.limits));
        match result {
            ImageLayout::Rows => places.run(threads, results, |plane| value(plane % planes), out, epilogue.finish),
            ImageLayout::Blocks => {
                let block = |plane: usize| std::array::from_fn(|lane| value(plane % planes * BLOCK + lane));
                let (results, out) = (bytemuck::cast_slice(results), bytemuck::cast_slice_mut(out));
                places.run::<[f32; BLOCK]>(threads, results, block, out, epilogue.finish);
            }
        }
    }
}

/// The strides, dilations and `before` of the shape refer to the output.
impl PackedConv for Transposed {
    fn run(&self, threads: &Threads, operands: ConvOperands) {
        let ConvOperands { shape, bias, x, out, epilogue } = operands;
        let [image, result] = self.sizes(shape);
        assert_eq!([x.len(), out.len()], [image, result].map(|size| shape.batch * size), "{shape:?}");
        assert!(bias.is_none_or(|bias| bias.len() == shape.outputs), "{shape:?}");
        if out.is_empty() {
            return;
        }
        let parts = Part::all(shape, self.is_merged);
        assert_eq!(parts.len(), self.parts.len(), "{shape:?}");
        if let (Some(part), [1, 1]) = (parts.first(), shape.strides) {
            let shape = &part.shape(shape, self.layouts[1]).row_oriented();
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
        let parts = Part::all(shape, self.is_merged);
        let batch = if shape.strides == [1, 1] { shape.batch } else { self.together(shape, &parts) };
        let shape = &Shape { batch, ..shape.clone() };
        let within = parts.iter().zip(&self.parts).map(|(part, packed)| {
            let shape = &part.shape(shape, self.layouts[1]);
            let is_counted = part.phases() > 1 && shape.outputs > CACHED / size_of::<f32>();
            packed.scratch(shape).saturating_add(if is_counted { shape.outputs } else { 0 })
        });
        let results = if shape.strides == [1, 1] { 0 } else { batch.saturating_mul(self.results(shape, &parts)) };
        results.saturating_add(within.max().unwrap_or(0))
    }

    fn isa(&self) -> Isa {
        self.isa
    }
}
