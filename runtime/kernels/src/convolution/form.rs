//! Forms of convolutions: a form is a way to compute a convolution, with its expected time and its packed weights.

use std::fmt::Debug;

use crate::blocking::Blocking;
use crate::buffer::is_cached;
use crate::conv_shape::Shape;
use crate::form::Form;
use crate::gemm::{Finish, UNIT};
use crate::isa::Isa;
use crate::threads::Threads;
use crate::vector::Vector;

/// A convolution for which a form is chosen.
#[derive(Debug, Clone)]
pub struct ConvCase {
    /// The blocks of channels, and the instruction set of the kernels.
    pub(crate) blocking: Blocking,
    /// The expected sizes, [row-oriented](Shape::row_oriented).
    pub(crate) shape: Shape,
    /// Whether packed weights may be larger than the weights, apart from padding to blocks.
    pub(crate) may_transform: bool,
    /// Whether the convolution is transposed. The forms compute only plain convolutions.
    pub(crate) is_transposed: bool,
}

impl ConvCase {
    /// The case of inputs of about the sizes in `shape`. Only with `may_transform` may packed weights be larger than
    /// the weights, apart from padding to blocks.
    pub fn new(blocking: Blocking, shape: &Shape, may_transform: bool) -> ConvCase {
        ConvCase { blocking, shape: shape.row_oriented(), may_transform, is_transposed: false }
    }

    /// The case of a transposed convolution. The strides, dilations and `before` of its shape refer to the output.
    pub fn transposed(blocking: Blocking, shape: &Shape, may_transform: bool) -> ConvCase {
        ConvCase { is_transposed: true, ..ConvCase::new(blocking, shape, may_transform) }
    }

    /// The instruction set of the kernels.
    pub(crate) fn isa(&self) -> Isa {
        self.blocking.isa()
    }

    /// The vectors of 16 numbers of one pixel of an image in blocks, which may be halves.
    pub(crate) fn vectors(&self, channels: usize) -> f64 {
        channels.next_multiple_of(self.blocking.block()) as f64 / UNIT
    }
}

/// The layout of an image or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageLayout {
    /// `[N, C, H, W]`
    Rows,
    /// `[N, C / B, H, W, B]`
    Blocks,
}

/// A form of a convolution. Its cost is the time for one image, in multiply-adds of a vector.
pub(crate) trait ConvForm: Form<ConvCase> + Debug {
    /// The layouts of the image and of the result.
    fn layouts(&self) -> [ImageLayout; 2];

    /// The time that this form, with its result in blocks, saves for one image compared with images in rows. `None`:
    /// the difference between the costs.
    fn saving(&self, _case: &ConvCase) -> Option<f64> {
        None
    }

    /// Packs the weights `w` `[O, C / groups, kernel…]` of a convolution that [fits](Form::fits).
    ///
    /// # Panics
    /// `w` does not have this shape, or the convolution does not fit.
    fn pack(&self, case: &ConvCase, w: &[f32]) -> Box<dyn PackedConv>;
}

/// The packed weights of a convolution.
pub trait PackedConv: Debug + Send + Sync {
    /// `out = bias + weights * x`, then the epilogue. The image and the result have the [layouts](ConvForm::layouts) of
    /// the form. The shape is [row-oriented](Shape::row_oriented), and may differ from that of the [case](ConvCase)
    /// except for channels, outputs, groups and window. A window of one row or column may be
    /// [transposed](Shape::has_window).
    ///
    /// # Panics
    /// The slices or the weights do not fit the shape.
    fn run(&self, threads: &Threads, operands: ConvOperands);

    /// Whether [`run`](PackedConv::run) adds the residual of an epilogue. If not, epilogues must have none.
    fn adds_residual(&self) -> bool {
        false
    }

    /// The size of the packed weights in bytes.
    fn bytes(&self) -> usize;

    /// The elements of scratch memory that [`run`](PackedConv::run) needs beyond buffers that fit a cache. `None` if a
    /// buffer of each thread does not fit, because the number of threads is unknown.
    fn scratch(&self, shape: &Shape) -> Option<usize>;
}

