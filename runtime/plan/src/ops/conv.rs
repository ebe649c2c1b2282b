//! Convolutions over one and two spatial axes.

use candle_plan_descriptors::conv::Shape;
use candle_plan_descriptors::program::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::Padding;
use super::window::{check_bias, infer_window, Window};
use crate::bail;
use crate::dtype::{DType, FLOATS};
use crate::epilogue;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Type, Types};
use crate::work::{self, Work};

/// `Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · X[n, c, y·s + i·d − before, x·s + j·d − before]`, then the epilogue.
///
/// Inputs: `X [N, C, H, W]` or `[N, C, W]`, `W [O, C / groups, kernel…]`, `B [O]` or absent, then the epilogue's
/// operands. Group `g` of the outputs reads group `g` of the channels. `float16` and `bfloat16` are computed in
/// `float32` and rounded once. An epilogue needs `float32`.
///
/// Source: [ONNX Conv](https://onnx.ai/onnx/operators/onnx__Conv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conv {
    /// The step of the window on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each spatial axis.
    pub dilations: Vec<usize>,
    /// The padding of the input.
    pub pads: Padding,
    /// The number of groups.
    pub groups: usize,
    /// The program that finishes the result.
    pub epilogue: Option<Program>,
}

impl Operator for Conv {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=usize::MAX)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = float_operands(inputs, 3)?;
        epilogue::check(self.epilogue.as_ref(), inputs, dtype)?;
        Ok(vec![infer_window(&self.window(), inputs, dtype)?])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, products(inputs, outputs))
    }
}

impl Conv {
    pub(crate) fn window(&self) -> Window<'_> {
        Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads, groups: self.groups }
    }

    pub(crate) fn shape(&self, x: &[usize], w: &[usize], bias: Option<&[usize]>) -> Result<Shape> {
        let shape = self.window().shape(x, w)?;
        check_bias(bias, Some(shape.outputs))?;
        Ok(shape)
    }
}

/// The number of products of a convolution: `C / groups · kernel…` for each element of the output.
pub(crate) fn products(inputs: &Types, outputs: &[Type]) -> Option<u64> {
    let (w, y) = (inputs.tensor(1).ok()?, outputs.first()?.tensor().ok()?);
    Some(work::count(y)?.saturating_mul(work::product(w.sizes()?.get(1..)?)))
}

/// The common floating-point dtype of the first `count` inputs.
pub(crate) fn float_operands(inputs: &Types, count: usize) -> Result<DType> {
    let dtype = inputs.tensor(0)?.dtype;
    if !FLOATS.contains(&dtype) {
        bail!("X is {dtype}; allowed are float16, bfloat16, float32, float64");
    }
    inputs.tensor(1)?;
    for i in 1..count {
        if let Some(other) = inputs.optional_tensor(i)?.filter(|other| other.dtype != dtype) {
            bail!("input {i} is {}, and X is {dtype}", other.dtype);
        }
    }
    Ok(dtype)
}
