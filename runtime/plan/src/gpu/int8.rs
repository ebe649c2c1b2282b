//! GPU kernels: convolutions and products of 8-bit codes with any kind of output.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use candle_plan_descriptors::conv::Shape;
use candle_plan_device::{Buffer, Gpu, Grid, Symbol, BLOCK, MOST_BLOCKS};

use super::launch::{address, alloc_uninit, count, launch, scratch, Params};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::extent::{one_element, one_or_each};
use crate::ops::qlinear::{is_signed, WEIGHTS_ZERO, ZERO};
use crate::ops::window::check_bias;
use crate::types::TensorType;
use crate::value::Array;

/// `Weights::packed` has the size of all quads, and the strides match W.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(Pack in "qlinear.cu")]
struct PackParams {
    w: u64,
    packed: u64,
    sums: u64,
    outputs: u32,
    taps: u32,
    channels: u32,
    quads: u32,
    next_output: u32,
    next_channel: u32,
    next_tap: u32,
    flip: u32,
}

/// `Convolution::run` checks the sizes of all operands.
#[derive(Clone, Copy, Pod, Zeroable, Params)]
#[repr(C)]
#[kernel(QLinear in "qlinear.cu")]
struct QLinearParams {
    x: u64,
    w: u64,
    sums: u64,
    y: u64,
    x_zero: u64,
    w_zero: u64,
    scale: u64,
    y_zero: u64,
    bias: u64,
    x_image: u32,
    x_channel: u32,
    x_row: u32,
    x_column: u32,
    y_image: u32,
    y_channel: u32,
    y_pixel: u32,
    rows: u32,
    pixels: u32,
    columns: u32,
    groups: u32,
    outputs: u32,
    channels: u32,
    quads: u32,
    kernel: [u32; 2],
    input: [u32; 2],
    step: [u32; 2],
    dilation: [u32; 2],
    before: [i32; 2],
    x_flip: u32,
    w_flip: u32,
    y_flip: u32,
    zeros: u32,
    scales: u32,
    sink: u32,
    low: i32,
    high: i32,
    by_quads: u32,
    padding: u32,
}

/// Weights in the format of the kernels. Constant weights are kept from one run to the next.
#[derive(Debug)]
pub(super) struct Weights {
    is_constant: bool,
    kept: Mutex<Option<Arc<Packed>>>,
}

/// `[outputs, taps, quads]` of four channels each, and the sum of each output's weights.
#[derive(Debug)]
struct Packed {
    quads: Buffer,
    sums: Buffer,
}

/// The position of the channels in images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channels {
    First,
    Last,
}

/// A convolution of codes, whose sums become `y`.
pub(super) struct Convolution<'a> {
    pub shape: &'a Shape,
    pub channels: Channels,
    pub x: &'a Array,
    pub x_zero: Option<&'a Array>,
    pub w: &'a Array,
    pub w_zero: Option<&'a Array>,
    /// The strides of W between outputs, channels and taps.
    pub w_strides: [usize; 3],
    pub bias: Option<&'a Array>,
    pub end: End<'a>,
}

/// The conversion of sums to outputs.
pub(super) enum End<'a> {
    Sums,
    /// `sum · scale`. With a zero point and limits, this is quantized to a code.
    Scaled(&'a Array, Option<(&'a Array, [i32; 2])>),
}

impl Weights {
    pub fn new(is_constant: bool) -> Weights {
        Weights { is_constant, kept: Mutex::default() }
    }

