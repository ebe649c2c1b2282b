//! Images from sums of sliding blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::{check_steps, output_size};
use crate::bail;
use crate::error::{Error, Result};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{TensorType, Type, Types};

/// `Y[n, c, p·s + i·d − before] += X[n, (c, i), p]`: adds each element of a sliding window's columns at its place in
/// the image.
///
/// Inputs: `X [N, C · Πkernel, windows]`, with windows in row-major order; `image: int64 [axes]`, the spatial sizes of
/// the result; `kernel: int64 [axes]`. Any number of axes is possible. The result is `[N, C, image…]`. `float16` and
/// `bfloat16` are summed in `float32` and rounded once; integers wrap around.
///
/// Source: [ONNX Col2Im](https://onnx.ai/onnx/operators/onnx__Col2Im.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Col2Im {
    /// The step of the window on each axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each axis.
    pub dilations: Vec<usize>,
    /// `[before, after]`: the padding of the image on each axis.
    pub pads: Vec<[usize; 2]>,
}

impl Operator for Col2Im {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if !(x.dtype.is_int() || crate::float::FLOATS.contains(&x.dtype)) {
            bail!("Col2Im is not defined for {}", x.dtype);
        }
        if x.rank().is_some_and(|rank| rank != 3) {
            bail!("X must be [N, C · kernel, windows], found {}", Type::Tensor(x.clone()));
        }
        check_steps(&self.strides, &self.dilations, 1)?;
        let mut shape = vec![None; 2 + self.strides.len()];
        shape[0] = x.shape.as_ref().and_then(|dims| dims[0].clone());
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Elements
        } else {
            Needs::Numbers
        }
    }
}

impl Col2Im {
    /// The number of windows on each axis, and the dimensions of the result.
    pub(crate) fn windows(&self, x: &[usize], image: &[usize], kernel: &[usize]) -> Result<(Vec<usize>, Vec<usize>)> {
        let axes = self.strides.len();
        if [self.dilations.len(), self.pads.len(), image.len(), kernel.len()] != [axes; 4] {
            bail!("image {image:?}, kernel {kernel:?}, strides, dilations and pads are not for one number of axes");
        }
        let mut windows = Vec::new();
        for a in 0..axes {
            windows.push(output_size(image[a], kernel[a], self.strides[a], self.dilations[a], self.pads[a])?);
        }
        let product = |sizes: &[usize]| sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        let &[batch, rows, columns] = x else { bail!("X has shape {x:?}, not [N, C · kernel, windows]") };
        let taps = product(kernel).filter(|&taps| taps > 0 && rows.is_multiple_of(taps));
        match taps.filter(|_| product(&windows) == Some(columns)) {
            Some(taps) => Ok((windows, [&[batch, rows / taps], image].concat())),
            None => Err(Error::op(format!("{x:?} does not hold the windows {windows:?} of kernel {kernel:?}"))),
        }
    }
}
