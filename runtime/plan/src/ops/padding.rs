//! The positions of a sliding window on an image, for convolutions and pooling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::{Error, Result};

/// The padding of a sliding window's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Padding {
    /// `[before, after]` for each spatial axis.
    Explicit(Vec<[usize; 2]>),
    /// The padding for which the output has size `ceil(input / stride)`; an odd element goes after the input.
    SameUpper,
    /// The padding for which the output has size `ceil(input / stride)`; an odd element goes before the input.
    SameLower,
}

impl Padding {
    /// The padding `[before, after]` of each spatial axis of an input of sizes `input`.
    ///
    /// # Errors
    /// The lists differ in length, a stride is zero, or a size overflows.
    pub fn resolve(
        &self,
        input: &[usize],
        kernel: &[usize],
        strides: &[usize],
        dilations: &[usize],
    ) -> Result<Vec<[usize; 2]>> {
        let axes = input.len();
        if kernel.len() != axes || strides.len() != axes || dilations.len() != axes {
            bail!("kernel {kernel:?}, strides {strides:?} and dilations {dilations:?} do not fit {axes} spatial axes");
        }
        match self {
            Padding::Explicit(pads) if pads.len() != axes => bail!("pads {pads:?} do not fit {axes} spatial axes"),
            Padding::Explicit(pads) => Ok(pads.clone()),
            Padding::SameUpper | Padding::SameLower => (0..axes)
                .map(|a| {
                    let total = same_padding(input[a], kernel[a], strides[a], dilations[a])?;
                    let (smaller, larger) = (total / 2, total.div_ceil(2));
                    Ok(if *self == Padding::SameUpper { [smaller, larger] } else { [larger, smaller] })
                })
                .collect(),
        }
    }
}

/// Checks the parameters that every sliding window has.
///
/// # Errors
/// A stride, a dilation or the number of groups is zero.
pub fn check_steps(strides: &[usize], dilations: &[usize], groups: usize) -> Result<()> {
    if strides.contains(&0) {
        bail!("a window needs a stride of at least 1, found {strides:?}");
    }
    if dilations.contains(&0) {
        bail!("a window needs a dilation of at least 1, found {dilations:?}");
    }
    if groups == 0 {
        bail!("there are 0 groups; at least 1 is needed");
    }
    Ok(())
}

/// The number of positions that a dilated window of `kernel` elements spans: `(kernel − 1) × dilation + 1`.
///
/// # Errors
/// The kernel or the dilation is zero, or the product overflows.
pub fn window_extent(kernel: usize, dilation: usize) -> Result<usize> {
    if kernel == 0 || dilation == 0 {
        bail!("a window needs a kernel and a dilation of at least 1, found {kernel} and {dilation}");
    }
    (kernel - 1).checked_mul(dilation).and_then(|reach| reach.checked_add(1)).ok_or_else(too_large)
}

/// The number of positions of a window along one axis: `floor((input + pads − extent) / stride) + 1`, or zero if the
/// window does not fit.
///
/// # Errors
/// A stride, kernel or dilation is zero, or a size overflows.
pub fn output_size(input: usize, kernel: usize, stride: usize, dilation: usize, pads: [usize; 2]) -> Result<usize> {
    let padded = padded_size(input, stride, pads)?;
    Ok(padded.checked_sub(window_extent(kernel, dilation)?).map_or(0, |padded| padded / stride + 1))
}

/// [`output_size`], rounded up. The last window may extend past the padding, but must begin inside the input or the
/// padding before it.
///
/// # Errors
/// As [`output_size`].
pub fn output_size_ceil(
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pads: [usize; 2],
) -> Result<usize> {
    let padded = padded_size(input, stride, pads)?.checked_add(stride - 1).ok_or_else(too_large)?;
    let count = padded.checked_sub(window_extent(kernel, dilation)?).map_or(0, |padded| padded / stride + 1);
    let last_is_outside = count > 0 && (count - 1) * stride >= input + pads[0];
    Ok(if last_is_outside { count - 1 } else { count })
}

/// The size of the padded input.
fn padded_size(input: usize, stride: usize, pads: [usize; 2]) -> Result<usize> {
    if stride == 0 {
        bail!("a window needs a stride of at least 1");
    }
    pads[0].checked_add(pads[1]).and_then(|pad| pad.checked_add(input)).ok_or_else(too_large)
}

fn same_padding(input: usize, kernel: usize, stride: usize, dilation: usize) -> Result<usize> {
    if stride == 0 {
        bail!("a window needs a stride of at least 1");
    }
    let last_begin = input.div_ceil(stride).saturating_sub(1) * stride;
    let end = last_begin.checked_add(window_extent(kernel, dilation)?).ok_or_else(too_large)?;
    Ok(end.saturating_sub(input))
}

fn too_large() -> Error {
    Error::op("the window or its padding is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_makes_the_output_the_input_over_the_stride() {
        for (input, kernel, stride, dilation, upper) in [
            (5, 3, 1, 1, [1, 1]),
            (5, 3, 2, 1, [1, 1]),
            (6, 3, 2, 1, [0, 1]),
            (4, 2, 1, 1, [0, 1]),
            (7, 1, 4, 1, [0, 0]),
            (7, 3, 1, 2, [2, 2]),
            (7, 2, 2, 3, [1, 2]),
        ] {
            let resolve = |padding: Padding| padding.resolve(&[input], &[kernel], &[stride], &[dilation]).unwrap()[0];
            assert_eq!(resolve(Padding::SameUpper), upper);
            assert_eq!(resolve(Padding::SameLower), [upper[1], upper[0]]);
            assert_eq!(output_size(input, kernel, stride, dilation, upper).unwrap(), input.div_ceil(stride));
        }
    }

    #[test]
    fn rounding_up_keeps_windows_that_begin_inside() {
        for (input, kernel, stride, pads, floor, ceil) in [
            (6, 3, 2, [0, 0], 2, 3),
            (7, 3, 2, [0, 0], 3, 3),
            (4, 1, 3, [0, 0], 2, 2),
            (3, 1, 2, [0, 2], 3, 2),
            (2, 1, 2, [0, 1], 2, 1),
            (5, 2, 3, [0, 0], 2, 2),
            (6, 2, 3, [0, 0], 2, 2),
            (2, 3, 1, [0, 0], 0, 0),
            (2, 3, 2, [0, 0], 0, 1),
        ] {
            assert_eq!(output_size(input, kernel, stride, 1, pads).unwrap(), floor, "{input} {kernel} {stride}");
            assert_eq!(output_size_ceil(input, kernel, stride, 1, pads).unwrap(), ceil, "{input} {kernel} {stride}");
        }
    }

    #[test]
    fn impossible_windows_are_refused() {
        assert!(output_size(4, 0, 1, 1, [0, 0]).is_err());
        assert!(output_size(4, 1, 0, 1, [0, 0]).is_err());
        assert!(output_size(4, 1, 1, 0, [0, 0]).is_err());
        assert!(output_size(4, 1, 1, 1, [usize::MAX, 1]).is_err());
        assert!(output_size(4, usize::MAX, 1, 3, [0, 0]).is_err());
        assert!(Padding::Explicit(vec![[0, 0]]).resolve(&[4, 4], &[1, 1], &[1, 1], &[1, 1]).is_err());
    }
}
