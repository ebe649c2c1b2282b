//! Tensors made from a few numbers.

use candle_plan_kernels::buffer::collected;
use candle_plan_kernels::cast::Source;
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::shape_of_rank;
use crate::axes;
use crate::bail;
use crate::by_width;
use crate::device::{Needs, on_device};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::float::NUMBERS;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::movable::Movable;
use crate::types::{Dim, TensorType, Type};
use crate::value::{with_room, Array, Value};
use crate::words;

/// A tensor of the shape in input 0, `shape: int64 [rank]`, every element of which is input 1, one element of any dtype.
///
/// Source: [ONNX ConstantOfShape](https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fill {}

impl Kernel for Fill {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let shape = shape_of_rank(axes::length(inputs.tensor(0)?)?);
        Ok(vec![Type::Tensor(TensorType { dtype: inputs.tensor(1)?.dtype, shape })])
    }

    on_device!("generate" if |self, operands| operands.dtype(1).is_some_and(|dtype| dtype != DType::String));

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dims = axes::dims(&axes::numbers(call.tensor(0)?)?)?;
        let data = Movable::new(&[call.value(1)?])?;
        let value = &data.arrays[0];
        let filled = by_width!(value.dtype(), W => {
            let &[element] = words::read::<W>(value)? else { bail!("{} values to fill with", value.len()) };
            let mut out = words::room::<W>(&dims)?;
            out.fill(element);
            words::array(out, &dims, value.dtype())
        });
        Ok(vec![data.restore(filled?)?])
    }
}

/// `Y[i] = start + i·delta` for `i` below `max(⌈(limit - start) / delta⌉, 0)`. Inputs: `start`, `limit`, `delta`, one
/// element each; float16 and bfloat16 are computed in float32.
///
/// Source: [ONNX Range](https://onnx.ai/onnx/operators/onnx__Range.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {}

impl Kernel for Range {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let dtype = inputs.tensor(0)?.dtype;
        if (1..3).any(|i| inputs.tensor(i).is_ok_and(|other| other.dtype != dtype)) {
            bail!("start, limit and delta are not all {dtype}");
        }
        dispatch!("Range", dtype, [f32, f64, f16, bf16, i16, i32, i64], T => Ok(vec![Type::ranked(T::DTYPE, 1)]))
    }

    on_device!("generate");

    fn needs(&self, _: usize) -> Needs {
        Needs::Numbers
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        dispatch!("Range", call.tensor(0)?.dtype(), [f32, f64, f16, bf16, i16, i32, i64], T => range::<T>(call))
    }
}

/// A number that a range is made of, and the type that its steps are computed in.
pub(crate) trait Step: Element + Source {
    /// How many elements there are from `start` to `limit` in steps of `delta`; `None` for a step of 0 or no number.
    fn count(start: Self, limit: Self, delta: Self) -> Option<f64>;
    /// `start + i·delta`.
    fn at(start: Self, delta: Self, i: usize) -> Self;
}

macro_rules! step {
    ($($number:ty as $wide:ty, $start:ident, $delta:ident, $i:ident => $at:expr;)*) => {
        $(impl Step for $number {
            fn count(start: Self, limit: Self, delta: Self) -> Option<f64> {
                let [start, limit, delta] = [start, limit, delta].map(<$wide>::from);
                let count = ((limit - start) as f64 / delta as f64).ceil();
                count.is_finite().then_some(count)
            }

            fn at($start: Self, $delta: Self, $i: usize) -> Self {
                $at
            }
        })*
    };
}

step! {
    f32 as f32, start, delta, i => start + i as f32 * delta;
    f64 as f64, start, delta, i => start + i as f64 * delta;
    f16 as f32, start, delta, i => f16::from_f32(start.to_f32() + i as f32 * delta.to_f32());
    bf16 as f32, start, delta, i => bf16::from_f32(start.to_f32() + i as f32 * delta.to_f32());
    i16 as i128, start, delta, i => start.wrapping_add((i as i16).wrapping_mul(delta));
    i32 as i128, start, delta, i => start.wrapping_add((i as i32).wrapping_mul(delta));
    i64 as i128, start, delta, i => start.wrapping_add((i as i64).wrapping_mul(delta));
}

/// Where a range begins, in which steps it goes on, and how many elements it has.
pub(crate) fn extent<T: Step>(call: &Call) -> Result<(T, T, usize)> {
    let (start, limit, delta) = (one::<T>(call, 0)?, one::<T>(call, 1)?, one::<T>(call, 2)?);
    let Some(count) = T::count(start, limit, delta) else {
        bail!("a range from {start:?} to {limit:?} in steps of {delta:?} does not end");
    };
    Ok((start, delta, count.max(0.0) as usize))
}

