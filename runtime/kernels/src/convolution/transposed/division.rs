//! The planner of transposed convolutions: divides one into plain convolutions, each in its fastest form.

use super::super::planner::{self, Alternative, Candidate};
use super::part::Part;
use crate::blocked::BLOCK;
use crate::conv_form::{ConvCase, ImageLayout};
use crate::conv_shape::Shape;

/// The cost of moving a vector of a phase's result to its place in the output, in rows and in blocks, in multiply-adds
/// of a vector.
const MOVE: [f64; 2] = [8.0, 6.0];
/// The most phases that are computed separately.
const MOST: usize = 64;

/// A way to divide a transposed convolution.
pub(super) struct Division {
    /// Whether one convolution computes several phases.
    pub is_merged: bool,
    result: ImageLayout,
    pub parts: Vec<Part>,
    /// The convolution of each part, and its form.
    pub forms: Vec<(ConvCase, Candidate)>,
    /// The time of the moves.
    moves: f64,
}

impl Division {
    /// Returns `None` if no form can compute a part with its result in this layout, if the parts read different layouts,
    /// or if the division makes no sense.
    fn new(case: &ConvCase, result: ImageLayout, is_merged: bool) -> Option<Division> {
        let (shape, parts) = (&case.shape, Part::all(&case.shape, is_merged));
        let has_merged = parts.iter().any(|part| part.phases() > 1);
        let has_blocks = shape.groups == 1 || (shape.outputs / shape.groups).is_multiple_of(BLOCK);
        let makes_sense = match is_merged {
            true => has_merged && (result == ImageLayout::Rows || has_blocks),
            false => parts.len() <= MOST,
        };
        if !makes_sense {
            return None;
        }
        let form = |part: &Part| {
            let case = ConvCase::new(case.isa, &part.shape(shape, result), case.may_transform);
            planner::fastest(&case, result).map(|form| (case, form))
        };
        let forms = parts.iter().map(form).collect::<Option<Vec<_>>>()?;
        let is_uniform = forms.windows(2).all(|pair| pair[0].1.image() == pair[1].1.image());
        is_uniform.then(|| Division { is_merged, result, parts, forms, moves: moves(shape, result) })
    }

    /// The layouts of the image and of the result.
    pub fn layouts(&self) -> [ImageLayout; 2] {
        let image = self.forms.first().map_or(ImageLayout::Rows, |(_, form)| form.image());
        [image, self.result]
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
        match self.forms.len() {
            1 => format!("one convolution: {}", names.join("; ")),
            count => format!("{count} convolutions: {}", names.join("; ")),
        }
    }

    /// The time for one image, in multiply-adds of a vector.
    fn time(&self) -> f64 {
        self.moves + self.forms.iter().map(|(_, form)| form.time()).sum::<f64>()
    }

    /// The time that the forms save for one image compared with images in rows, if they state it.
    fn saving(&self, case: &ConvCase) -> Option<f64> {
        if self.result == ImageLayout::Rows || self.forms.is_empty() {
            return None;
        }
        let saved = self.forms.iter().map(|(case, form)| form.saving(case)).sum::<Option<f64>>();
        saved.map(|saved| saved + moves(&case.shape, ImageLayout::Rows) - self.moves)
    }
}

/// The time to move the results of all phases to their places.
fn moves(shape: &Shape, result: ImageLayout) -> f64 {
    let vectors = match result {
        _ if shape.strides == [1, 1] => 0.0,
        ImageLayout::Rows => shape.outputs as f64 * shape.pixels() as f64 / BLOCK as f64,
        ImageLayout::Blocks => shape.outputs.div_ceil(BLOCK) as f64 * shape.pixels() as f64,
    };
    vectors * MOVE[usize::from(result == ImageLayout::Blocks)]
}

/// Returns every way to divide a transposed convolution for a result in this layout.
pub(super) fn divisions(case: &ConvCase, result: ImageLayout) -> impl Iterator<Item = Division> + '_ {
    [false, true].into_iter().filter_map(move |is_merged| Division::new(case, result, is_merged))
}

/// Returns the fastest division for a result in this layout; `None` if there is none.
pub(super) fn fastest(case: &ConvCase, result: ImageLayout) -> Option<Division> {
    divisions(case, result).min_by(|a, b| a.time().total_cmp(&b.time()))
}

/// See [`image_for_blocks`](super::super::image_for_blocks).
pub(in super::super) fn image_for_blocks(case: &ConvCase) -> Option<ImageLayout> {
    fastest(case, ImageLayout::Blocks).map(|division| division.layouts()[0])
}

/// Returns every division, for images in rows and for results in blocks.
pub(in super::super) fn alternatives(case: &ConvCase) -> Vec<Alternative> {
    let all = [ImageLayout::Rows, ImageLayout::Blocks].into_iter().flat_map(|result| divisions(case, result));
    let listed = all.map(|each| Alternative {
        form: each.name(),
        in_blocks: each.result == ImageLayout::Blocks,
        time: each.time(),
        saving: each.saving(case),
    });
    listed.collect()
}

/// The time that blocks of channels save for one image.
pub(in super::super) fn gain(case: &ConvCase) -> f64 {
    let [rows, blocks] = [ImageLayout::Rows, ImageLayout::Blocks].map(|result| fastest(case, result));
    let Some((rows, blocks)) = rows.zip(blocks) else { return 0.0 };
    blocks.saving(case).unwrap_or(rows.time() - blocks.time())
}
