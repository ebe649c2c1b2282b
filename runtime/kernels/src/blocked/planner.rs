//! The planner of convolutions: lists every form with its time, and chooses the fastest.

use super::cost::{direct, products, winograd};
use super::depthwise::DepthwiseFilter;
use super::filter::Filter;
use super::form::Form;
use super::BLOCK;
use crate::conv_shape::Shape;
use crate::gemm::tiles::Tiles;
use crate::isa::Isa;

/// The cost of moving a vector between `[N, C, H, W]` and blocks, in multiply-adds of a vector.
pub const REORDER: f64 = 15.0;
/// The time that blocks save per tap of a depthwise convolution, relative to the tap's time in blocks. Blocks need no
/// shuffles.
const DEPTHWISE: f64 = 2.0;
/// The time of a multiply-add in a tile of `r` rows of pixels, relative to blocks: `ALL + FEW / r`. With few rows, the
/// processor waits for the elements that each multiply-add reads.
const ALL: f64 = 0.85;
const FEW: f64 = 3.0;
/// The cost of copying a row with its padding, in multiply-adds of a vector: per row, and per vector of it.
const COPY: [f64; 2] = [60.0, 6.0];

/// A form in blocks of channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BlockForm {
    Depthwise,
    /// The image is `[N, C, H, W]`, with too few channels to fill a block.
    FromRows,
    Direct,
    Winograd(Form),
}

impl BlockForm {
    /// The table of forms, the simplest first.
    const ALL: [BlockForm; 6] = [
        BlockForm::Depthwise,
        BlockForm::FromRows,
        BlockForm::Direct,
        BlockForm::Winograd(Form::ALL[0]),
        BlockForm::Winograd(Form::ALL[1]),
        BlockForm::Winograd(Form::ALL[2]),
    ];

    /// Whether the form can compute a convolution.
    fn fits(self, shape: &Shape) -> bool {
        let is_depthwise = shape.groups > 1 && DepthwiseFilter::fits(shape.groups, shape.channels, shape.outputs);
        let has_blocks = fits(shape) && !is_depthwise && !takes_rows(shape);
        match self {
            BlockForm::Depthwise => is_depthwise,
            BlockForm::FromRows => takes_rows(shape) && !is_depthwise,
            BlockForm::Direct => has_blocks,
            BlockForm::Winograd(form) => has_blocks && shape.pixels() > 0 && form.fits(shape),
        }
    }

    /// The time of one image, in multiply-adds of a vector.
    fn time(self, shape: &Shape) -> f64 {
        let groups = shape.groups as f64;
        match self {
            BlockForm::Depthwise => {
                (shape.kernel[0] * shape.kernel[1] * shape.channels.div_ceil(BLOCK) * shape.pixels()) as f64
            }
            BlockForm::FromRows | BlockForm::Direct => groups * direct(shape),
            BlockForm::Winograd(form) => groups * winograd(shape, form),
        }
    }

    /// The form's name, which equals that of the packed weights.
    fn name(self) -> String {
        match self {
            BlockForm::Depthwise => "depthwise, in blocks".to_string(),
            BlockForm::FromRows => "direct, from rows to blocks".to_string(),
            BlockForm::Direct => "direct, in blocks".to_string(),
            BlockForm::Winograd(form) => format!("{}, in blocks", form.name()),
        }
    }
}

/// Returns the fastest form in blocks and its time; `None` if no form can compute the convolution.
pub(super) fn fastest(shape: &Shape) -> Option<(BlockForm, f64)> {
    let forms = BlockForm::ALL.into_iter().filter(|form| form.fits(shape)).map(|form| (form, form.time(shape)));
    forms.min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// Whether a convolution can run in blocks.
pub(super) fn fits(shape: &Shape) -> bool {
    let Shape { groups, channels, outputs, .. } = *shape;
    DepthwiseFilter::fits(groups, channels, outputs) || Filter::fits(groups, channels, outputs)
}

/// Whether a convolution in blocks reads its image as `[N, C, H, W]`.
pub(super) fn takes_rows(shape: &Shape) -> bool {
    shape.groups == 1 && shape.channels < BLOCK
}

/// A form of a convolution and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The form's name.
    pub form: String,
    /// Whether the image and the result are in blocks of channels.
    pub in_blocks: bool,
    /// The time of one image, in multiply-adds of a vector.
    pub time: f64,
}

