//! Tensors that are generated from a few numbers.

use candle_plan_descriptors::cast::Source;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::extent::{count, one_element, text, Extent};
use crate::operator::{Arity, Needs, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::Array;

/// A tensor whose elements all equal input 1, one element of any dtype. Input 0 is its shape, `shape: int64 [rank]`.
///
/// Source: [ONNX ConstantOfShape](https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fill {}

impl Operator for Fill {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        inputs.one_element(1, "the value to fill with")?;
        let (rank, dtype) = (axes::length(inputs.tensor(0)?)?, inputs.tensor(1)?.dtype);
        Ok(vec![Type::Tensor(match axes::constant_dims(inputs, 0)? {
            Some(dims) => TensorType::sized(dtype, &dims),
            None => TensorType { dtype, shape: shape_of_rank(rank) },
        })])
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }
}

/// `Y[i] = start + i·delta` for `0 ≤ i < max(⌈(limit - start) / delta⌉, 0)`. Inputs: `start`, `limit` and `delta`, of
/// one element each. float16 and bfloat16 are computed in float32.
///
/// Source: [ONNX Range](https://onnx.ai/onnx/operators/onnx__Range.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {}

impl Operator for Range {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = inputs.tensor(0)?.dtype;
        if (1..3).any(|i| inputs.tensor(i).is_ok_and(|other| other.dtype != dtype)) {
            bail!("start, limit and delta must all be {dtype}");
        }
        (0..3).zip(RANGE).try_for_each(|(i, name)| inputs.one_element(i, name))?;
        dispatch!("Range", dtype, [f32, f64, f16, bf16, i16, i32, i64], T => {
            let elements = match [0, 1, 2].map(|i| inputs.constant(i)) {
                [Some(start), Some(limit), Some(delta)] => Some(Dim::Size(extent::<T>([start, limit, delta])?.2)),
                _ => None,
            };
            Ok(vec![Type::Tensor(TensorType { dtype, shape: Some(vec![elements]) })])
        })
    }

    fn needs(&self, _: usize) -> Needs {
        Needs::Numbers
    }
}

/// The names of the inputs of [`Range`].
const RANGE: [&str; 3] = ["start", "limit", "delta"];

/// An element type of a range, with its arithmetic.
pub(crate) trait Step: Element + Source {
    /// The number of elements from `start` to `limit` in steps of `delta`; `None` if `delta` is 0 or an input is NaN.
    fn count(start: Self, limit: Self, delta: Self) -> Option<f64>;
    /// `start + i·delta`.
    fn at(start: Self, delta: Self, i: usize) -> Self;
}

/// Returns the start, the step and the number of elements of a range, from the inputs start, limit and delta.
pub(crate) fn extent<T: Step>(inputs: [&Array; 3]) -> Result<(T, T, usize)> {
    let [start, limit, delta] = [0, 1, 2].map(|i| {
        one_element(RANGE[i], inputs[i].dims())?;
        inputs[i].read::<T>().map(|value| value[0])
    });
    let (start, limit, delta) = (start?, limit?, delta?);
    let Some(count) = T::count(start, limit, delta) else {
        bail!("a range from {start:?} to {limit:?} in steps of {delta:?} does not end");
    };
    Ok((start, delta, count.max(0.0) as usize))
}

/// A matrix of the shape of `X [M, N]` with ones on a diagonal and zeros elsewhere: `Y[i, i + k] = 1`.
///
/// Source: [ONNX EyeLike](https://onnx.ai/onnx/operators/onnx__EyeLike.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EyeLike {
    /// The element type of the result.
    pub dtype: DType,
    /// The diagonal: 0 is the main one, and a positive number is above it.
    pub k: i64,
}

impl Operator for EyeLike {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        if x.rank().is_some_and(|rank| rank != 2) {
            bail!("expected a matrix, found {}", inputs.get(0)?);
        }
        one_of(self.dtype)?;
        let shape = x.shape.clone().or_else(|| shape_of_rank(Some(2)));
        Ok(vec![Type::Tensor(TensorType { dtype: self.dtype, shape })])
    }

    fn needs(&self, _: usize) -> Needs {
        Needs::Dims
    }
}

/// The bits of the number 1.
pub(crate) fn one_of(dtype: DType) -> Result<u64> {
    Ok(match dtype {
        DType::Float16 => f16::ONE.to_bits().into(),
        DType::Bfloat16 => bf16::ONE.to_bits().into(),
        DType::Float32 => 1f32.to_bits().into(),
        DType::Float64 => 1f64.to_bits(),
        dtype if dtype.is_small_float() || dtype == DType::String => bail!("there is no {dtype} identity matrix"),
        _ => 1,
    })
}

/// `Y[…, d, …] = on` if `indices[…] = d`, else `off`; the new axis has size `depth`. Inputs: `indices`, `depth` (one
/// element), `values [2]` = `off, on` of any dtype. Negative indices count from `depth`. An index outside
/// `-depth .. depth` gives only `off`. Fractions are truncated.
///
/// Source: [ONNX OneHot](https://onnx.ai/onnx/operators/onnx__OneHot.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneHot {
    /// The position of the new axis in the result; a negative one counts from the end.
    pub axis: i64,
}

impl Operator for OneHot {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (indices, values) = (inputs.tensor(0)?, inputs.tensor(2)?);
        inputs.tensor(1)?;
        inputs.one_element(1, "depth")?;
        inputs.shape(2)?.map_or(Ok(()), |values| OneHot::check_values(values))?;
        let mut shape = indices.shape.clone();
        if let Some(shape) = &mut shape {
            let depth = inputs.constant(1).map(OneHot::depth).transpose()?;
            shape.insert(axes::resolve(self.axis, shape.len() + 1)?, depth.map(Dim::Size));
        }
        Ok(vec![Type::Tensor(TensorType { dtype: values.dtype, shape })])
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 1 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }
}

impl OneHot {
    /// The dimensions of the result, and the index of the new one.
    pub(crate) fn dims(&self, indices: &Array, depth: &Array) -> Result<(Vec<usize>, usize)> {
        let axis = axes::resolve(self.axis, indices.rank() + 1)?;
        let mut dims = indices.dims().to_vec();
        dims.insert(axis, OneHot::depth(depth)?);
        Ok((dims, axis))
    }

    /// The size of the new dimension.
    fn depth(depth: &Array) -> Result<usize> {
        one_element("depth", depth.dims())?;
        match depth.to_truncated()?[0] {
            size @ 0.. => Ok(size as usize),
            other => bail!("depth is {other}, which is not a size"),
        }
    }

    /// Checks that there are two values.
    pub(crate) fn check_values(values: &[impl Extent]) -> Result<()> {
        if count(values).is_some_and(|count| count != 2) {
            bail!("values have shape {}; they must be two numbers, [off, on]", text(values));
        }
        Ok(())
    }
}
