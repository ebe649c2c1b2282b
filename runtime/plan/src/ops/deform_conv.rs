//! Convolutions whose window is bent by an input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::check_steps;
use crate::bail;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::Types;
use crate::types::{Dim, TensorType, Type};

/// `Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · M[n, i, j, y, x] · X(n, c, y·s + i·d − before + Δy, x·s + j·d − before + Δx)`,
/// with `(Δy, Δx) = D[n, i, j, :, y, x]`: `X` between pixels is the linear combination of 2 × 2 of them, those outside are
/// zeros.
///
/// Inputs: `X [N, C, H, W]`, `W [O, C / groups, kH, kW]`, the offsets `D [N, offset_groups · kH · kW · 2, Hout, Wout]`,
/// and, each optional, `B [O]` and the mask `M [N, offset_groups · kH · kW, Hout, Wout]`. Offset group `g` is for group
/// `g` of the channels. `float16` and `bfloat16` are computed in `float32` and rounded once.
///
/// Source: [ONNX DeformConv](https://onnx.ai/onnx/operators/onnx__DeformConv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeformConv {
    /// The step of the window along height and width.
    pub strides: [usize; 2],
    /// The step inside the window.
    pub dilations: [usize; 2],
    /// `[before, after]` along height and width.
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
        let dim = |input: &TensorType, axis: usize| -> Option<Dim> { input.shape.as_ref()?.get(axis)?.clone() };
        let shape = vec![dim(x, 0), dim(w, 0), dim(offset, 2), dim(offset, 3)];
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: Some(shape) })])
    }
}
