//! The planner of transposed convolutions: divides one into plain convolutions, each in its fastest form.

use super::super::candidate::Candidate;
use super::super::planner;
use super::super::within_step::WithinStep;
use super::packed::Transposed;
use super::part::Part;
use crate::blocking::Blocking;
use crate::buffer::{collected, with_capacity};
use crate::convolution::form::{ConvCase, ImageLayout, PackedConv};
use crate::gemm::UNIT;

/// The cost of moving a vector of a residue's result to its place in the output, in multiply-adds of a vector.
const MOVE: f64 = 4.0;
/// The cost of reading a vector of the image, for each convolution.
const READ: f64 = 4.0;
/// The cost of starting a convolution.
const START: f64 = 500.0;
/// The most residues that are computed separately.
const MOST: usize = 64;

/// A way to divide a transposed convolution.
#[derive(Debug)]
pub(super) struct Division {
    case: ConvCase,
    /// Whether one convolution computes several residues.
    pub is_merged: bool,
    /// The layouts of the image and of the result.
    layouts: [ImageLayout; 2],
    /// Whether the step converts the image from rows, and the result to rows.
    converts: bool,
    parts: Vec<Part>,
    /// The form of each part.
    forms: Vec<Box<dyn Candidate>>,
    /// The time of the conversions, the moves of the results, and the reads of the image.
    beside: f64,
}

impl Division {
    /// Returns `None` if no form can compute a part with its result in this layout, if the parts read different layouts,
    /// or if the division makes no sense.
    fn new(case: &ConvCase, result: ImageLayout, is_merged: bool, converts: bool) -> Option<Division> {
        let (shape, blocking) = (&case.shape, case.blocking);
        let parts = Part::all(shape, is_merged, lanes(blocking, result));
        let has_blocks = shape.groups == 1 || (shape.outputs / shape.groups).is_multiple_of(blocking.block());
        let makes_sense = match is_merged {
            true => parts.iter().any(|part| part.residues() > 1) && (result == ImageLayout::Rows || has_blocks),
            false => parts.len() <= MOST,
        };
        if !makes_sense {
            return None;
        }
        let form = |part: &Part| {
            planner::fastest_form(&ConvCase::new(blocking, &part.shape(shape), case.may_transform), result)
        };
        let mut forms = with_capacity(parts.len());
        for part in &parts {
            forms.push(form(part)?);
        }
        let image = forms.first().map_or(ImageLayout::Rows, |form| form.layouts()[0]);
        if forms.iter().any(|form| form.layouts()[0] != image) {
            return None;
        }
        let layouts = [image, result];
        let vectors = (shape.channels * shape.input[0] * shape.input[1]) as f64 / UNIT;
        let reads = forms.len() as f64 * (START + READ * vectors);
        let moving = if converts { planner::moving(layouts, case) } else { 0.0 };
        let beside = moving + reads + moves(case, result);
        Some(Division { case: case.clone(), is_merged, layouts, converts, parts, forms, beside })
    }

    /// Every way to divide a transposed convolution for a result in this layout.
    pub fn all(case: &ConvCase, result: ImageLayout) -> impl Iterator<Item = Division> + '_ {
        let converts =
            result == ImageLayout::Rows && case.shape.strides != [1, 1] && case.shape.outputs >= case.blocking.block();
        let layouts = [(result, false)].into_iter().chain(converts.then_some((ImageLayout::Blocks, true)));
        layouts.flat_map(move |(own, converts)| {
            [true, false].into_iter().filter_map(move |is_merged| Division::new(case, own, is_merged, converts))
        })
    }
}

impl Candidate for Division {
    /// The number of convolutions, and their forms.
    fn name(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for name in self.forms.iter().map(|form| form.name()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let count = match self.forms.len() {
            1 => "one convolution".to_string(),
            count => format!("{count} convolutions"),
        };
        format!("{count}: {}{}", names.join("; "), if self.converts { " within the step" } else { "" })
    }

    fn layouts(&self) -> [ImageLayout; 2] {
        if self.converts {
            [ImageLayout::Rows; 2]
        } else {
            self.layouts
        }
    }

    fn time(&self) -> f64 {
        self.beside + self.forms.iter().map(|form| form.time()).sum::<f64>()
    }

    fn saving(&self) -> Option<f64> {
        if self.converts || self.layouts[1] == ImageLayout::Rows || self.forms.is_empty() {
            return None;
        }
        let saved = self.forms.iter().map(|form| form.saving()).sum::<Option<f64>>()?;
        let [rows, blocks] = [ImageLayout::Rows, ImageLayout::Blocks].map(|result| moves(&self.case, result));
        Some(saved + rows - blocks)
    }

    fn pack(&self, w: &[f32]) -> Box<dyn PackedConv> {
        let (shape, [kh, kw]) = (&self.case.shape, self.case.shape.kernel);
        assert_eq!(w.len(), shape.channels * (shape.outputs / shape.groups) * kh * kw, "{shape:?}");
        let weights = self.parts.iter().map(|part| part.weights(shape, w));
        let parts = collected(weights.zip(&self.forms).map(|(w, form)| form.pack(&w)));
        let lanes = self.layouts.map(|layout| lanes(self.case.blocking, layout));
        let packed = Box::new(Transposed { lanes, is_merged: self.is_merged, parts });
        if self.converts {
            WithinStep::boxed(self.case.blocking, self.layouts, packed)
        } else {
            packed
        }
    }
}

/// Returns every division for a result in this layout.
pub(in super::super) fn candidates(case: &ConvCase, result: ImageLayout) -> Vec<Box<dyn Candidate>> {
    Division::all(case, result).map(|division| -> Box<dyn Candidate> { Box::new(division) }).collect()
}

/// The channels of a pixel: one in rows, those of a block in blocks.
pub(super) fn lanes(blocking: Blocking, layout: ImageLayout) -> usize {
    match layout {
        ImageLayout::Rows => 1,
        ImageLayout::Blocks => blocking.block(),
    }
}

/// The time to move the results of all residues to their places.
fn moves(case: &ConvCase, result: ImageLayout) -> f64 {
    let shape = &case.shape;
    let vectors = match result {
        _ if shape.strides == [1, 1] => 0.0,
        ImageLayout::Rows => shape.outputs as f64 / UNIT,
        ImageLayout::Blocks => case.vectors(shape.outputs),
    };
    vectors * shape.pixels() as f64 * MOVE
}
