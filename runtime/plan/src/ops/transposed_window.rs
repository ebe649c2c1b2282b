//! The sizes of a transposed convolution.

use candle_plan_descriptors::conv::Shape;

use crate::bail;
use crate::error::{Error, Result};
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::padding::{window_extent, Padding};
use crate::ops::window::{check_bias, check_ranks, image};

impl ConvTranspose {
    /// Checks that the attributes are for `axes` spatial axes.
    pub(crate) fn check_lists(&self, axes: usize) -> Result<()> {
        let lengths = [self.strides.len(), self.dilations.len(), self.output_padding.len()];
        let shape = self.output_shape.as_ref().map_or(axes, Vec::len);
        if lengths != [axes; 3] || shape != axes {
            bail!("strides, dilations, output padding or output shape do not fit {axes} spatial axes");
        }
        Ok(())
    }

    /// The sizes of the convolution that this op transposes. Input and output have the names that they have in this op.
    pub(crate) fn shape(&self, x: &[usize], w: &[usize], bias: Option<&[usize]>) -> Result<Shape> {
        check_ranks(x.len(), w.len())?;
        self.check_lists(x.len() - 2)?;
        if self.groups == 0 || !x[1].is_multiple_of(self.groups) || w[0] != x[1] {
            bail!("weights of shape {w:?} in {} groups do not fit {} channels", self.groups, x[1]);
        }
        let outputs = w[1].checked_mul(self.groups).ok_or_else(too_large)?;
        check_bias(bias, Some(outputs))?;
        let mut axes = Vec::new();
        for a in 0..x.len() - 2 {
            axes.push(self.axis(a, x[a + 2], w[a + 2])?);
        }
        let (output, before): (Vec<usize>, Vec<isize>) = axes.into_iter().unzip();
        let shape = Shape {
            batch: x[0],
            channels: x[1],
            outputs,
            groups: self.groups,
            input: image(&x[2..], 1),
            output: image(&output, 1),
            kernel: image(&w[2..], 1),
            strides: image(&self.strides, 1),
            dilations: image(&self.dilations, 1),
            before: image(&before, 0),
        };
        if shape.fits_transposed() {
            Ok(shape)
        } else {
            Err(too_large())
        }
    }

    /// The size of one axis of the output, and the number of elements cut off at its beginning.
    pub(crate) fn axis(&self, a: usize, input: usize, kernel: usize) -> Result<(usize, isize)> {
        let (stride, extra) = (self.strides[a], self.output_padding[a]);
        if stride == 0 {
            bail!("the stride must be at least 1");
        }
        let full = || {
            let reach = window_extent(kernel, self.dilations[a]).ok()?.checked_add(extra)?;
            input.saturating_sub(1).checked_mul(stride)?.checked_add(reach)
        };
        let full = full().filter(|&size| size < 1 << 40).ok_or_else(too_large)?;
        let wanted = match (&self.output_shape, &self.pads) {
            (Some(sizes), _) => sizes[a],
            (None, Padding::Explicit(pads)) => {
                let Some(&[before, after]) = pads.get(a) else { bail!("pads {pads:?} do not fit the spatial axes") };
                let size = before.checked_add(after).and_then(|cut| full.checked_sub(cut));
                let Some(size) = size else { bail!("pads {before} and {after} leave nothing of {full} elements") };
                return Ok((size, before as isize));
            }
            (None, _) => input.checked_mul(stride).ok_or_else(too_large)?,
        };
        let total = isize::try_from(wanted)
            .ok()
            .and_then(|wanted| (full as isize).checked_sub(wanted))
            .ok_or_else(too_large)?;
        let total = total.max(0);
        let before = if self.pads == Padding::SameUpper { total / 2 } else { total - total / 2 };
        Ok((wanted, before))
    }
}

fn too_large() -> Error {
    Error::op("the window, its strides and dilations or the output are too large")
}
