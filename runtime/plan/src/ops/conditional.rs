//! Choices between elements.

use candle_plan_kernels::elementwise::{map, select};
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::program::{unary_in_place, Unary};
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::broadcast::{join, shape_of};
use crate::device::{has_few_dimensions, on_device};
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Arity, Call, Constants, Kernel, Types};
use crate::layout::{self, Blocked};
use crate::movable::Movable;
use crate::types::{TensorType, Type};
use crate::value::{room, Array, Value};
use crate::{bail, by_width, dispatch, words};

/// `Z = X where C, else Y`, element by element; `C: bool`, `X` and `Y`, which are of one type, broadcast as NumPy does.
///
/// Every element type. Source: [ONNX Where](https://onnx.ai/onnx/operators/onnx__Where.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Where {}

impl Kernel for Where {
    fn arity(&self) -> Arity {
        Arity::exact(3, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (condition, x, y) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if condition.dtype != DType::Bool {
            bail!("the condition is bool, not {}", condition.dtype);
        }
        if x.dtype != y.dtype {
            bail!("the two choices are of one type, not {} and {}", x.dtype, y.dtype);
        }
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape: shape_of(&[condition, x, y])? })])
    }

    on_device!("conditional" if |self, operands| {
        has_few_dimensions(operands) && operands.dtype(1).is_some_and(|dtype| dtype != DType::String)
    });

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let condition = call.tensor(0)?;
        let choices = Movable::new(&[call.value(1)?, call.value(2)?])?;
        let [x, y] = &choices.arrays[..] else { bail!("Where takes two choices") };
        let (dims, broadcast) = join(&[condition.dims(), x.dims(), y.dims()])?;
        let condition = condition.read::<Bool>()?;
        let condition: &[u8] = bytemuck::cast_slice(condition);
        let chosen = by_width!(x.dtype(), W => {
            let mut out = words::room::<W>(&dims)?;
            select(call.threads, &broadcast, (condition, words::read::<W>(x)?, words::read::<W>(y)?), &mut out);
            words::array(out, &dims, x.dtype())
        })?;
        Ok(vec![choices.restore(chosen)?])
    }
}

/// `Y = min(max(X, low), high)`, with `low` and `high` from inputs 1 and 2, of one element each; an absent one does not
/// bound. Where `low > high` everything is `high`; NaN stays NaN.
///
/// Source: [ONNX Clip](https://onnx.ai/onnx/operators/onnx__Clip.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clip {}

impl Kernel for Clip {
    fn arity(&self) -> Arity {
        Arity::inputs(1..=3)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        for i in [1, 2] {
            match inputs.optional_tensor(i)? {
                Some(bound) if bound.dtype != x.dtype => bail!("bounds of {} are not {}", x.dtype, bound.dtype),
                Some(bound) if bound.sizes().is_some_and(|sizes| sizes.iter().product::<usize>() != 1) => {
                    bail!("a bound has one element, not shape {:?}", bound.sizes().unwrap_or_default())
                }
                _ => {}
            }
        }
        let check = |_: DType| Ok(vec![Type::Tensor(x.clone())]);
        dispatch!("Clip", x.dtype, [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => check(T::DTYPE))
    }

    fn in_place(&self) -> &'static [usize] {
        &[0]
    }

    fn blocked(&self, operands: &Constants, outputs: &[Option<&Type>]) -> Option<Blocked> {
        layout::elementwise(self.clone(), operands, outputs)
    }

    on_device!("conditional");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let dtype = call.tensor(0)?.dtype();
        if dtype == DType::Float32 {
            return Ok(vec![clip_single(call)?.into()]);
        }
        let output = dispatch!("Clip", dtype, [f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            clip::<T>(call)
        })?;
        Ok(vec![output.into()])
    }
}

