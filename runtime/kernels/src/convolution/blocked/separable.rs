//! A depthwise convolution and the following 1 × 1 convolution, computed a few rows at a time, so that the intermediate
//! result stays in the cache.

use super::conv::Convolution;
use super::depthwise::form::DepthwiseForm;
use super::depthwise::{depthwise, DepthwiseFilter};
use super::direct::Direct;
use super::direct_form::DirectForm;
use super::filter::Filter;
use crate::blocking::Blocking;
use crate::conv_shape::Shape;
use crate::convolution::form::{of_threads, ConvCase, ConvOperands, Epilogue, PackedConv};
use crate::form::Form;
use crate::gemm::{Finish, UNIT};
use crate::scratch::Scratch;
use crate::threads::Threads;

/// Elements of the intermediate result that fit in the L2 cache together with weights and results.
const BAND: usize = 1 << 15;
/// From this size on, the whole intermediate result does not fit in the L2 cache.
const MANY: usize = 1 << 17;
/// The costs of starting a band, and of writing and reading a vector of the intermediate result in memory.
const START: f64 = 500.0;
const MOVE: f64 = 4.0;
/// Multiplications that are worth a thread.
const TASK: usize = 1 << 19;
/// Bands per thread, so that the threads end at about the same time.
const SHARES: usize = 4;

/// The packed weights of both convolutions.
#[derive(Debug)]
pub struct SeparableWeights {
    depthwise: DepthwiseFilter,
    pointwise: Filter,
}

impl SeparableWeights {
    /// Packs the weights `[C, 1, kernel…]` and `[O, C, 1, 1]` of two convolutions that
    /// [one step](separable_costs) can compute.
    ///
    /// # Panics
    /// The weights do not have these shapes, the first convolution is not depthwise, or the second is not 1 × 1.
    pub(crate) fn new([first, second]: [&ConvCase; 2], [depthwise, pointwise]: [&[f32]; 2]) -> SeparableWeights {
        assert!(are_separable(first.blocking, &first.shape, &second.shape), "{first:?}, {second:?}");
        SeparableWeights {
            depthwise: DepthwiseFilter::new(first.blocking, &first.shape, depthwise),
            pointwise: Filter::new(second.blocking, &second.shape, pointwise, None),
        }
    }

    /// The size of the packed weights in bytes.
    pub fn bytes(&self) -> usize {
        self.depthwise.bytes() + self.pointwise.bytes()
    }

    /// The elements of scratch memory that [`separable`] needs for a first convolution of this shape, beyond buffers that
    /// fit a cache. `None` if a buffer of each thread does not fit.
    pub fn scratch(&self, first: &Shape) -> Option<usize> {
        of_threads(first, |first| [BAND.max(first.channels.next_multiple_of(self.pointwise.block()) * first.output[1])])
    }
}

/// One of the two convolutions.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The sizes.
    pub shape: &'a Shape,
    /// One value per output.
    pub bias: Option<&'a [f32]>,
    /// Its last steps, which change the outputs.
    pub epilogue: Epilogue<'a>,
}

/// The times for one image, in multiply-adds of a vector: of one step that computes two convolutions, and what two steps take
/// beside their own times. If the intermediate result is large, they write it to memory and read it again. `None` if one step
/// cannot compute both.
pub(crate) fn separable_costs(first: &ConvCase, second: &ConvCase) -> Option<[f64; 2]> {
    let shape = &first.shape;
    if !are_separable(first.blocking, shape, &second.shape) || shape.output[0] < 2 {
        return None;
    }
    let products = DepthwiseForm.cost(first) + DirectForm.cost(second);
    let between = shape.channels.next_multiple_of(first.blocking.block()) * shape.pixels();
    let moved = if between < MANY { 0.0 } else { between as f64 / UNIT };
    Some([products + START * between.div_ceil(BAND) as f64, MOVE * moved])
}

fn are_separable(blocking: Blocking, first: &Shape, second: &Shape) -> bool {
    let is_pointwise =
        second.groups == 1 && second.kernel == [1, 1] && second.strides == [1, 1] && second.before == [0, 0];
    let follows = [first.batch, first.outputs] == [second.batch, second.channels] && first.pixels() == second.pixels();
    let fit = DepthwiseForm::fits_shape(first) && Filter::takes_blocks(blocking, second);
    fit && is_pointwise && follows && second.input == second.output
}

/// Computes both convolutions. `x` is `[N, C / B, H, W, B]` and `out` is `[N, O / B, H', W', B]`.
///
/// # Panics
/// The slices, weights or shapes do not fit, the first convolution is not depthwise or has a residual, or the second is
/// not 1 × 1.
pub fn separable(
    threads: &Threads,
    weights: &SeparableWeights,
    [first, second]: [Stage; 2],
    x: &[f32],
    out: &mut [f32],
) {
    let shape = &first.shape.row_oriented();
    assert!(are_separable(weights.pointwise.blocking, shape, second.shape), "{shape:?}, {:?}", second.shape);
    assert!(first.epilogue.residual.is_none(), "depthwise convolutions add no residual");
    if out.is_empty() {
        return;
    }
    let [height, width] = shape.output;
    let depth = shape.channels.next_multiple_of(weights.pointwise.block());
    let products = shape.batch * second.shape.pixels() * second.shape.channels * second.shape.outputs;
    let fewest = if products < 2 * TASK { 1 } else { (SHARES * threads.count()).min(height) };
    let bands = height.div_ceil((BAND / (depth * width)).max(1)).max(fewest);
    let image = x.len() / shape.batch;
    let Stage { shape: next, bias, epilogue } = second;
    let pointwise = Convolution::new(&weights.pointwise, ConvOperands { shape: next, bias, x: &[], out, epilogue });
    let run = |task: usize| {
        let (n, band) = (task / bands, task % bands);
        let [start, end] = [band, band + 1].map(|i| height * i / bands);
        let between = depthwise_rows(shape, &weights.depthwise, &first, &x[n * image..][..image], n, [start, end]);
        Direct::of_pixels(&pointwise, (end - start) * width).pixels(n, start * width, &between);
    };
    match fewest {
        1 => (0..shape.batch * bands).for_each(run),
        _ => threads.for_each(shape.batch * bands, run),
    }
}

/// Computes some output rows of image `n`, `[C / B, rows, W', B]`.
fn depthwise_rows(
    shape: &Shape,
    filter: &DepthwiseFilter,
    stage: &Stage,
    x: &[f32],
    n: usize,
    [start, end]: [usize; 2],
) -> Scratch<f32> {
    let ([height, width], block) = (shape.output, filter.block());
    let blocks = shape.channels.div_ceil(block);
    let before = [shape.before[0] - (start * shape.strides[0]) as isize, shape.before[1]];
    let rows = Shape { batch: 1, output: [end - start, width], before, ..shape.clone() };
    let (part, plane) = ((end - start) * width * block, height * width * block);
    // Converts an offset in the band to an offset in the whole output.
    let place = |offset: usize| (n * blocks + offset / part) * plane + start * width * block + offset % part;
    let finish = stage.epilogue.finish.map(|finish| move |run: &mut [f32], offset: usize| finish(run, place(offset)));
    let epilogue = Epilogue { finish: finish.as_ref().map(|finish| finish as Finish), ..stage.epilogue };
    Scratch::overwritten(blocks * part, |out| {
        depthwise(&Threads::serial(), filter, ConvOperands { shape: &rows, bias: stage.bias, x, out, epilogue });
    })
}
