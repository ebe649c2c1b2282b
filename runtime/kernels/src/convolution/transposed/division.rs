//! The planner of transposed convolutions: divides one into plain convolutions, each in its fastest form.

use super::super::planner::{self, Candidate};
use super::part::Part;
use crate::alternative::Alternative;
use crate::blocking::Blocking;
use crate::conv_form::{ConvCase, ImageLayout};
use crate::gemm::UNIT;

/// The cost of moving a vector of a phase's result to its place in the output, in multiply-adds of a vector.
const MOVE: f64 = 4.0;
/// The cost of reading a vector of the image, for each convolution.
const READ: f64 = 4.0;
/// The cost of starting a convolution.
const START: f64 = 500.0;
/// The most phases that are computed separately.
const MOST: usize = 64;

/// A way to divide a transposed convolution.
pub(super) struct Division {
    /// Whether one convolution computes several phases.
    pub is_merged: bool,
    /// The layouts of the image and of the result.
    pub layouts: [ImageLayout; 2],
    /// Whether the step converts the image from rows, and the result to rows.
    pub converts: bool,
    pub parts: Vec<Part>,
    /// The convolution of each part, and its form.
    pub forms: Vec<(ConvCase, Candidate)>,
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
            true => parts.iter().any(|part| part.phases() > 1) && (result == ImageLayout::Rows || has_blocks),
            false => parts.len() <= MOST,
        };
        if !makes_sense {
            return None;
        }
        let form = |part: &Part| {
            let case = ConvCase::new(blocking, &part.shape(shape), case.may_transform);
            planner::fastest(&case, result).map(|form| (case, form))
        };
        let forms = parts.iter().map(form).collect::<Option<Vec<_>>>()?;
        let image = forms.first().map_or(ImageLayout::Rows, |(_, form)| form.image());
        if forms.iter().any(|(_, form)| form.image() != image) {
            return None;
        }
        let layouts = [image, result];
        let vectors = (shape.channels * shape.input[0] * shape.input[1]) as f64 / UNIT;
        let reads = forms.len() as f64 * (START + READ * vectors);
        let moving = if converts { planner::moving(layouts, case) } else { 0.0 };
        let beside = moving + reads + moves(case, result);
        Some(Division { is_merged, layouts, converts, parts, forms, beside })
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

    /// The fastest division for a result in this layout; `None` if there is none.
    pub fn fastest(case: &ConvCase, result: ImageLayout) -> Option<Division> {
        Division::all(case, result).min_by(|a, b| a.time().total_cmp(&b.time()))
    }

    /// The name of the form: the number of convolutions, and their forms.
    pub fn name(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (_, form) in &self.forms {
            let name = form.name();
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

    /// The time for one image, in multiply-adds of a vector.
    fn time(&self) -> f64 {
        self.beside + self.forms.iter().map(|(_, form)| form.time()).sum::<f64>()
    }

    /// The time that blocks save for one image compared with images in rows, if the forms state it.
    fn saving(&self, case: &ConvCase) -> Option<f64> {
        if self.converts || self.layouts[1] == ImageLayout::Rows || self.forms.is_empty() {
            return None;
        }
        let saved = self.forms.iter().map(|(case, form)| form.saving(case)).sum::<Option<f64>>()?;
        let [rows, blocks] = [ImageLayout::Rows, ImageLayout::Blocks].map(|result| moves(case, result));
        Some(saved + rows - blocks)
    }
}

/// The channels of a pixel: one in rows, those of a block in blocks.
pub(super) fn lanes(blocking: Blocking, layout: ImageLayout) -> usize {
    match layout {
        ImageLayout::Rows => 1,
        ImageLayout::Blocks => blocking.block(),
    }
}

/// The time to move the results of all phases to their places.
fn moves(case: &ConvCase, result: ImageLayout) -> f64 {
    let shape = &case.shape;
    let vectors = match result {
        _ if shape.strides == [1, 1] => 0.0,
        ImageLayout::Rows => shape.outputs as f64 / UNIT,
        ImageLayout::Blocks => case.vectors(shape.outputs),
    };
    vectors * shape.pixels() as f64 * MOVE
}

/// See [`image_for_blocks`](super::super::image_for_blocks).
pub(in super::super) fn image_for_blocks(case: &ConvCase) -> Option<ImageLayout> {
    Division::fastest(case, ImageLayout::Blocks).map(|division| division.layouts[0])
}

/// Returns every division, for images in rows and for results in blocks. Of divisions with one name, it returns the
/// fastest.
pub(in super::super) fn alternatives(case: &ConvCase) -> Vec<Alternative> {
    let mut listed: Vec<Alternative> = Vec::new();
    for each in [ImageLayout::Rows, ImageLayout::Blocks].into_iter().flat_map(|result| Division::all(case, result)) {
        let in_blocks = each.layouts[1] == ImageLayout::Blocks && !each.converts;
        let each = Alternative { form: each.name(), in_blocks, time: each.time(), saving: each.saving(case) };
        match listed.iter_mut().find(|other| other.form == each.form && other.in_blocks == each.in_blocks) {
            Some(other) if each.time < other.time => *other = each,
            Some(_) => {}
            None => listed.push(each),
        }
    }
    listed
}

/// See [`times`](super::super::times); for one image.
pub(in super::super) fn times(case: &ConvCase) -> Option<[f64; 2]> {
    let [rows, blocks] = [ImageLayout::Rows, ImageLayout::Blocks].map(|result| Division::fastest(case, result));
    let (rows, blocks) = (rows?.time(), blocks?);
    let stated = blocks.saving(case).map_or(rows, |saving| blocks.time() + saving);
    Some([rows.min(stated), blocks.time()])
}