fn bound<T: Element>(call: &Call, i: usize) -> Result<Option<T>> {
    let Some(array) = call.optional_tensor(i)? else { return Ok(None) };
    match *array.read::<T>()? {
        [value] => Ok(Some(value)),
        _ => Err(Error::op(format!("a bound has one element, not shape {:?}", array.dims()))),
    }
}

fn clip_single(call: &mut Call) -> Result<Array> {
    let min = bound::<f32>(call, 1)?.unwrap_or(f32::NEG_INFINITY);
    let max = bound::<f32>(call, 2)?.unwrap_or(f32::INFINITY);
    let mut array = match call.take(0) {
        Some(array) => array,
        None => call.tensor(0)?.clone(),
    };
    let threads = call.threads;
    array.update::<f32>(|x| {
        threads.for_each_chunk(x, 32 * 1024, |_, x| unary_in_place(Isa::get(), Unary::Clip { min, max }, x));
        Ok(())
    })?;
    Ok(array)
}

fn clip<T: Element + PartialOrd>(call: &Call) -> Result<Array> {
    let (min, max) = (bound::<T>(call, 1)?, bound::<T>(call, 2)?);
    let x = call.read::<T>(0)?;
    let mut out = room(&[x.len()])?;
    map(call.threads, x, &mut out, |x| {
        let raised = min.filter(|min| *min > x).unwrap_or(x);
        max.filter(|max| *max < raised).unwrap_or(raised)
    });
    Array::new(out, call.tensor(0)?.dims())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn choices_broadcast_and_may_be_of_any_type() {
        let condition = tensor(&[Bool(1), Bool(0)], &[2, 1]);
        let inputs = [condition.clone(), tensor(&[1u16, 2, 3], &[3]), tensor(&[9u16], &[])];
        let output = run(&Where {}, &inputs.map(Some)).expect("it fits");
        assert_eq!(output.tensor().unwrap().dims(), [2, 3]);
        assert_eq!(output.tensor().unwrap().read::<u16>().unwrap(), [1, 2, 3, 9, 9, 9]);
        let strings = |words: &[&str], dims: &[usize]| {
            let data = words.iter().map(ToString::to_string).collect();
            Value::Strings(crate::value::Strings { dims: dims.to_vec(), data })
        };
        let inputs = [condition, strings(&["a"], &[1]), strings(&["b", "c"], &[2])];
        let Value::Strings(output) = run(&Where {}, &inputs.map(Some)).expect("it fits") else { panic!("strings") };
        assert_eq!((&*output.data, &output.dims[..]), (&["a", "a", "b", "c"].map(String::from)[..], &[2, 2][..]));
    }

    #[test]
    fn bounds_may_be_absent_or_crossed() {
        let x = tensor(&[-2.0f32, 0.5, f32::NAN, 9.0], &[4]);
        let scalar = |value: f32| Some(tensor(&[value], &[]));
        let cases: [(Option<Value>, Option<Value>, [f32; 4]); 4] = [
            (scalar(0.0), scalar(1.0), [0.0, 0.5, f32::NAN, 1.0]),
            (None, scalar(1.0), [-2.0, 0.5, f32::NAN, 1.0]),
            (None, None, [-2.0, 0.5, f32::NAN, 9.0]),
            (scalar(3.0), scalar(1.0), [1.0, 1.0, f32::NAN, 1.0]),
        ];
        for (low, high, expected) in cases {
            let output = run(&Clip {}, &[Some(x.clone()), low, high]).expect("it fits");
            assert_eq!(format!("{:?}", output.tensor().unwrap().read::<f32>().unwrap()), format!("{expected:?}"));
        }
        let output =
            run(&Clip {}, &[Some(tensor(&[1u8, 200], &[2])), None, Some(tensor(&[7u8], &[1]))]).expect("it fits");
        assert_eq!(output.tensor().unwrap().read::<u8>().unwrap(), [1, 7]);
        assert!(run(&Clip {}, &[Some(x), Some(tensor(&[1.0f32, 2.0], &[2]))]).is_err());
    }
}
