//! Order along an axis: the places of extrema, and the k greatest or smallest elements.

use candle_plan_kernels::buffer::filled;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::scratch::Scratch;
use candle_plan_kernels::threads::Threads;
use candle_plan_kernels::topk::{Order, Ranked};
use half::{bf16, f16};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Needs, on_device};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::float::{require_dtype, NUMBERS};
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::{Dim, TensorType, Type};
use crate::value::{room, Array, Value};
use crate::{axes, bail, dispatch};

/// Elements that make a task of their own.
const TASK: usize = 1 << 14;

/// Which extremum [`ArgReduce`] looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ArgReduction {
    /// The largest element.
    ArgMax,
    /// The smallest element.
    ArgMin,
}

/// `Y = index along axis of the extremum of X`. X `[D0, …]`; Y int64, of size 1 in the axis, or without it.
///
/// A NaN is never an extremum, unless it is the first element. Source:
/// [ONNX ArgMax](https://onnx.ai/onnx/operators/onnx__ArgMax.html), [ONNX
/// ArgMin](https://onnx.ai/onnx/operators/onnx__ArgMin.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgReduce {
    /// The function.
    pub function: ArgReduction,
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// Whether the axis stays, with size 1.
    pub keepdims: bool,
    /// Of equal elements, whether the last one counts and not the first.
    pub select_last_index: bool,
}

impl Kernel for ArgReduce {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &NUMBERS)?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let axis = axes::resolve(self.axis, shape.len())?;
            if self.keepdims {
                shape[axis] = Some(Dim::Size(1));
            } else {
                shape.remove(axis);
            }
        }
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Int64, shape })])
    }

    on_device!("reduce_place");

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let (dims, split) = self.dims_and_split(x.dims())?;
        let y = dispatch!("ArgReduce", x.dtype(), [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            let x = x.read::<T>()?;
            Ok(match (self.function, self.select_last_index) {
                (ArgReduction::ArgMax, false) => places(call.threads, x, split, |v: T, best| v > best),
                (ArgReduction::ArgMax, true) => places(call.threads, x, split, |v: T, best| v >= best),
                (ArgReduction::ArgMin, false) => places(call.threads, x, split, |v: T, best| v < best),
                (ArgReduction::ArgMin, true) => places(call.threads, x, split, |v: T, best| v <= best),
            })
        })?;
        Ok(vec![Array::new(y, &dims)?.into()])
    }
}

impl ArgReduce {
    /// The dimensions of Y, and `[outer, n, inner]` of X.
    pub(crate) fn dims_and_split(&self, x: &[usize]) -> Result<(Vec<usize>, [usize; 3])> {
        let split = axes::split(x, self.axis)?;
        if split[1] == 0 && split[0] * split[2] > 0 {
            bail!("axis {} of {x:?} has no elements to choose from", self.axis);
        }
        let mut dims = x.to_vec();
        let axis = axes::resolve(self.axis, dims.len())?;
        if self.keepdims {
            dims[axis] = 1;
        } else {
            dims.remove(axis);
        }
        Ok((dims, split))
    }
}

/// The place of the element of each column that beats all before it.
fn places<T: Element>(
    threads: &Threads,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    beats: impl Fn(T, T) -> bool + Sync,
) -> Vec<i64> {
    let mut out = filled(0i64, outer * inner);
    let block = n * inner;
    let together = (TASK / block.max(1)).max(1);
    threads.for_each_chunk(&mut out, together * inner, |task, out| {
        let blocks = x[task * together * block..].chunks_exact(block.max(1));
        for (x, out) in blocks.zip(out.chunks_exact_mut(inner.max(1))) {
            let (first, rest) = x.split_at(inner);
            let mut best = Scratch::of(first.iter().copied());
            for (k, row) in (1..).zip(rest.chunks_exact(inner.max(1))) {
                for ((&v, best), place) in row.iter().zip(best.iter_mut()).zip(out.iter_mut()) {
                    if beats(v, *best) {
                        (*best, *place) = (v, k);
                    }
                }
            }
        }
    });
    out
}

/// `Values, Indices = the k greatest (or smallest) elements of X along axis, in order, and where they stand`. X
/// `[…, D, …]`, k int64 `[1]`; Values of X's dtype and Indices int64 `[…, k, …]`.
///
/// Of equal elements the one of the smaller index comes first. NaN counts as greater than every number. Source:
/// [ONNX TopK](https://onnx.ai/onnx/operators/onnx__TopK.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopK {
    /// The axis; a negative one counts from the end.
    pub axis: i64,
    /// Whether the greatest elements are wanted, and not the smallest.
    pub largest: bool,
}

impl Kernel for TopK {
    fn arity(&self) -> Arity {
        Arity { inputs: 2..=2, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, k) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &NUMBERS)?;
        require_dtype("K", k.dtype, &[DType::Int64])?;
        let mut shape = x.shape.clone();
        if let Some(shape) = &mut shape {
            let axis = axes::resolve(self.axis, shape.len())?;
            shape[axis] = None;
        }
        let indices = Type::Tensor(TensorType { dtype: DType::Int64, shape: shape.clone() });
        let values = Type::Tensor(TensorType { dtype: x.dtype, shape });
        Ok(vec![values, indices].into_iter().take(inputs.outputs).collect())
    }

    on_device!("topk");

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let Wanted { dims, split, k } = self.wanted(call)?;
        let order = Order { dims: split, k, largest: self.largest };
        dispatch!("TopK", x.dtype(), [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            let (mut values, mut indices) = (room::<T>(&dims)?, room(&dims)?);
            T::top(Isa::get(), call.threads, x.read()?, order, &mut values, &mut indices);
            Ok(vec![Array::new(values, &dims)?.into(), Array::new(indices, &dims)?.into()])
        })
    }
}

