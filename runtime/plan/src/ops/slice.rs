//! Parts of a tensor.

use candle_plan_kernels::strided::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::axes;
use crate::bail;
use crate::device::{Needs, on_device};
use crate::error::Result;
use crate::kernel::{Arity, Call, Constants, Kernel, Packed, Types};
use crate::movable::{copy_view, Movable};
use crate::types::{TensorType, Type};
use crate::value::{Array, Value};

/// `Y = X[start : end : step, …]` with NumPy's meaning of negative and too large bounds. Inputs: `X`, `starts: [n]`,
/// `ends: [n]`, and, where they are there, `axes: [n]` (else the first `n`) and `steps: [n]` (else 1).
///
/// Source: [ONNX Slice](https://onnx.ai/onnx/operators/onnx__Slice.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slice {}

impl Kernel for Slice {
    fn arity(&self) -> Arity {
        Arity::inputs(3..=5)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        let shape = x.rank().map(|rank| vec![None; rank]);
        Ok(vec![Type::Tensor(TensorType { dtype: x.dtype, shape })])
    }

    fn shares(&self, input: usize) -> bool {
        input == 0
    }

    on_device!("copy");

    fn needs(&self, input: usize) -> Needs {
        match input {
            0 => Needs::Elements,
            _ => Needs::Numbers,
        }
    }

    fn prepack(&self, constants: &Constants) -> Result<Option<Packed>> {
        Ok(Some(axes::read_lists(constants)))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let ranges = self.ranges(call, value.dims()?)?;
        if ranges.iter().zip(value.dims()?).all(|(range, &dim)| range.step == 1 && range.count == dim) {
            return Ok(vec![value.clone()]);
        }
        let data = Movable::new(&[value])?;
        let copy = |x: &Array, view: &View| copy_view(x, view, call.threads);
        Ok(vec![data.restore(sliced(&data.arrays[0], &ranges, copy)?)?])
    }
}

impl Slice {
    /// What is taken of each dimension.
    pub(crate) fn ranges(&self, call: &Call, dims: &[usize]) -> Result<SmallVec<[Range; 6]>> {
        let (starts, ends) = (axes::list(call, 1)?, axes::list(call, 2)?);
        let axes = axes::optional_list(call, 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = axes::optional_list(call, 4)?.unwrap_or_else(|| vec![1; starts.len()].into());
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
            bail!("starts {starts:?}, ends {ends:?}, axes {axes:?} and steps {steps:?} are not equally many");
        }
        axes::mask(&axes, dims.len())?;
        let mut ranges: SmallVec<[Range; 6]> = dims.iter().map(|&count| Range { start: 0, step: 1, count }).collect();
        for (i, &axis) in axes.iter().enumerate() {
            let axis = axes::resolve(axis, dims.len())?;
            ranges[axis] = Range::new(starts[i], ends[i], steps[i], dims[axis])?;
        }
        Ok(ranges)
    }
}

/// The elements `start, start + step, …` of a dimension, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    start: usize,
    step: isize,
    count: usize,
}

impl Range {
    /// `start : end : step` of a dimension of size `dim`.
    fn new(start: i64, end: i64, step: i64, dim: usize) -> Result<Range> {
        let size = dim as i64;
        let from_start = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (start, end) = (from_start(start), from_start(end));
        let (start, distance) = match step {
            0 => bail!("the step of a slice is 0"),
            1.. => (start.clamp(0, size), end.clamp(0, size) - start.clamp(0, size)),
            _ if size == 0 => (0, 0),
            // Unlike Python's: a start before the first element is the first.
            _ => {
                let start = start.clamp(0, size - 1);
                (start, start - end.clamp(-1, size - 1))
            }
        };
        let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs()) as usize;
        // With fewer than two elements the step is never taken.
        Ok(Range {
            start: if count == 0 { 0 } else { start as usize },
            step: if count < 2 { 1 } else { step as isize },
            count,
        })
    }
}

