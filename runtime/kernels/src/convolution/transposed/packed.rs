//! Packed transposed convolutions.

use super::part::Part;
use super::places::Places;
use crate::blocking::Blocking;
use crate::buffer::is_cached;
use crate::conv_shape::Shape;
use crate::convolution::form::{ConvOperands, Epilogue, PackedConv};
use crate::gemm::Finish;
use crate::scratch::Scratch;
use crate::threads::Threads;
use crate::vector::Vector;

/// Elements of results that are computed before they are moved. A larger batch is computed in pieces.
const BUDGET: usize = 1 << 18;

/// The packed weights of a transposed convolution.
#[derive(Debug)]
pub(super) struct Transposed {
    /// The channels of a pixel of the image and of the result.
    pub lanes: [usize; 2],
    /// Whether one convolution computes several residues.
    pub is_merged: bool,
    /// The weights of each [`Part`].
    pub parts: Vec<Box<dyn PackedConv>>,
}

impl Transposed {
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
        let results = scratch.overwrite(shape.batch * self.results(shape, parts), |mut rest| {
            for (part, packed) in parts.iter().zip(&self.parts) {
                let out = rest.split_off_mut(..shape.batch * planes * lanes * part.pixels(shape)).unwrap_or_default();
                let merged = bias.filter(|_| part.residues() > 1).map(|bias| part.bias(shape, bias));
                let (bias, shape) = (merged.as_deref().or(bias), &part.shape(shape).row_oriented());
                let epilogue = Epilogue { limits: epilogue.limits, ..Epilogue::NONE };
                packed.run(threads, ConvOperands { shape, bias, x, out, epilogue });
            }
        });
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

    fn scratch(&self, shape: &Shape) -> Option<usize> {
        let parts = self.all_parts(shape);
        if !is_cached::<[Part; 2]>(parts.len()) {
            return None;
        }
        let batch = if shape.strides == [1, 1] { shape.batch } else { self.together(shape, &parts) };
        let shape = &Shape { batch, ..shape.clone() };
        let within = parts.iter().zip(&self.parts).map(|(part, packed)| {
            let shape = &part.shape(shape).row_oriented();
            let is_counted = part.residues() > 1 && !is_cached::<f32>(shape.outputs);
            Some(packed.scratch(shape)?.saturating_add(if is_counted { shape.outputs } else { 0 }))
        });
        let within = within.reduce(|most, one| Some(most?.max(one?))).unwrap_or(Some(0))?;
        let results = if shape.strides == [1, 1] { 0 } else { batch.saturating_mul(self.results(shape, &parts)) };
        Some(results.saturating_add(within))
    }
}