/// Returns every form of a convolution, for images as they are and for images in blocks. Winograd's algorithm needs
/// larger weights; the list contains its forms only if `may_transform` is set.
pub fn alternatives(isa: Isa, shape: &Shape, may_transform: bool) -> Vec<Alternative> {
    let shape = &shape.row_oriented();
    let rows = shape.groups as f64 * rows(isa, shape);
    let mut found = vec![Alternative { form: "direct, in rows".to_string(), in_blocks: false, time: rows }];
    let may_have = |form: &BlockForm| form.fits(shape) && (may_transform || !matches!(form, BlockForm::Winograd(_)));
    for form in BlockForm::ALL.into_iter().filter(may_have) {
        let (name, time) = (form.name(), form.time(shape));
        if shape.outputs >= BLOCK {
            let form = format!("{name} within the step");
            found.push(Alternative { form, in_blocks: false, time: time + reordered(shape) });
        }
        found.push(Alternative { form: name, in_blocks: true, time });
    }
    found
}

/// Whether a convolution of an image `[N, C, H, W]` is faster in blocks of channels, including both conversions.
pub fn is_worth_reordering(isa: Isa, shape: &Shape) -> bool {
    let in_blocks = fastest(shape).filter(|_| shape.outputs >= BLOCK).map(|(_, time)| time + reordered(shape));
    in_blocks.is_some_and(|time| time < shape.groups as f64 * rows(isa, shape))
}

/// The time to convert one image to blocks and its result back. An image with few channels needs no conversion.
fn reordered(shape: &Shape) -> f64 {
    let input = if takes_rows(shape) { 0 } else { shape.channels.div_ceil(BLOCK) };
    let vectors = input * shape.input[0] * shape.input[1] + shape.outputs.div_ceil(BLOCK) * shape.pixels();
    vectors as f64 * REORDER
}

/// The multiply-adds of a vector that blocks of channels save in a convolution if neither the image nor the result must
/// be converted.
pub fn gain(isa: Isa, shape: &Shape) -> i64 {
    let shape = &shape.row_oriented();
    let saved = match fastest(shape) {
        None => return 0,
        Some((BlockForm::Depthwise, time)) => DEPTHWISE * time,
        Some(_) if is_worth_reordering(isa, shape) => reordered(shape),
        Some((_, time)) => shape.groups as f64 * rows(isa, shape) - time,
    };
    (shape.batch as f64 * saved) as i64
}

/// The time of one group over rows of pixels.
fn rows(isa: Isa, shape: &Shape) -> f64 {
    let (channels, outputs) = (shape.channels / shape.groups, shape.outputs / shape.groups);
    let tiles = Tiles::of(isa);
    let reach = [0, 1].map(|a| shape.kernel[a].saturating_sub(1) * shape.dilations[a]);
    let [height, width] = shape.output;
    let vectors = |elements: usize| elements.next_multiple_of(tiles.lanes) as f64 / BLOCK as f64;
    // Row by row, or in one line that includes the gaps between rows.
    let line = height.saturating_sub(1) * (width + reach[1] / shape.strides[1]) + width;
    let in_a_tile = outputs as f64 / outputs.div_ceil(tiles.rows()).max(1) as f64;
    let terms = (channels * shape.kernel[0] * shape.kernel[1] * outputs) as f64;
    let copied = (channels * (height * shape.strides[0] + reach[0])) as f64;
    let length = vectors(width * shape.strides[1] + reach[1]);
    let copies = if reach == [0, 0] { 0.0 } else { copied * (COPY[0] + COPY[1] * length) };
    let time = (height as f64 * vectors(width)).min(vectors(line)) * (ALL + FEW / in_a_tile.max(1.0));
    products(terms / BLOCK as f64, time * BLOCK as f64) + copies
}
