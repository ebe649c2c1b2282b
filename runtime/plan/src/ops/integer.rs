//! Products and convolutions of 8-bit integers with sums in `int32`, and requantization to 8 bits.
//!
//! Sums are exact. If no partial sum can exceed the integers that `f32` holds (2²⁴), they are computed in `f32`, which
//! is several times faster; otherwise in `int32`, which wraps around.

use candle_plan_descriptors::conv::Shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matmul::infer_product;
use super::padding::Padding;
use super::qlinear::WEIGHTS_ZERO;
use super::window::{check_bias, infer_window, Window};
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{check_broadcast, fits, one_or_each, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{TensorType, Type, Types};
use crate::value::Array;
use crate::work::Work;

/// `Y = (A − a_zero) · (B − b_zero)` in `int32`, with matrices and batches as in `MatMul`.
///
/// Inputs: `A [batch…, M, K]` and `B [batch…, K, N]` of `int8` or `uint8`; `a_zero` and `b_zero` (optional), of the
/// same types, which broadcast to `A` and `B`.
///
/// Source: [ONNX MatMulInteger](https://onnx.ai/onnx/operators/onnx__MatMulInteger.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatMulInteger {}

/// `Y = conv(X − x_zero, W − w_zero) + B` in `int32`. The padding of `X` is `x_zero`.
///
/// Inputs: `X [N, C, H, W]` or `[N, C, W]` and `W [O, C / groups, kernel…]` of `int8` or `uint8`; then, each optional,
/// `x_zero` of one element, `w_zero` of one element or `[O]`, and `B: int32 [O]`.
///
/// Source: [ONNX ConvInteger](https://onnx.ai/onnx/operators/onnx__ConvInteger.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvInteger {
    /// The step of the window on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each spatial axis.
    pub dilations: Vec<usize>,
    /// The padding of the input.
    pub pads: Padding,
    /// The number of groups.
    pub groups: usize,
}

/// `Y = saturate(round(X · a_scale · b_scale ÷ y_scale) + y_zero)`, with ties to even. The factors are combined first,
/// in `float32`.
///
/// Inputs: `X: int32`; `a_scale` and `b_scale: float32`, which broadcast to `X`; `y_scale: float32` and `y_zero: int8`
/// or `uint8`, of one element each. The result has the type of `y_zero`. After [`MatMulInteger`] or [`ConvInteger`],
/// this op computes [QLinearMatMul](https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html) or
/// [QLinearConv](https://onnx.ai/onnx/operators/onnx__QLinearConv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requantize {}

impl Operator for MatMulInteger {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=4)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_bytes(inputs)?;
        for i in 0..2 {
            if let (Some(x), Some(zero)) = (inputs.shape(i)?, inputs.shape(i + 2)?) {
                check_zero(zero, x)?;
            }
        }
        let shape = match (&inputs.tensor(0)?.shape, &inputs.tensor(1)?.shape) {
            (Some(a), Some(b)) => Some(infer_product(a, b)?),
            _ => None,
        };
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Int32, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::matmul::products(inputs, outputs, false))
    }
}

/// Checks that a zero point has one element, or broadcasts to `x`.
fn check_zero<D: Extent>(zero: &[D], x: &[D]) -> Result<()> {
    match zero.iter().all(|size| fits(size, &1)) {
        true => Ok(()),
        false => check_broadcast(zero, x),
    }
}

/// Whether `b` is a matrix with one zero point, or with one per column.
pub(crate) fn is_one_each(b: &Array, zero: Option<&Array>) -> bool {
    b.rank() == 2 && zero.is_none_or(|zero| zero.len() == 1 || zero.dims() == &b.dims()[1..])
}

impl Operator for ConvInteger {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_bytes(inputs)?;
        if let Some(bias) = inputs.optional_tensor(4)?.filter(|bias| bias.dtype != DType::Int32) {
            bail!("B is {}, not int32", bias.dtype);
        }
        if let (Some(x), Some(zero)) = (inputs.shape(0)?, inputs.shape(2)?) {
            check_zero(zero, x)?;
        }
        let outputs = inputs.tensor(1)?.size(0);
        inputs.shape(3)?.map_or(Ok(()), |zero| one_or_each(WEIGHTS_ZERO, zero, outputs))?;
        check_bias(inputs.shape(4)?.map(Vec::as_slice), outputs)?;
        let plain = Types::of(&inputs.inputs[..2], 1);
        Ok(vec![infer_window(&self.window(), &plain, DType::Int32)?])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::conv::products(inputs, outputs))
    }
}

impl ConvInteger {
    fn window(&self) -> Window<'_> {
        Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads, groups: self.groups }
    }

    /// The sizes of a convolution of inputs of these dimensions.
    pub(crate) fn shape(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        self.window().shape(x, w)
    }
}

/// Checks that the first two inputs are 8-bit integers, and that their zero points have the same types.
fn check_bytes(inputs: &Types) -> Result<()> {
    for i in 0..2 {
        let dtype = inputs.tensor(i)?.dtype;
        if !matches!(dtype, DType::Int8 | DType::Uint8) {
            bail!("input {i} is {dtype}; allowed are int8, uint8");
        }
        if let Some(zero) = inputs.optional_tensor(i + 2)?.filter(|zero| zero.dtype != dtype) {
            bail!("the zero point of input {i} is {}, not {dtype}", zero.dtype);
        }
    }
    Ok(())
}

impl Operator for Requantize {
    fn arity(&self) -> Arity {
        Arity::inputs(5..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        for (i, expected) in [(0, DType::Int32), (1, DType::Float32), (2, DType::Float32), (3, DType::Float32)] {
            let dtype = inputs.tensor(i)?.dtype;
            if dtype != expected {
                bail!("input {i} is {dtype}, not {expected}");
            }
        }
        let to = inputs.tensor(4)?.dtype;
        if !matches!(to, DType::Int8 | DType::Uint8) {
            bail!("the result would be {to}; allowed are int8, uint8");
        }
        for i in [1, 2] {
            if let (Some(dims), Some(scale)) = (&x.shape, inputs.shape(i)?) {
                check_broadcast(scale, dims)?;
            }
        }
        inputs.one_element(3, "the result's scale")?;
        inputs.one_element(4, "the result's zero point")?;
        Ok(vec![Type::Tensor(TensorType { dtype: to, shape: x.shape.clone() })])
    }
}
