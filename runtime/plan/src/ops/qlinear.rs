//! Convolutions and matrix products of 8-bit codes with codes as results, each in one step.
//!
//! A code stands for `(code − zero) · scale`. Sums that fit 32 bits are exact; larger sums wrap around, but the
//! compiler makes no such step from floating-point operators. A sum is multiplied by the scales of the operands over
//! that of the result, which the compiler has combined into one factor, and rounded once, as in onnxruntime.

use candle_plan_descriptors::conv::Shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::padding::Padding;
use super::window::{check_bias, infer_window, Window};
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::one_or_each;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::Array;
use crate::work::Work;

/// `Y = clamp(round((conv(X − x_zero, W − w_zero) + B) · scale) + y_zero, low, high)`, with ties to even. Without
/// `y_zero`, `Y = (conv(X − x_zero, W − w_zero) + B) · scale` in `float32`. The padding of `X` is `x_zero`.
///
/// Inputs: `X [N, H, W, C]` or `[N, W, C]`, channels last, and `W [O, C / groups, kernel…]`, of `int8` or `uint8`;
/// `scale: float32`, one element or `[O]`; `x_zero`, one element, and `w_zero`, one element or `[O]`, of the types of
/// `X` and `W`; `y_zero` (optional), one element of `int8` or `uint8`, which is the type of the result; `B: int32 [O]`
/// (optional). Output: `Y [N, H', W', O]`.
///
/// Source: [ONNX QLinearConv](https://onnx.ai/onnx/operators/onnx__QLinearConv.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QLinearConv {
    /// The step of the window on each spatial axis.
    pub strides: Vec<usize>,
    /// The step inside the window on each spatial axis.
    pub dilations: Vec<usize>,
    /// The padding of the input.
    pub pads: Padding,
    /// The number of groups.
    pub groups: usize,
    /// The smallest code of the result.
    pub low: i32,
    /// The largest code of the result.
    pub high: i32,
}

/// `Y = clamp(round(((A − a_zero) · (B − b_zero) + C) · scale) + y_zero, low, high)`, with ties to even. Without
/// `y_zero`, `Y = ((A − a_zero) · (B − b_zero) + C) · scale` in `float32`.
///
/// Inputs: `A [batch…, M, K]` and `B [K, N]` of `int8` or `uint8`; `scale: float32`, one element or `[N]`; `a_zero`,
/// one element, and `b_zero`, one element or `[N]`, of the types of `A` and `B`; `y_zero` (optional), one element of
/// `int8` or `uint8`, which is the type of the result; `C: int32 [N]` (optional).
///
/// Source: [ONNX QLinearMatMul](https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QLinearMatMul {
    /// The smallest code of the result.
    pub low: i32,
    /// The largest code of the result.
    pub high: i32,
}

impl Operator for QLinearConv {
    fn arity(&self) -> Arity {
        Arity::inputs(5..=7)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = check(inputs, self.low, self.high)?;
        let (x, w) = (inputs.tensor(0)?, inputs.get(1)?);
        check_ends(inputs, w.tensor()?.size(0))?;
        let first = Type::Tensor(TensorType { dtype: x.dtype, shape: x.shape.as_deref().map(channels_second) });
        let y = infer_window(&self.window(), &Types::of(&[Some(&first), Some(w)], 1), dtype)?;
        let shape = y.tensor()?.shape.as_deref().map(channels_last);
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::conv::products(inputs, outputs))
    }
}

impl QLinearConv {
    fn window(&self) -> Window<'_> {
        Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads, groups: self.groups }
    }

    /// The sizes of a convolution of inputs of these dimensions.
    pub(crate) fn shape(&self, x: &[usize], w: &[usize]) -> Result<Shape> {
        self.window().shape(&channels_second(x), w)
    }
}