fn range<T: Step>(call: &Call) -> Result<Vec<Value>> {
    let (start, delta, count) = extent::<T>(call)?;
    let mut out = with_room::<T>(count)?;
    out.extend((0..count).map(|i| T::at(start, delta, i)));
    Ok(vec![Array::new(out, &[count])?.into()])
}

/// The one element of input `i`.
fn one<T: Element>(call: &Call, i: usize) -> Result<T> {
    match call.read::<T>(i)? {
        &[value] => Ok(value),
        values => bail!("input {i} has {} elements, where one is needed", values.len()),
    }
}

/// Ones on a diagonal of a matrix of `X`'s shape, zeros elsewhere: `Y[i, i + k] = 1`. Input: `X [M, N]`.
///
/// Source: [ONNX EyeLike](https://onnx.ai/onnx/operators/onnx__EyeLike.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EyeLike {
    /// The element type of the result.
    pub dtype: DType,
    /// The diagonal: 0 is the main one, positive ones lie above it.
    pub k: i64,
}

impl Kernel for EyeLike {
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

    on_device!("generate");

    fn needs(&self, _: usize) -> Needs {
        Needs::Dims
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let &[rows, columns] = call.value(0)?.dims()? else { bail!("expected a matrix") };
        let one = one_of(self.dtype)?;
        by_width!(self.dtype, W => {
            let mut out = words::room::<W>(&[rows, columns])?;
            out.fill(0);
            for row in 0..rows.min(out.len()) {
                let column = self.k.checked_add(row as i64).and_then(|column| usize::try_from(column).ok());
                if let Some(column) = column.filter(|&column| column < columns) {
                    out[row * columns + column] = one as W;
                }
            }
            Ok(vec![words::array(out, &[rows, columns], self.dtype)?.into()])
        })
    }
}

/// The bits of 1.
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

/// `Y[…, d, …] = on` where `indices[…] = d` (negative ones count from `depth`), `off` elsewhere; the new axis has size
/// `depth`. Inputs: `indices`, `depth` (one element), `values [2]` = `off, on` of any dtype. Indices outside
/// `-depth .. depth` give `off` only; fractions are cut off.
///
/// Source: [ONNX OneHot](https://onnx.ai/onnx/operators/onnx__OneHot.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneHot {
    /// The place of the new axis in the result; a negative one counts from the end.
    pub axis: i64,
}

impl Kernel for OneHot {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (indices, values) = (inputs.tensor(0)?, inputs.tensor(2)?);
        inputs.tensor(1)?;
        let mut shape = indices.shape.clone();
        if let Some(shape) = &mut shape {
            shape.insert(axes::resolve(self.axis, shape.len() + 1)?, None::<Dim>);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: values.dtype, shape })])
    }

    on_device!("generate" if |self, operands| {
        let is_number = |dtype| dtype == DType::Bool || NUMBERS.contains(&dtype);
        operands.dtype(0).is_some_and(is_number) && operands.dtype(2).is_some_and(|dtype| dtype != DType::String)
    });

    fn fault(&self) -> &'static str {
        "an index does not fit 64 bits"
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 1 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let indices = call.tensor(0)?;
        let (dims, axis) = self.dims(indices, call.tensor(1)?)?;
        let depth = dims[axis] as i64;
        let inner: usize = dims[axis + 1..].iter().product();
        let data = Movable::new(&[call.value(2)?])?;
        let hot = by_width!(data.arrays[0].dtype(), W => {
            let &[off, on] = words::read::<W>(&data.arrays[0])? else { bail!("values are not [off, on]") };
            let mut out = words::room::<W>(&dims)?;
            out.fill(off);
            for (i, index) in truncated(indices)?.into_iter().enumerate() {
                let class = if index < 0 { index.saturating_add(depth) } else { index };
                if (0..depth).contains(&class) {
                    out[(i / inner * depth as usize + class as usize) * inner + i % inner] = on;
                }
            }
            words::array(out, &dims, data.arrays[0].dtype())
        });
        Ok(vec![data.restore(hot?)?])
    }
}

impl OneHot {
    /// The result's dimensions, and which of them is new.
    pub(crate) fn dims(&self, indices: &Array, depth: &Array) -> Result<(Vec<usize>, usize)> {
        let depth = truncated(depth)?;
        let (axis, &[depth]) = (axes::resolve(self.axis, indices.rank() + 1)?, &depth[..]) else {
            bail!("the depth is {} numbers, where one is needed", depth.len());
        };
        let mut dims = indices.dims().to_vec();
        dims.insert(axis, axes::dims(&[depth])?[0]);
        Ok((dims, axis))
    }
}