    fn packed(&self, gpu: &Gpu, convolution: &Convolution) -> Result<Arc<Packed>> {
        if !self.is_constant {
            return convolution.pack(gpu).map(Arc::new);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = kept.as_ref() {
            return Ok(packed.clone());
        }
        let packed = Arc::new(convolution.pack(gpu)?);
        *kept = Some(packed.clone());
        Ok(packed)
    }
}

/// Returns the mask that converts codes to `i8` by flipping bits.
fn flip(codes: &Array) -> u32 {
    if is_signed(codes) {
        0
    } else {
        0x80
    }
}

/// Rejects a zero point that does not have exactly one element.
pub(super) fn check_single(zero: &Array) -> Result<()> {
    one_element(ZERO, zero.dims())
}

/// Returns the stride of an optional array: 1 for one element per output, 0 for one element for all.
fn step(what: &str, array: Option<&Array>, outputs: usize) -> Result<u32> {
    one_or_each(what, array.map_or(&[][..], Array::dims), Some(outputs))?;
    Ok(array.is_some_and(|array| array.len() != 1).into())
}

/// Returns the bytes of packed weights, and of their sums, for numbers of outputs, taps, and channels of a group.
fn packed_bytes([outputs, taps, channels]: [usize; 3]) -> Option<[usize; 2]> {
    let quads = outputs.checked_mul(taps)?.checked_mul(channels.div_ceil(4))?;
    Some([quads.checked_mul(4)?, outputs.checked_mul(4)?])
}

/// Returns the scratch memory of a convolution with weights `[outputs, channels of a group, …]`, in bytes.
pub(super) fn scratch_of_convolution(weights: &TensorType) -> Option<usize> {
    let sizes = weights.sizes()?;
    let [outputs, channels, window @ ..] = &sizes[..] else { return None };
    let taps = window.iter().copied().fold(1, usize::saturating_mul);
    packed_bytes([*outputs, taps, *channels]).map(|[quads, sums]| quads.saturating_add(sums))
}

/// Returns the scratch memory of a product with a right-hand matrix, in bytes.
pub(super) fn scratch_of_product(matrix: &TensorType) -> Option<usize> {
    let &[depth, columns] = &matrix.sizes()?[..] else { return None };
    packed_bytes([columns, 1, depth]).map(|[quads, sums]| quads.saturating_add(sums))
}

fn too_large() -> Error {
    Error::op("a convolution is too large for the device")
}

impl Convolution<'_> {
    fn taps(&self) -> usize {
        self.shape.kernel[0] * self.shape.kernel[1]
    }

    /// Returns the channels of a group, and their number of quads.
    fn group(&self) -> [usize; 2] {
        let channels = self.shape.channels / self.shape.groups;
        [channels, channels.div_ceil(4)]
    }

    fn pack(&self, gpu: &Gpu) -> Result<Packed> {
        let ([channels, group_quads], outputs) = (self.group(), self.shape.outputs);
        let [quads, sums] = packed_bytes([outputs, self.taps(), channels]).ok_or_else(too_large)?;
        count(quads)?;
        let packed = Packed { quads: scratch(gpu, quads)?, sums: scratch(gpu, sums)? };
        let [next_output, next_channel, next_tap] = self.w_strides.map(count);
        let params = PackParams {
            w: self.w.address()?,
            packed: packed.quads.address(),
            sums: packed.sums.address(),
            outputs: count(outputs)?,
            taps: count(self.taps())?,
            channels: count(channels)?,
            quads: count(group_quads)?,
            next_output: next_output?,
            next_channel: next_channel?,
            next_tap: next_tap?,
            flip: flip(self.w),
        };
        let symbol = Symbol { module: "qlinear", name: "qlinear_pack", kind: "" };
        launch(gpu, symbol, Grid::blocks(params.outputs), &params)?;
        Ok(packed)
    }

    fn check(&self) -> Result<()> {
        let Shape { output, strides, kernel, dilations, .. } = *self.shape;
        for axis in 0..2 {
            let reach = kernel[axis].checked_mul(dilations[axis]);
            let extent = output[axis].checked_mul(strides[axis]).zip(reach).and_then(|(a, b)| a.checked_add(b));
            count(extent.ok_or_else(too_large)?)?;
        }
        self.x_zero.map_or(Ok(()), check_single)?;
        if let End::Scaled(_, Some((zero, _))) = self.end {
            check_single(zero)?;
        }
        check_bias(self.bias.map(Array::dims), Some(self.shape.outputs))?;
        count(self.x.len()).map(drop)
    }

    /// Fills the strides of X between images, channels, rows and columns, and those of the result between images, channels
    /// and pixels.
    fn fill_strides(&self, params: &mut QLinearParams) -> Result<()> {
        let Shape { channels, outputs, input: [h, w], output: [rows, columns], .. } = *self.shape;
        let pixels = rows * columns;
        let (x, y) = match self.channels {
            Channels::First => ([channels * h * w, h * w, w, 1], [outputs * pixels, pixels, 1]),
            Channels::Last => ([h * w * channels, 1, w * channels, channels], [pixels * outputs, 1, outputs]),
        };
        let all = |sizes: &[usize]| sizes.iter().map(|&size| count(size)).collect::<Result<Vec<u32>>>();
        let (x, y) = (all(&x)?, all(&y)?);
        (params.x_image, params.x_channel, params.x_row, params.x_column) = (x[0], x[1], x[2], x[3]);
        (params.y_image, params.y_channel, params.y_pixel) = (y[0], y[1], y[2]);
        Ok(())
    }

