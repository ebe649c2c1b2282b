//! Images from sums of sliding blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::{check_steps, output_size};
use crate::axes;
use crate::bail;
use crate::error::Result;
use crate::extent::{count, fits, text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};

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
        if !(x.dtype.is_int() || crate::dtype::FLOATS.contains(&x.dtype)) {
            bail!("Col2Im is not defined for {}", x.dtype);
        }
        if x.rank().is_some_and(|rank| rank != 3) {
            bail!("X must be [N, C · kernel, windows], found {}", Type::Tensor(x.clone()));
        }
        check_steps(&self.strides, &self.dilations, 1)?;
        let lengths = [1, 2].map(|i| inputs.tensor(i).map(|list| list.shape.as_deref().and_then(count)));
        let [image, kernel] = lengths;
        self.check_axes(image?, kernel?)?;
        let mut shape = vec![None; 2 + self.strides.len()];
        shape[0] = x.shape.as_ref().and_then(|dims| dims[0].clone());
        if let [Some(image), Some(kernel)] = [1, 2].map(|i| inputs.constant(i)) {
            let x = x.shape.clone().unwrap_or_else(|| vec![None; 3]);
            let (_, dims) = self.windows(&x, &axes::dims(&image.to_i64()?)?, &axes::dims(&kernel.to_i64()?)?)?;
            for (dim, size) in shape.iter_mut().zip(dims).skip(1) {
                *dim = size.map(Dim::Size);
            }
        }
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }

    fn needs(&self, input: usize) -> Needs {
        Needs::numbers_after_first(input)
    }
}

impl Col2Im {
    /// Checks that the attributes, and lists of the image and the kernel of these lengths, are for one number of axes.
    fn check_axes(&self, image: Option<usize>, kernel: Option<usize>) -> Result<()> {
        let axes = self.strides.len();
        let lengths = [Some(axes), Some(self.dilations.len()), Some(self.pads.len()), image, kernel];
        if lengths.iter().any(|length| !fits(length, &axes)) {
            bail!("strides, dilations, pads, image and kernel must have one length: {}", text(&lengths));
        }
        Ok(())
    }

    /// The numbers of windows on each axis, and the dimensions of the result as far as they are known.
    pub(crate) fn windows(
        &self,
        x: &[impl Extent],
        image: &[usize],
        kernel: &[usize],
    ) -> Result<(Vec<usize>, Vec<Option<usize>>)> {
        self.check_axes(Some(image.len()), Some(kernel.len()))?;
        let mut windows = Vec::new();
        for a in 0..self.strides.len() {
            windows.push(output_size(image[a], kernel[a], self.strides[a], self.dilations[a], self.pads[a])?);
        }
        let [batch, rows, columns] = x else { bail!("X has shape {}, not [N, C · kernel, windows]", text(x)) };
        let taps = count(kernel).filter(|&taps| taps > 0 && rows.known().is_none_or(|rows| rows.is_multiple_of(taps)));
        match taps.filter(|_| fits(&count(&windows), columns)) {
            Some(taps) => {
                let channels = rows.known().map(|rows| rows / taps);
                let image = image.iter().copied().map(Some);
                Ok((windows, [batch.known(), channels].into_iter().chain(image).collect()))
            }
            None => bail!("{} does not hold the windows {windows:?} of kernel {kernel:?}", text(x)),
        }
    }
}
