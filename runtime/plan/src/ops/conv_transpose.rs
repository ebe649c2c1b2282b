//! Transposed convolutions over one and two spatial axes.

use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conv::float_operands;
use super::padding::{check_steps, Padding};
use super::window::{check_ranks, out_dims};
use crate::epilogue;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::work::{self, Work};

/// `Y[n, o, y·s + i·d − before, x·s + j·d − before] += W[c, o, i, j] · X[n, c, y, x]` over the bias `B[o]`, then the
/// epilogue.
///
/// Inputs: `X [N, C, H, W]` or `[N, C, W]`, `W [C, O / groups, kernel…]`, `B [O]` or absent, then the epilogue's
/// operands.
///
/// With explicit pads, an axis of the output has
/// `(input − 1) · stride + output_padding + (kernel − 1) · dilation + 1 − pads` elements. With `output_shape`, it has
/// the given size, and with `SameUpper` and `SameLower`, it has `input · stride` elements. In these two cases, the pads
/// follow from the size: half of them at each end. If their number is odd, the extra one is at the end for `SameUpper`,
/// else at the beginning.
///
/// Source: [ONNX ConvTranspose](https://onnx.ai/onnx/operators/onnx__ConvTranspose.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvTranspose {
    /// The step between the outputs of neighboring inputs, on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window.
    pub dilations: Vec<usize>,
    /// The elements to cut off the output.
    pub pads: Padding,
    /// The number of elements to add at the end of the output.
    pub output_padding: Vec<usize>,
    /// The spatial sizes of the output, instead of explicit pads.
    pub output_shape: Option<Vec<usize>>,
    /// The number of groups.
    pub groups: usize,
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

impl Operator for ConvTranspose {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = float_operands(inputs, 3)?;
        epilogue::check(self.epilogue.as_ref(), inputs, dtype)?;
        let (x, w) = (inputs.tensor(0)?, inputs.tensor(1)?);
        check_steps(&self.strides, &self.dilations, self.groups)?;
        let Some(rank) = x.rank().or(w.rank()) else { return Ok(vec![Type::any(dtype)]) };
        check_ranks(rank, w.rank().unwrap_or(rank))?;
        self.check_lists(rank - 2)?;
        if let (Some(x), Some(w)) = (x.sizes(), w.sizes()) {
            let bias = inputs.optional_tensor(2)?.and_then(TensorType::sizes);
            let shape = self.shape(&x, &w, bias.as_deref())?;
            return Ok(vec![Type::Tensor(TensorType::sized(dtype, &out_dims(&shape, rank)))]);
        }
        let mut shape = vec![None; rank];
        shape[0] = x.shape.as_ref().and_then(|dims| dims[0].clone());
        shape[1] = w.size(1).and_then(|outputs| outputs.checked_mul(self.groups)).map(Dim::Size);
        for (a, dim) in shape.iter_mut().enumerate().skip(2) {
            let sizes = x.size(a).zip(w.size(a));
            *dim = sizes.map(|(x, w)| self.axis(a - 2, x, w)).transpose()?.map(|(size, _)| Dim::Size(size));
        }
        Ok(vec![Type::Tensor(TensorType { dtype, shape: Some(shape) })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let each = || Some(work::product(inputs.tensor(1).ok()?.sizes()?.get(1..)?));
        let products = || Some(work::count(inputs.tensor(0).ok()?)?.saturating_mul(each()?));
        Work::multiplying(inputs, outputs, products())
    }
}
