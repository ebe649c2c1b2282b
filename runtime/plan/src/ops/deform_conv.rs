//! Deformable convolutions: an input gives an offset for each element of the window.

use candle_plan_descriptors::sample::NOWHERE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::{check_steps, window_extent};
use crate::bail;
use crate::error::Result;
use crate::extent::text;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::element_count;

/// `Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · M[n, i, j, y, x] · X(n, c, v, u)` with `v = y·s + i·d − before + Δy`,
/// `u = x·s + j·d − before + Δx` and `(Δy, Δx) = D[n, i, j, :, y, x]`. Between pixels, `X` is a linear combination of
/// 2 × 2 pixels; pixels outside count as zero.
///
/// Inputs: `X [N, C, H, W]`, `W [O, C / groups, kH, kW]`, the offsets `D [N, offset_groups · kH · kW · 2, Hout, Wout]`,
/// `B [O]` (optional), and the mask `M [N, offset_groups · kH · kW, Hout, Wout]` (optional). Offset group `g` applies
/// to group `g` of the channels. `float16` and `bfloat16` are computed in `float32` and rounded once.
///
/// Source: [ONNX DeformConv](https://onnx.ai/onnx/operators/onnx__DeformConv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeformConv {
    /// The step of the window along height and width.
    pub strides: [usize; 2],
    /// The step inside the window.
    pub dilations: [usize; 2],
    /// The padding, `[before, after]` along height and width.
    pub pads: [[usize; 2]; 2],
    /// The number of groups of channels and outputs.
    pub groups: usize,
    /// The number of groups of channels that share offsets.
    pub offset_groups: usize,
}

impl Operator for DeformConv {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, w, offset) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if !x.dtype.is_float() || x.dtype.is_small_float() {
            bail!("DeformConv is not defined for {}", x.dtype);
        }
        for (index, rank) in [4, 4, 4, 1, 4].into_iter().enumerate() {
            let Some(input) = inputs.optional_tensor(index)? else { continue };
            if input.dtype != x.dtype || input.rank().is_some_and(|found| found != rank) {
                bail!("input {index} must be {} of rank {rank}, found {}", x.dtype, inputs.get(index)?);
            }
        }
        check_steps(&self.strides, &self.dilations, self.groups.min(self.offset_groups))?;
        if let (Some(x), Some(w), Some(offset)) = (x.sizes(), w.sizes(), offset.sizes()) {
            let (bias, mask) = (inputs.sizes(3)?, inputs.sizes(4)?);
            self.sizes([&x, &w, &offset], bias.as_deref(), mask.as_deref())?;
        }
        let dim = |input: &TensorType, axis: usize| -> Option<Dim> { input.shape.as_ref()?.get(axis)?.clone() };
        let shape = vec![dim(x, 0), dim(w, 0), dim(offset, 2), dim(offset, 3)];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }
}

/// The sizes of one convolution.
pub(crate) struct DeformSizes {
    pub batch: usize,
    pub channels: usize,
    pub outputs: usize,
    pub image: [usize; 2],
    pub kernel: [usize; 2],
    pub result: [usize; 2],
}

impl DeformConv {
    /// The sizes of a convolution of inputs of these dimensions.
    ///
    /// # Errors
    /// The inputs do not fit each other.
    pub(crate) fn sizes(
        &self,
        [x, w, offset]: [&[usize]; 3],
        bias: Option<&[usize]>,
        mask: Option<&[usize]>,
    ) -> Result<DeformSizes> {
        let (&[batch, channels, high, wide], &[outputs, _, kernel_high, kernel_wide], &[_, _, rows, columns]) =
            (x, w, offset)
        else {
            bail!("X {x:?}, W {w:?} and the offsets {offset:?} are not of rank 4");
        };
        let (image, kernel, result) = ([high, wide], [kernel_high, kernel_wide], [rows, columns]);
        let taps = element_count(&kernel)?;
        let divides = |groups: usize, count: usize| groups > 0 && count.is_multiple_of(groups);
        if !divides(self.groups, channels) || !divides(self.groups, outputs) || !divides(self.offset_groups, channels) {
            bail!(
                "{channels} channels and {outputs} outputs cannot be divided into {} and {} groups",
                self.groups,
                self.offset_groups
            );
        }
        if element_count(&[channels, high, wide])? > 0 && high * wide >= NOWHERE as usize {
            bail!("an image of {high} × {wide} pixels is too large");
        }
        element_count(&[channels, taps, rows, columns])?;
        let masks = element_count(&[self.offset_groups, taps, 2])? / 2;
        let fits = |input: Option<&[usize]>, dims: &[usize]| input.is_none_or(|input| input == dims);
        if w[1] != channels / self.groups
            || offset != [batch, 2 * masks, rows, columns]
            || result != [self.positions(0, image[0], kernel[0])?, self.positions(1, image[1], kernel[1])?]
            || !fits(bias, &[outputs])
            || !fits(mask, &[batch, masks, rows, columns])
        {
            let shown = |dims: Option<&[usize]>| dims.map_or_else(|| "none".to_string(), text);
            let (bias, mask) = (shown(bias), shown(mask));
            bail!("X {x:?}, W {w:?}, offsets {offset:?}, bias {bias} and mask {mask} do not fit each other");
        }
        Ok(DeformSizes { batch, channels, outputs, image, kernel, result })
    }

    /// The number of positions of the window along an axis.
    fn positions(&self, axis: usize, size: usize, kernel: usize) -> Result<usize> {
        let (stride, [before, after]) = (self.strides[axis], self.pads[axis]);
        let extent = window_extent(kernel, self.dilations[axis])?;
        let span =
            size.checked_add(before).and_then(|size| size.checked_add(after)).and_then(|size| size.checked_sub(extent));
        match span {
            Some(span) if stride > 0 => Ok(span / stride + 1),
            _ => bail!("a window of {extent} with stride {stride} does not fit into {size} elements and their padding"),
        }
    }
}