/// Numbers as integers, fractions cut off.
fn truncated(array: &Array) -> Result<Vec<i64>> {
    match array.dtype() {
        DType::Float32 => Ok(collected(array.read::<f32>()?.iter().map(|&value| value as i64))),
        DType::Float64 => Ok(collected(array.read::<f64>()?.iter().map(|&value| value as i64))),
        DType::Float16 => Ok(collected(array.read::<f16>()?.iter().map(|value| value.to_f32() as i64))),
        DType::Bfloat16 => Ok(collected(array.read::<bf16>()?.iter().map(|value| value.to_f32() as i64))),
        _ => array.to_i64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn found<T: Element>(kernel: &dyn Kernel, inputs: &[Value]) -> Option<(Vec<usize>, Vec<T>)> {
        let inputs: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        let y = run(kernel, &inputs).ok()?;
        let y = y.tensor().expect("a tensor");
        let data = y.read::<T>().expect("its dtype").to_vec();
        Some((y.dims().to_vec(), data))
    }

    #[test]
    fn fills() {
        let fill = |dims: &[i64]| found::<i16>(&Fill {}, &[tensor(dims, &[dims.len()]), tensor(&[7i16], &[1])]);
        assert_eq!(fill(&[2, 1]), Some((vec![2, 1], vec![7, 7])));
        assert_eq!(fill(&[]), Some((vec![], vec![7])));
        assert_eq!(fill(&[3, 0]), Some((vec![3, 0], vec![])));
        assert_eq!(fill(&[-1]), None);
        assert_eq!(fill(&[1 << 50, 1 << 50]), None);
        assert_eq!(fill(&[1 << 58]), None);
    }

    fn range_of<T: Element>(numbers: [T; 3]) -> Option<Vec<T>> {
        found(&Range {}, &numbers.map(|number| tensor(&[number], &[]))).map(|(_, data)| data)
    }

    #[test]
    fn ranges() {
        assert_eq!(range_of([0i64, 5, 2]), Some(vec![0, 2, 4]));
        assert_eq!(range_of([10i32, 4, -2]), Some(vec![10, 8, 6]));
        assert_eq!(range_of([1i16, 1, 1]), Some(vec![]));
        assert_eq!(range_of([0f32, 1.0, 0.25]), Some(vec![0.0, 0.25, 0.5, 0.75]));
        assert_eq!(range_of([1f64, 0.0, -0.5]), Some(vec![1.0, 0.5]));
        assert_eq!(range_of([0i64, 5, 0]), None);
        assert_eq!(range_of([0f32, f32::INFINITY, 1.0]), None);
        assert_eq!(range_of([i64::MIN, i64::MAX, 1]), None);
        assert_eq!(range_of([i64::MAX - 1, i64::MIN, 5]), Some(vec![]));
    }

    #[test]
    fn identities() {
        let eye = |k| found::<f16>(&EyeLike { dtype: DType::Float16, k }, &[tensor(&[0u8; 6], &[2, 3])]);
        let bits = |bits: [u8; 6]| Some((vec![2, 3], bits.map(|bit| f16::from_f32(bit.into())).to_vec()));
        assert_eq!(eye(0), bits([1, 0, 0, 0, 1, 0]));
        assert_eq!(eye(-1), bits([0, 0, 0, 1, 0, 0]));
        assert_eq!(eye(2), bits([0, 0, 1, 0, 0, 0]));
        assert_eq!(eye(i64::MAX), bits([0; 6]));
    }

    #[test]
    fn one_hot() {
        let hot = |axis, depth: f32| {
            let indices = tensor(&[0.0f32, -1.0, 5.0, 1.9], &[2, 2]);
            found::<i8>(&OneHot { axis }, &[indices, tensor(&[depth], &[1]), tensor(&[3i8, 4], &[2])])
        };
        assert_eq!(hot(-1, 3.0), Some((vec![2, 2, 3], vec![4, 3, 3, 3, 3, 4, 3, 3, 3, 3, 4, 3])));
        assert_eq!(hot(0, 2.0), Some((vec![2, 2, 2], vec![4, 3, 3, 3, 3, 4, 3, 4])));
        assert_eq!(hot(1, 0.0), Some((vec![2, 0, 2], vec![])));
        assert_eq!(hot(3, 2.0), None);
        assert_eq!(hot(0, -2.0), None);
    }
}
