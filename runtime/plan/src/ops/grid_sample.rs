//! Images sampled at the points of a grid.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::Result;
use crate::extent::{fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};

/// Samples an image at the points of a grid: `Y[n, c, i, j]` is the image `X[n, c]` at the point `G[n, i, j] = (x, y)`.
/// Inputs: `X [N, C, H, W]` and a floating-point grid `G [N, Hout, Wout, 2]`; output: `Y [N, C, Hout, Wout]`.
/// Coordinates run from -1 to 1 over the width and the height.
///
/// Mode `Nearest` supports any dtype, and rounds halves to even; the other modes need floating-point tensors.
/// Coordinates are computed in float32 (float64 for a float64 grid), sums in float32 (float64 for float64).
/// Source: [ONNX GridSample](https://onnx.ai/onnx/operators/onnx__GridSample.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridSample {
    /// The interpolation between pixels.
    pub mode: Sampling,
    /// The pixels outside the image.
    pub outside: Outside,
    /// Whether -1 and 1 are the centers of the outermost pixels instead of their outer edges.
    pub align_corners: bool,
}

/// The interpolation between pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Sampling {
    /// The nearest pixel.
    Nearest,
    /// A linear combination of 2 × 2 pixels.
    Linear,
    /// The cubic convolution of 4 × 4 pixels with coefficient -0.75.
    Cubic,
}

/// The pixels outside an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outside {
    /// Zeros.
    Zeros,
    /// The nearest pixel of the border.
    Border,
    /// The image mirrored at its borders. With `align_corners`, a border is the pixels' centers, else their edges.
    Reflection,
}

impl Operator for GridSample {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, grid) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if self.mode != Sampling::Nearest && (!x.dtype.is_float() || x.dtype.is_small_float()) {
            bail!("{} values cannot be interpolated, only taken (mode nearest)", x.dtype);
        }
        if !grid.dtype.is_float() || grid.dtype.is_small_float() {
            bail!("the grid must be of floating-point numbers, not {}", grid.dtype);
        }
        let unknown = vec![None; 4];
        let [images, points] = [x, grid].map(|input| input.shape.as_ref().unwrap_or(&unknown));
        check_grid(images, points)?;
        let dim = |input: &TensorType, axis: usize| -> Option<Dim> { input.shape.as_ref()?.get(axis)?.clone() };
        let shape = vec![dim(x, 0), dim(x, 1), dim(grid, 1), dim(grid, 2)];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }
}

/// Checks that X is `[N, C, H, W]` and the grid `[N, Hout, Wout, 2]`.
pub(crate) fn check_grid(x: &[impl Extent], grid: &[impl Extent]) -> Result<()> {
    match (x, grid) {
        ([batch, _, _, _], [grids, _, _, two]) if fits(batch, grids) && fits(two, &2) => Ok(()),
        _ => {
            let (x, grid) = (text(x), text(grid));
            bail!("X has shape {x} and the grid {grid}; they must be [N, C, H, W] and [N, Hout, Wout, 2]")
        }
    }
}
