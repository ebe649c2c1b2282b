//! Linear quantization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::axes;
use crate::bail;
use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{all_fit, count, fits, text, Extent};
use crate::operator::{Arity, Operator};
use crate::ops::cast::format_of;
use crate::types::{TensorType, Type, Types};

/// `Y = saturate(round(X ÷ scale) + zero)`, with ties to even. If `Y` is a small float, it is the one nearest to
/// `X ÷ scale + zero`.
///
/// Inputs: `X`, of any shape; `scale` and `zero` (optional), of one element, of one element for each index of `axis`,
/// or of the shape of `X` with `ceil(size ÷ block)` elements along `axis`.
///
/// Source: [ONNX QuantizeLinear](https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuantizeLinear {
    /// The type of the result.
    pub to: DType,
    /// The axis of the scales; a negative one counts from the end.
    pub axis: i64,
    /// The number of neighbors along `axis` that share a scale; 0 if the scales are not blocked.
    pub block: usize,
    /// For 8-bit floats: whether a number that is too large becomes the largest number.
    pub saturate: bool,
    /// The type to whose precision `X ÷ scale` is rounded.
    pub precision: DType,
}

/// `Y = (X − zero)·scale`, with `scale` and `zero` as in [`QuantizeLinear`].
///
/// Source: [ONNX DequantizeLinear](https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DequantizeLinear {
    /// The type of the result, a floating-point type.
    pub to: DType,
    /// The axis of the scales; a negative one counts from the end.
    pub axis: i64,
    /// The number of neighbors along `axis` that share a scale; 0 if the scales are not blocked.
    pub block: usize,
}

/// Quantizes `X: float32` to `Y: uint8`, with `scale: float32 []` and `zero: uint8 []` such that zero and every element
/// are in range.
///
/// Source: [ONNX DynamicQuantizeLinear](https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DynamicQuantizeLinear {}

impl Operator for QuantizeLinear {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, scale) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if !matches!(x.dtype, DType::Float32 | DType::Float16 | DType::Bfloat16 | DType::Int32) {
            bail!("X must be float32, float16, bfloat16 or int32, not {}", x.dtype);
        }
        if limits(self.to).is_none() && format_of(self.to).is_none() {
            bail!("cannot quantize to {}", self.to);
        }
        check_scale(scale)?;
        if let Some(zero) = inputs.optional_tensor(2)?.filter(|zero| zero.dtype != self.to) {
            bail!("the zero point is {}, but the result is {}", zero.dtype, self.to);
        }
        Spread::check_inputs(inputs, self.axis, self.block)?;
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }
}