/// Whether lists with an entry for each tap along an axis, or for each channel, fit a cache. An entry has up to 128 bytes.
/// The sizes are those of a convolution.
pub(crate) fn has_short_lists(shape: &Shape) -> bool {
    let lists = [shape.kernel, [shape.channels, shape.outputs]];
    let is_sound = [shape.input, shape.output, shape.kernel, shape.strides].iter().all(|sizes| !sizes.contains(&0));
    is_sound && shape.channels > 0 && shape.fits() && lists.into_iter().flatten().all(is_cached::<[u8; 128]>)
}

/// The [scratch memory](PackedConv::scratch) of a form that needs only lists with an entry for each tap along an axis or
/// for each channel, and buffers of so many elements: none if all fit a cache, else an unknown number. `lengths` is called for a
/// [row-oriented](Shape::row_oriented) shape with outputs.
pub(crate) fn of_threads<const N: usize>(shape: &Shape, lengths: impl FnOnce(&Shape) -> [usize; N]) -> Option<usize> {
    if [shape.batch, shape.outputs, shape.output[0], shape.output[1]].contains(&0) {
        return Some(0);
    }
    let fits = has_short_lists(shape) && lengths(&shape.row_oriented()).into_iter().all(is_cached::<f32>);
    fits.then_some(0)
}

/// The operands of one convolution, without its weights.
pub struct ConvOperands<'a> {
    /// The sizes.
    pub shape: &'a Shape,
    /// One value per output.
    pub bias: Option<&'a [f32]>,
    /// The image.
    pub x: &'a [f32],
    /// The result.
    pub out: &'a mut [f32],
    /// The last steps, which change the outputs.
    pub epilogue: Epilogue<'a>,
}

/// An image of the result's shape and layout that a convolution adds to its outputs.
#[derive(Clone, Copy)]
pub enum Residual<'a> {
    /// The elements that `out` has before the convolution.
    InPlace,
    /// Other elements.
    Separate(&'a [f32]),
}

/// The last steps of a convolution: it adds the residual to its outputs, clamps them, then calls `finish`.
#[derive(Clone, Copy)]
pub struct Epilogue<'a> {
    /// The residual, only for a form that [adds it](PackedConv::adds_residual).
    pub residual: Option<Residual<'a>>,
    /// The smallest and the largest output; NaN stays NaN.
    pub limits: [f32; 2],
    /// Rewrites a run of outputs: of one output's plane, or of one block of channels.
    pub finish: Option<Finish<'a>>,
}

impl Epilogue<'_> {
    /// No clamping.
    pub const NO_LIMITS: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];
    /// Outputs stay as they are.
    pub const NONE: Epilogue<'static> = Epilogue { residual: None, limits: Epilogue::NO_LIMITS, finish: None };

    /// Whether the epilogue changes outputs, apart from a residual.
    pub(crate) fn is_some(&self) -> bool {
        self.finish.is_some() || self.limits != Epilogue::NO_LIMITS
    }

    /// Applies the epilogue to a run of outputs that starts at `offset`.
    pub(crate) fn apply(&self, run: &mut [f32], offset: usize) {
        if self.limits != Epilogue::NO_LIMITS {
            run.iter_mut().for_each(|x| *x = x.within(self.limits));
        }
        if let Some(finish) = self.finish {
            finish(run, offset);
        }
    }
}

/// The cost of fetching a vector of weights, in multiply-adds of a vector: if the weights fit in the L2 cache, and if
/// they do not. In the latter case, a core gets about 12 GB/s while the others are busy too. With fewer pixels than
/// this, the products wait for the weights.
const FETCH: [f64; 2] = [16.0, 32.0];
/// The vectors of weights that fit in the L2 cache: 1 MB.
const NEAR: f64 = 16384.0;

/// The time of the products of `pixels` pixels with `weights` vectors of weights, including the fetch of the weights.
pub(crate) fn products(weights: f64, pixels: f64) -> f64 {
    weights * pixels.max(FETCH[usize::from(weights > NEAR)])
}
