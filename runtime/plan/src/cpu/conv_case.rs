//! Plain and transposed convolutions: the sizes and the memory for which their weights are packed.

use candle_plan_kernels::blocking::Blocking;
use candle_plan_kernels::convolution::rows::{conv_plain, conv_transposed_plain, Shape};
use candle_plan_kernels::convolution::ConvCase;
use candle_plan_kernels::program::Program;
use candle_plan_kernels::threads::Threads;

use super::planned::CpuOperands;
use crate::error::{Error, Result};
use crate::kernel::{Constants, Memory};
use crate::layout::in_rows;
use crate::operator::Operator;
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::padding::Padding;
use crate::ops::window::check_ranks;
use crate::types::{Type, Types};
use crate::value::Array;

/// The assumed size of an image axis whose size is unknown.
const TYPICAL: usize = 32;
/// The strides of a window, from its first position on, that fit an image axis whose size is unknown:
/// weights that are packed for few positions are slower for many. This does not hold for a window larger than
/// [`TYPICAL`]. For such a window, one position is assumed.
const STEPS: usize = 8;

/// A plain or transposed convolution. Input 0 is the image, input 1 the weights, and input 2 the bias.
pub(crate) trait Convolution: Operator + Clone + 'static {
    /// The program that finishes the result.
    fn epilogue(&self) -> Option<&Program>;

    /// The sizes for an image and weights of these dimensions.
    ///
    /// # Errors
    /// They do not fit the attributes.
    fn sizes(&self, x: &[usize], w: &[usize]) -> Result<Shape>;

    /// Returns the sizes for an image of type `x` and weights of dimensions `w`. For unknown sizes, it assumes typical
    /// ones from the middle of a network.
    ///
    /// # Errors
    /// The weights or the attributes do not fit the image.
    fn typical_shape(&self, x: Option<&Type>, w: &[usize]) -> Result<Shape>;

    /// The case of about these sizes, for which the planner chooses a form.
    fn case_of(blocking: Blocking, shape: &Shape, memory: Memory) -> ConvCase;

    /// Convolves by definition.
    fn plain(threads: &Threads, shape: &Shape, w: &[f64], bias: Option<&[f64]>, x: &[f64], out: &mut [f64]);

    /// Returns the case of some operands and weights of dimensions `w`.
    ///
    /// # Errors
    /// As for [`Convolution::typical_shape`].
    fn case(&self, operands: &CpuOperands, w: &[usize]) -> Result<ConvCase> {
        let shape = self.typical_shape(operands.constants.types.first().copied().flatten(), w)?;
        Ok(Self::case_of(operands.blocking, &shape, operands.memory))
    }
}

/// A [`Convolution`] of images in blocks.
#[derive(Debug, Clone)]
pub(crate) struct ConvBlocks<C> {
    pub conv: C,
    /// The channels of the image.
    pub channels: usize,
    /// The rank of the images in rows.
    pub rank: usize,
}

impl<C> ConvBlocks<C> {
    /// Returns the dimensions of the input in rows. The input may be in rows or in blocks.
    pub fn input(&self, dims: &[usize]) -> Result<Vec<usize>> {
        if dims.len() == self.rank {
            Ok(dims.to_vec())
        } else {
            in_rows(dims, self.channels)
        }
    }
}

/// Returns input `i`, constant weights.
///
/// # Errors
/// They are not constant.
pub(super) fn constant_weights<'a>(constants: &'a Constants, i: usize) -> Result<&'a Array> {
    constants.tensor(i).ok_or_else(|| Error::op("the weights are not constant"))
}

/// The dimensions of one image of input 0, and of the weights, input 1, if they are known.
pub(super) fn one_image(inputs: &Types) -> Option<[Vec<usize>; 2]> {
    let (x, w) = (inputs.tensor(0).ok()?, inputs.tensor(1).ok()?.sizes()?);
    let sizes = (0..x.rank()?).map(|axis| if axis == 0 { Some(1) } else { x.size(axis) });
    Some([sizes.collect::<Option<Vec<usize>>>()?, w])
}

/// The dimensions of an image of type `x`. Unknown channels are `channels`, and the unknown size of spatial axis `a` is
/// `size(a)`.
fn typical_dims(x: Option<&Type>, channels: usize, axes: usize, size: impl Fn(usize) -> usize) -> Vec<usize> {
    let known = |axis: usize| x.and_then(|x| x.tensor().ok()?.size(axis));
    let axes = (0..axes).map(|axis| known(axis + 2).unwrap_or_else(|| size(axis)));
    [known(0).unwrap_or(1), known(1).unwrap_or(channels)].into_iter().chain(axes).collect()
}

impl Convolution for Conv {
    fn epilogue(&self) -> Option<&Program> {
        self.epilogue.as_ref()
    }

    fn sizes(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        self.window().shape(x, w)
    }

    /// Unknown sizes are at least as large as the window.
    fn typical_shape(&self, x: Option<&Type>, w: &[usize]) -> Result<Shape> {
        let extent = |axis: usize| {
            let dilation = self.dilations.get(axis).copied().unwrap_or(1);
            w[axis + 2].saturating_sub(1).saturating_mul(dilation).saturating_add(1)
        };
        let unknown = |axis: usize| match (extent(axis), self.strides.get(axis)) {
            (extent, Some(&stride)) if extent < TYPICAL => {
                TYPICAL.max(extent.saturating_add(STEPS.saturating_mul(stride)))
            }
            (extent, _) => extent.max(TYPICAL),
        };
        let channels = w.get(1).map_or(0, |channels| channels.saturating_mul(self.groups));
        self.sizes(&typical_dims(x, channels, w.len().saturating_sub(2), unknown), w)
    }

    fn case_of(blocking: Blocking, shape: &Shape, memory: Memory) -> ConvCase {
        ConvCase::new(blocking, shape, memory == Memory::Full)
    }

    fn plain(threads: &Threads, shape: &Shape, w: &[f64], bias: Option<&[f64]>, x: &[f64], out: &mut [f64]) {
        conv_plain(threads, shape, w, bias, x, out);
    }
}

impl Convolution for ConvTranspose {
    fn epilogue(&self) -> Option<&Program> {
        self.epilogue.as_ref()
    }

    fn sizes(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        self.shape(x, w, None)
    }

    /// If the attributes do not fit an image of typical sizes, it assumes one of one pixel, and an output that is not
    /// cropped.
    fn typical_shape(&self, x: Option<&Type>, w: &[usize]) -> Result<Shape> {
        check_ranks(w.len(), w.len())?;
        self.check_lists(w.len() - 2)?;
        let typical = self.sizes(&typical_dims(x, w[0], w.len() - 2, |_| TYPICAL), w);
        typical.or_else(|_| {
            let pads = Padding::Explicit(vec![[0, 0]; w.len() - 2]);
            let uncropped = ConvTranspose { pads, output_shape: None, epilogue: None, ..self.clone() };
            uncropped.sizes(&typical_dims(None, w[0], w.len() - 2, |_| 1), w)
        })
    }

    fn case_of(blocking: Blocking, shape: &Shape, memory: Memory) -> ConvCase {
        ConvCase::transposed(blocking, shape, memory == Memory::Full)
    }

    fn plain(threads: &Threads, shape: &Shape, w: &[f64], bias: Option<&[f64]>, x: &[f64], out: &mut [f64]) {
        conv_transposed_plain(threads, shape, w, bias, x, out);
    }
}