impl Operator for QLinearMatMul {
    fn arity(&self) -> Arity {
        Arity::inputs(5..=7)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = check(inputs, self.low, self.high)?;
        let (a, b) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if a.rank().is_some_and(|rank| rank < 2) || b.rank().is_some_and(|rank| rank != 2) {
            bail!(
                "A must have two dimensions or more, and B must be a matrix, found {} and {}",
                inputs.get(0)?,
                inputs.get(1)?
            );
        }
        if let (Some(shape), Some(depth)) = (&a.shape, b.size(0)) {
            match shape.last() {
                Some(Some(Dim::Size(columns))) if *columns != depth => {
                    bail!("a matrix of {columns} columns does not multiply one of {depth} rows")
                }
                _ => {}
            }
        }
        check_ends(inputs, b.size(1))?;
        let shape = a.shape.clone().map(|mut shape| {
            shape.pop();
            shape.push(b.size(1).map(Dim::Size));
            shape
        });
        Ok(vec![Type::Tensor(TensorType { dtype, shape })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        Work::multiplying(inputs, outputs, super::matmul::products(inputs, outputs, false))
    }
}

/// Checks the numbers of scales, zero points and biases, for `outputs` outputs if their number is known.
fn check_ends(inputs: &Types, outputs: Option<usize>) -> Result<()> {
    inputs.one_element(3, ZERO)?;
    inputs.one_element(5, ZERO)?;
    for (i, name) in [(2, "the scale"), (4, WEIGHTS_ZERO)] {
        inputs.shape(i)?.map_or(Ok(()), |dims| one_or_each(name, dims, outputs))?;
    }
    check_bias(inputs.shape(6)?.map(Vec::as_slice), outputs)
}

/// The names of a zero point of one element and of the weights' zero point in errors.
pub(crate) const ZERO: &str = "a zero point";
pub(crate) const WEIGHTS_ZERO: &str = "the weights' zero point";

/// Checks the dtypes of the inputs and the limits of the result, and returns the dtype of the result.
fn check(inputs: &Types, low: i32, high: i32) -> Result<DType> {
    for i in 0..2 {
        let dtype = check_codes(inputs, i)?;
        let zero = inputs.tensor(i + 3)?.dtype;
        if zero != dtype {
            bail!("the zero point of input {i} is {zero}, not {dtype}");
        }
    }
    let scale = inputs.tensor(2)?.dtype;
    if scale != DType::Float32 {
        bail!("the scale is {scale}, not float32");
    }
    if let Some(bias) = inputs.optional_tensor(6)?.filter(|bias| bias.dtype != DType::Int32) {
        bail!("the bias is {}, not int32", bias.dtype);
    }
    if inputs.optional(5).is_none() {
        return Ok(DType::Float32);
    }
    let dtype = check_codes(inputs, 5)?;
    check_limits(dtype, low, high)?;
    Ok(dtype)
}

/// Checks that codes of a dtype can lie between `low` and `high`.
pub(crate) fn check_limits(dtype: DType, low: i32, high: i32) -> Result<()> {
    let range = if dtype == DType::Int8 { -128..=127 } else { 0..=255 };
    if low > high || !range.contains(&low) || !range.contains(&high) {
        bail!("codes from {low} to {high} are not of {dtype}");
    }
    Ok(())
}

/// The dtype of input `i`, which must hold codes.
pub(crate) fn check_codes(inputs: &Types, i: usize) -> Result<DType> {
    match inputs.tensor(i)?.dtype {
        dtype @ (DType::Int8 | DType::Uint8) => Ok(dtype),
        dtype => bail!("input {i} is {dtype}; allowed are int8, uint8"),
    }
}

/// Whether codes are `int8`.
pub(crate) fn is_signed(codes: &Array) -> bool {
    codes.dtype() == DType::Int8
}

/// `[N, C, …]` from `[N, …, C]`.
fn channels_second<T: Clone>(dims: &[T]) -> Vec<T> {
    let mut dims = dims.to_vec();
    if let [_, _, ..] = dims[..] {
        dims[1..].rotate_right(1);
    }
    dims
}

/// `[N, …, C]` from `[N, C, …]`.
fn channels_last<T: Clone>(dims: &[T]) -> Vec<T> {
    let mut dims = dims.to_vec();
    if let [_, _, ..] = dims[..] {
        dims[1..].rotate_left(1);
    }
    dims
}