/// What [`TopK`] gives.
pub(crate) struct Wanted {
    /// The dimensions of both outputs.
    pub dims: Vec<usize>,
    /// `[outer, n, inner]` of X.
    pub split: [usize; 3],
    pub k: usize,
}

impl TopK {
    /// What is to be given.
    pub(crate) fn wanted(&self, call: &Call) -> Result<Wanted> {
        let (x, k) = (call.tensor(0)?, call.tensor(1)?.to_i64()?);
        let mut dims = x.dims().to_vec();
        let axis = axes::resolve(self.axis, dims.len())?;
        let split = axes::split(&dims, self.axis)?;
        let wanted = match k[..] {
            [k] => usize::try_from(k).ok().filter(|&k| k <= dims[axis]),
            _ => None,
        };
        let Some(wanted) = wanted else { bail!("K is {k:?}; axis {axis} has {} elements", dims[axis]) };
        dims[axis] = wanted;
        Ok(Wanted { dims, split, k: wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    #[test]
    fn the_first_or_the_last_extremum_counts() {
        let nan = f32::NAN;
        let rows = [[1.0, 3.0, 3.0], [nan, 1.0, 2.0], [1.0, nan, 2.0], [2.0, 2.0, 2.0]];
        for (function, select_last_index, expected) in [
            (ArgReduction::ArgMax, false, [1, 0, 2, 0]),
            (ArgReduction::ArgMax, true, [2, 0, 2, 2]),
            (ArgReduction::ArgMin, false, [0, 0, 0, 0]),
            (ArgReduction::ArgMin, true, [0, 0, 0, 2]),
        ] {
            let op = ArgReduce { function, axis: -1, keepdims: false, select_last_index };
            let y = run(&op, &[Some(tensor(&rows.concat(), &[4, 3]))]).expect("runs");
            assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), expected, "{op:?}");
            let columns: Vec<f32> = (0..3).flat_map(|k| rows.map(|row| row[k])).collect();
            let op = ArgReduce { axis: 0, keepdims: true, ..op };
            let y = run(&op, &[Some(tensor(&columns, &[3, 4]))]).expect("runs");
            assert_eq!(y.tensor().and_then(Array::to_i64).expect("integers"), expected, "{op:?}");
            assert_eq!(y.tensor().expect("a tensor").dims(), [1, 4]);
        }
    }

    #[test]
    fn nothing_has_no_extremum() {
        let op = ArgReduce { function: ArgReduction::ArgMax, axis: 1, keepdims: true, select_last_index: false };
        assert!(run(&op, &[Some(tensor::<i8>(&[], &[2, 0]))]).is_err());
        assert!(run(&op, &[Some(tensor::<i8>(&[], &[0, 0]))]).is_ok());
        assert!(run(&op, &[Some(tensor(&[true].map(crate::dtype::Bool::from), &[1, 1]))]).is_err());
    }

    #[test]
    fn top_k_orders_by_value_then_by_place() {
        let x = [2.0f32, f32::NAN, 5.0, 2.0, 7.0, -1.0];
        for (largest, k, values, indices) in [
            (true, 0, &[][..], &[][..]),
            (true, 3, &[f32::NAN, 7.0, 5.0], &[1, 4, 2]),
            (true, 5, &[f32::NAN, 7.0, 5.0, 2.0, 2.0], &[1, 4, 2, 0, 3]),
            (false, 3, &[-1.0, 2.0, 2.0], &[5, 0, 3]),
            (false, 6, &[-1.0, 2.0, 2.0, 5.0, 7.0, f32::NAN], &[5, 0, 3, 2, 4, 1]),
        ] {
            for inner in [1, 2] {
                let op = TopK { axis: 0, largest };
                let x: Vec<f32> = x.iter().flat_map(|&v| vec![v; inner]).collect();
                let inputs = [Some(tensor(&x, &[6, inner])), Some(tensor(&[k as i64], &[1]))];
                let found = run_outputs(&op, &inputs, 2).expect("runs");
                let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                let repeated: Vec<f32> = values.iter().flat_map(|&v| vec![v; inner]).collect();
                assert_eq!(bits(found[0].tensor().unwrap().read::<f32>().unwrap()), bits(&repeated), "{op:?} {k}");
                let repeated: Vec<i64> = indices.iter().flat_map(|&v| vec![v; inner]).collect();
                assert_eq!(found[1].tensor().unwrap().to_i64().unwrap(), repeated, "{op:?} {k}");
            }
        }
        let too_many = [Some(tensor(&x, &[6])), Some(tensor(&[7i64], &[1]))];
        assert!(run_outputs(&TopK { axis: 0, largest: true }, &too_many, 2).is_err());
    }
}
