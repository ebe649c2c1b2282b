//! The window of weights of a convolution: its checks, and the sizes of the result.

use candle_plan_descriptors::conv::Shape;

use super::padding::{check_steps, output_size, window_extent, Padding};
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{all_fit, fits, text, Extent};
use crate::types::{Dim, TensorType, Type, Types};

/// The window of a convolution.
pub(crate) struct Window<'a> {
    pub strides: &'a [usize],
    pub dilations: &'a [usize],
    pub pads: &'a Padding,
    pub groups: usize,
}

impl Window<'_> {
    /// The sizes of a convolution of inputs of these dimensions.
    pub fn shape(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        check_ranks(x.len(), w.len())?;
        let (input, kernel) = (&x[2..], &w[2..]);
        let pads = self.pads.resolve(input, kernel, self.strides, self.dilations)?;
        check_channels(&x[1], w, self.groups)?;
        let mut output = Vec::new();
        for a in 0..input.len() {
            let size = output_size(input[a], kernel[a], self.strides[a], self.dilations[a], pads[a])?;
            if size == 0 && input[a] > 0 {
                bail!(
                    "a window of {kernel:?}, dilated by {:?}, is wider than the input {input:?} with its pads {pads:?}",
                    self.dilations
                );
            }
            output.push(size);
        }
        let before: Vec<isize> = pads.iter().map(|pad| pad[0] as isize).collect();
        let shape = Shape {
            batch: x[0],
            channels: x[1],
            outputs: w[0],
            groups: self.groups,
            input: image(input, 1),
            output: image(&output, 1),
            kernel: image(kernel, 1),
            strides: image(self.strides, 1),
            dilations: image(self.dilations, 1),
            before: image(&before, 0),
        };
        if !shape.fits() {
            bail!(
                "{} channels of {input:?}, padded by {pads:?} for a window of {kernel:?} dilated by {:?}, have 2^32 elements or more, \
                 but a convolution supports only fewer",
                x[1], self.dilations
            );
        }
        Ok(shape)
    }
}

/// Two spatial axes from one or two. A single axis is a row.
pub(crate) fn image<T: Copy>(axes: &[T], row: T) -> [T; 2] {
    match *axes {
        [x] => [row, x],
        [y, x, ..] => [y, x],
        [] => [row, row],
    }
}

/// The dimensions of the result, with the rank of the input.
pub(crate) fn out_dims(shape: &Shape, rank: usize) -> Vec<usize> {
    let mut dims = vec![shape.batch, shape.outputs];
    dims.extend(&shape.output[4 - rank.clamp(3, 4)..]);
    dims
}

/// The most spatial axes of a window.
pub const MOST_AXES: usize = 2;

/// Checks that there are one or two spatial axes.
pub(crate) fn check_ranks(x: usize, w: usize) -> Result<()> {
    if x != w || !(3..=2 + MOST_AXES).contains(&x) {
        bail!("X has rank {x} and W rank {w}; both must be 3 (one spatial axis) or 4 (two)");
    }
    Ok(())
}

/// Checks that a pooling window has one or two axes.
pub(crate) fn check_pooled(kernel: &[impl std::fmt::Debug]) -> Result<()> {
    if !(1..=MOST_AXES).contains(&kernel.len()) {
        bail!("a pooling window must have one or two axes; the kernel {kernel:?} has {}", kernel.len());
    }
    Ok(())
}

/// Checks that weights `[O, C / groups, …]` fit `channels` channels.
fn check_channels<D: Extent>(channels: &D, w: &[D], groups: usize) -> Result<()> {
    let outputs_fit = w[0].known().is_none_or(|outputs| outputs.is_multiple_of(groups));
    let needed = w[1].known().map(|inputs| inputs.saturating_mul(groups));
    if groups == 0 || !outputs_fit || !fits(channels, &needed) {
        let channels = text(std::slice::from_ref(channels));
        bail!("weights of shape {} in {groups} groups do not fit {channels} channels", text(w));
    }
    Ok(())
}

/// Checks that the bias has one value per output.
pub(crate) fn check_bias(bias: Option<&[impl Extent]>, outputs: Option<usize>) -> Result<()> {
    match bias {
        Some(dims) if !all_fit(dims, &[outputs]) => bail!("B has shape {}, not {}", text(dims), text(&[outputs])),
        _ => Ok(()),
    }
}

/// The type of the result of a window over input 0 with the weights of input 1.
pub(crate) fn infer_window(window: &Window, inputs: &Types, dtype: DType) -> Result<Type> {
    let (x, w) = (inputs.tensor(0)?, inputs.tensor(1)?);
    check_steps(window.strides, window.dilations, window.groups)?;
    let Some(rank) = x.rank().or(w.rank()) else { return Ok(Type::any(dtype)) };
    check_ranks(rank, w.rank().unwrap_or(rank))?;
    if window.strides.len() != rank - 2 || window.dilations.len() != rank - 2 {
        bail!("strides {:?} and dilations {:?} do not fit rank {rank}", window.strides, window.dilations);
    }
    if let (Some(x), Some(w)) = (&x.shape, &w.shape) {
        check_channels(&x[1], w, window.groups)?;
    }
    check_bias(inputs.shape(2)?.map(Vec::as_slice), w.size(0))?;
    if let (Some(x), Some(w)) = (x.sizes(), w.sizes()) {
        let shape = window.shape(&x, &w)?;
        return Ok(Type::Tensor(TensorType::sized(dtype, &out_dims(&shape, rank))));
    }
    let mut shape = vec![None; rank];
    shape[0] = x.shape.as_ref().and_then(|dims| dims[0].clone());
    shape[1] = w.size(0).map(Dim::Size);
    for (axis, dim) in shape.iter_mut().enumerate().skip(2) {
        *dim = infer_axis(window, x, w, axis)?;
    }
    Ok(Type::Tensor(TensorType { dtype, shape: Some(shape) }))
}

/// The size of one axis: a number, or the input's symbol if the window keeps the size.
fn infer_axis(window: &Window, x: &TensorType, w: &TensorType, axis: usize) -> Result<Option<Dim>> {
    let (stride, dilation) = (window.strides[axis - 2], window.dilations[axis - 2]);
    let size = x.shape.as_ref().and_then(|dims| dims[axis].clone());
    let (Some(size), Some(kernel)) = (size, w.size(axis)) else { return Ok(None) };
    let Padding::Explicit(pads) = window.pads else {
        return Ok(match size {
            Dim::Size(size) => Some(Dim::Size(size.div_ceil(stride.max(1)))),
            symbol => Some(symbol).filter(|_| stride == 1),
        });
    };
    let Some(&pad) = pads.get(axis - 2) else {
        bail!("pads {pads:?} do not fit {} spatial axes", window.strides.len())
    };
    let reach = window_extent(kernel, dilation)? - 1;
    let keeps = stride == 1 && pad[0].checked_add(pad[1]) == Some(reach);
    Ok(match size {
        Dim::Size(size) => Some(Dim::Size(output_size(size, kernel, stride, dilation, pad)?)),
        symbol => Some(symbol).filter(|_| keeps),
    })
}