impl Operator for DequantizeLinear {
    fn arity(&self) -> Arity {
        Arity::inputs(2..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if limits(x.dtype).is_none() && format_of(x.dtype).is_none() && x.dtype != DType::Int32 {
            bail!("cannot dequantize {}", x.dtype);
        }
        if !matches!(self.to, DType::Float32 | DType::Float16 | DType::Bfloat16) {
            bail!("the result must be float32, float16 or bfloat16, not {}", self.to);
        }
        check_scale(inputs.tensor(1)?)?;
        if let Some(zero) = inputs.optional_tensor(2)?.filter(|zero| zero.dtype != x.dtype) {
            bail!("the zero point is {}, but the input is {}", zero.dtype, x.dtype);
        }
        Spread::check_inputs(inputs, self.axis, self.block)?;
        Ok(vec![Type::Tensor(TensorType { dtype: self.to, shape: x.shape.clone() })])
    }
}

impl Operator for DynamicQuantizeLinear {
    fn arity(&self) -> Arity {
        Arity::exact(1, 3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.dtype != DType::Float32 {
            bail!("X must be float32, not {}", x.dtype);
        }
        let y = TensorType { dtype: DType::Uint8, shape: x.shape.clone() };
        Ok(vec![Type::Tensor(y), Type::ranked(DType::Float32, 0), Type::ranked(DType::Uint8, 0)])
    }
}

/// The smallest and the largest code of an integer type of codes.
pub(crate) fn limits(dtype: DType) -> Option<(i32, i32)> {
    Some(match dtype {
        DType::Int8 => (-128, 127),
        DType::Uint8 => (0, 255),
        DType::Int16 => (-32768, 32767),
        DType::Uint16 => (0, 65535),
        DType::Int4 => (-8, 7),
        DType::Uint4 => (0, 15),
        DType::Int2 => (-2, 1),
        DType::Uint2 => (0, 3),
        _ => return None,
    })
}

/// The type with arithmetic that stores a type's codes.
pub(crate) fn storage(dtype: DType) -> DType {
    match dtype {
        DType::Int4 | DType::Int2 => DType::Int8,
        DType::Uint4 | DType::Uint2 => DType::Uint8,
        other => other,
    }
}

fn check_scale(scale: &TensorType) -> Result<()> {
    let known = matches!(scale.dtype, DType::Float32 | DType::Float16 | DType::Bfloat16 | DType::Float8E8M0Fnu);
    if !(known || scale.dtype == DType::Int32) {
        bail!("the scale must be float32, float16, bfloat16, float8_e8m0fnu or int32, not {}", scale.dtype);
    }
    Ok(())
}

/// The assignment of scales to elements: `X` is viewed as `[outer, size, inner]` around the axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub outer: usize,
    pub size: usize,
    pub inner: usize,
    /// The number of neighbors along the axis that share a scale.
    pub block: usize,
    pub(crate) kind: Granularity,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Granularity {
    One,
    Axis,
    Blocked,
}

impl Spread {
    /// The assignment for an `X` of shape `dims`, and scales and zero points of these shapes.
    ///
    /// # Errors
    /// The shapes do not fit.
    pub fn new(dims: &[usize], scale: &[usize], zero: Option<&[usize]>, axis: i64, block: usize) -> Result<Spread> {
        Spread::check(dims, scale, zero, axis, block)?;
        if block == 0 && scale.iter().all(|&size| size == 1) {
            let size = dims.iter().product();
            return Ok(Spread { outer: 1, size: 1, inner: size, block: 1, kind: Granularity::One });
        }
        let axis = axes::resolve(axis, dims.len())?;
        let (outer, size, inner) = (dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product());
        let kind = if block == 0 { Granularity::Axis } else { Granularity::Blocked };
        Ok(Spread { outer, size, inner, block: block.max(1), kind })
    }

    /// Checks that scales and zero points of these shapes fit an `X` of shape `dims`.
    fn check<D: Extent>(dims: &[D], scale: &[D], zero: Option<&[D]>, axis: i64, block: usize) -> Result<()> {
        let (scales, zeros) = (count(scale), zero.and_then(|zero| count(zero)));
        if scales == Some(0) {
            bail!("scales of shape {} have no elements; at least one is needed", text(scale));
        }
        if let Some(zero) = zero.filter(|_| !fits(&scales, &zeros)) {
            bail!("scales of shape {} and zero points of shape {} differ in number", text(scale), text(zero));
        }
        if block == 0 && scale.iter().all(|size| fits(size, &1)) {
            return Ok(());
        }
        let axis = axes::resolve(axis, dims.len())?;
        let mut expected: Vec<_> = dims.iter().map(Extent::known).collect();
        expected[axis] = if block == 0 { expected[axis] } else { expected[axis].map(|size| size.div_ceil(block)) };
        if !all_fit(scale, if block == 0 { &expected[axis..=axis] } else { &expected }) {
            let (scale, dims) = (text(scale), text(dims));
            bail!("scales of shape {scale} do not fit {dims} along axis {axis} in blocks of {}", block.max(1));
        }
        Ok(())
    }

    /// Checks the shapes of a step's inputs: `X`, scales, zero points.
    fn check_inputs(inputs: &Types, axis: i64, block: usize) -> Result<()> {
        match (inputs.shape(0)?, inputs.shape(1)?) {
            (Some(x), Some(scale)) => Spread::check(x, scale, inputs.shape(2)?.map(Vec::as_slice), axis, block),
            _ => Ok(()),
        }
    }

    /// Whether each element of a row has its own scale.
    pub fn is_blocked(&self) -> bool {
        self.kind == Granularity::Blocked
    }
}