/// The elements in `ranges`; a view where they stand together, else what `copy` makes of their places.
pub(crate) fn sliced(x: &Array, ranges: &[Range], copy: impl FnOnce(&Array, &View) -> Result<Array>) -> Result<Array> {
    let mut view = View::contiguous(x.dims());
    let mut outer = Some(x.clone());
    for (axis, range) in ranges.iter().enumerate() {
        view.offset += range.start * view.strides[axis] as usize;
        view.dims[axis] = range.count;
        view.strides[axis] *= range.step;
        let whole = range.count == x.dims()[axis] && range.step == 1;
        let can_narrow = range.step == 1 && view.dims[..axis].iter().all(|&dim| dim == 1);
        outer = match outer {
            Some(part) if whole => Some(part),
            Some(part) if can_narrow => Some(part.narrow_outer(axis, range.start, range.count)?),
            _ => None,
        };
    }
    match outer {
        Some(part) => Ok(part),
        None => copy(x, &view),
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::threads::Threads;

    use super::*;
    use crate::testing::{run, tensor};

    #[test]
    fn ranges_are_clamped_by_the_sign_of_their_step() {
        let cases = [
            ((1, 4, 1), Some((1, 1, 3))),
            ((-3, i64::MAX, 1), Some((2, 1, 3))),
            ((-9, 9, 2), Some((0, 2, 3))),
            ((4, 1, 1), Some((0, 1, 0))),
            ((9, 10, 1), Some((0, 1, 0))),
            ((-1, i64::MIN, -1), Some((4, -1, 5))),
            ((9, -9, -2), Some((4, -2, 3))),
            ((3, 0, -1), Some((3, -1, 3))),
            ((0, 3, -1), Some((0, 1, 0))),
            ((-9, i64::MIN, -1), Some((0, 1, 1))),
            ((-9, -5, -1), Some((0, 1, 0))),
            ((-9, -6, -2), Some((0, 1, 1))),
            ((0, i64::MAX, i64::MAX), Some((0, 1, 1))),
            ((4, i64::MIN, i64::MIN), Some((4, 1, 1))),
            ((0, 5, 0), None),
        ];
        for ((start, end, step), expected) in cases {
            let expected = expected.map(|(start, step, count)| Range { start, step, count });
            assert_eq!(Range::new(start, end, step, 5).ok(), expected, "{start}:{end}:{step}");
        }
        assert_eq!(Range::new(0, 5, -1, 0).ok().map(|range| range.count), Some(0));
    }

    fn slice(lists: &[&[i64]]) -> Result<(Vec<usize>, Vec<u8>)> {
        let mut inputs = vec![Some(tensor(&(0..24).collect::<Vec<u8>>(), &[2, 3, 4]))];
        inputs.extend(lists.iter().map(|list| Some(tensor(list, &[list.len()]))));
        let y = run(&Slice {}, &inputs)?;
        let data = y.tensor()?.read::<u8>()?.to_vec();
        Ok((y.dims()?.to_vec(), data))
    }

    #[test]
    fn slices() {
        let cases: [(&[&[i64]], &[usize], &[u8]); 6] = [
            (&[&[1], &[2]], &[1, 3, 4], &[12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]),
            (&[&[0, 1], &[1, 2]], &[1, 1, 4], &[4, 5, 6, 7]),
            (&[&[1, 1], &[2, 3], &[-1, 1]], &[2, 2, 1], &[5, 9, 17, 21]),
            (&[&[-1, 0], &[-9, 1], &[2, 1], &[-2, 1]], &[2, 1, 2], &[3, 1, 15, 13]),
            (&[&[2], &[1], &[1]], &[2, 0, 4], &[]),
            (
                &[&[], &[]],
                &[2, 3, 4],
                &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23],
            ),
        ];
        for (lists, dims, expected) in cases {
            assert_eq!(slice(lists).expect("a slice"), (dims.to_vec(), expected.to_vec()), "{lists:?}");
        }
        let bad: [&[&[i64]]; 4] =
            [&[&[0], &[1, 2]], &[&[0], &[1], &[3]], &[&[0, 0], &[1, 1], &[0, -3]], &[&[0], &[1], &[0], &[0]]];
        for lists in bad {
            assert!(slice(lists).is_err(), "{lists:?}");
        }
    }

    #[test]
    fn outer_slices_are_views() {
        let x = Array::new((0..24).collect::<Vec<i32>>(), &[1, 6, 4]).expect("24 elements");
        let range = |start, count| Range { start, step: 1, count };
        let copy = |x: &Array, view: &View| copy_view(x, view, &Threads::serial());
        let outer = sliced(&x, &[range(0, 1), range(2, 3), range(0, 4)], copy).expect("in range");
        assert!(outer.shares_storage_with(&x));
        let inner = sliced(&x, &[range(0, 1), range(2, 3), range(1, 3)], copy).expect("in range");
        assert!(!inner.shares_storage_with(&x));
    }
}