    /// Fills the parameters that convert the sums.
    fn finish(&self, params: &mut QLinearParams) -> Result<()> {
        let End::Scaled(scale, to) = self.end else { return Ok(()) };
        params.scale = scale.address()?;
        params.scales = step("the scale", Some(scale), self.shape.outputs)?;
        params.sink = 1;
        if let Some((zero, [low, high])) = to {
            (params.sink, params.y_zero, params.y_flip) = (2, zero.address()?, flip(zero));
            (params.low, params.high) = (low, high);
        }
        Ok(())
    }

    /// Computes the result, of shape `dims`.
    pub fn run(&self, gpu: &Gpu, weights: &Weights, dims: &[usize]) -> Result<Array> {
        /// The side of a tile, as `TILE` in `qlinear.cu`.
        const TILE: u32 = 64;
        /// The fewest outputs per group for which tiles pay off.
        const WIDE: u32 = 8;
        self.check()?;
        let y = alloc_uninit(gpu, dims, self.end.dtype())?;
        let packed = weights.packed(gpu, self)?;
        let params = self.params(&y, packed.quads.address(), packed.sums.address())?;
        let symbol = |name| Symbol { module: "qlinear", name, kind: "" };
        if params.outputs >= WIDE {
            let blocks = [
                params.rows.div_ceil(TILE),
                params.outputs.div_ceil(TILE).min(MOST_BLOCKS),
                params.groups.min(MOST_BLOCKS),
            ];
            launch(gpu, symbol("qlinear_tiles"), Grid { blocks, threads: BLOCK }, &params)?;
        } else {
            launch(gpu, symbol("qlinear_direct"), Grid::over(count(y.len())?), &params)?;
        }
        Ok(y)
    }

    /// Fills the parameters for a result, and for weights packed at these addresses.
    fn params(&self, y: &Array, w: u64, sums: u64) -> Result<QLinearParams> {
        count(y.len())?;
        let Shape { batch, outputs, groups, input, output, kernel, strides, dilations, before, .. } = *self.shape;
        let [channels, quads] = self.group();
        let pair = |sizes: [usize; 2]| -> Result<[u32; 2]> { Ok([count(sizes[0])?, count(sizes[1])?]) };
        let begin = |axis: usize| i32::try_from(before[axis]).map_err(|_| too_large());
        let pixels = output[0] * output[1];
        let x = self.x.address()?;
        let whole_quads = channels % 4 == 0 && x % 4 == 0 && self.channels == Channels::Last;
        let mut params = QLinearParams {
            x,
            w,
            sums,
            y: y.address()?,
            x_zero: address(self.x_zero)?,
            w_zero: address(self.w_zero)?,
            bias: address(self.bias)?,
            rows: count(batch.checked_mul(pixels).ok_or_else(too_large)?)?,
            pixels: count(pixels)?,
            columns: count(output[1])?,
            groups: count(groups)?,
            outputs: count(outputs / groups)?,
            channels: count(channels)?,
            quads: count(quads)?,
            kernel: pair(kernel)?,
            input: pair(input)?,
            step: pair(strides)?,
            dilation: pair(dilations)?,
            before: [begin(0)?, begin(1)?],
            x_flip: flip(self.x),
            w_flip: flip(self.w),
            zeros: step(WEIGHTS_ZERO, self.w_zero, outputs)?,
            by_quads: whole_quads.into(),
            ..QLinearParams::zeroed()
        };
        self.fill_strides(&mut params)?;
        self.finish(&mut params)?;
        Ok(params)
    }
}

impl End<'_> {
    fn dtype(&self) -> DType {
        match self {
            End::Sums => DType::Int32,
            End::Scaled(_, None) => DType::Float32,
            End::Scaled(_, Some((zero, _))) => zero.dtype(),
        }
    }
}

/// Describes the product `[rows, depth] · [depth, columns]` as a convolution of an image of one row.
pub(super) fn product(rows: usize, depth: usize, columns: usize) -> Shape {
    Shape {
        batch: 1,
        channels: depth,
        outputs: columns,
        groups: 1,
        input: [1, rows],
        output: [1, rows],
        kernel: [1, 1],
        strides: [1, 1],
        dilations: [1, 1],
        before: [0, 0],
    }
}
