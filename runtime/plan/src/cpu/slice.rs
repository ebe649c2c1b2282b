//! CPU kernels: slices of a tensor.

use candle_plan_kernels::strided::View;

use super::lists::{optional_list, Lists};
use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::{copy_view, Movable};
use crate::ops::slice::{sliced, Slice};
use crate::types::Types;
use crate::value::{Array, Value};

impl HasKernel for Slice {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Packed::boxed(self, Lists::of(&operands.constants)))
    }
}

impl Kernel for Packed<Slice, Lists> {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, &self.packed);
        let value = call.value(0)?;
        let ranges = op.ranges(value.dims()?, |i| optional_list(packed, call, i))?;
        if ranges.iter().zip(value.dims()?).all(|(range, &dim)| range.step == 1 && range.count == dim) {
            return Ok(vec![value.clone()]);
        }
        let data = Movable::new(&[value])?;
        let copy = |x: &Array, view: &View| copy_view(x, view, call.threads);
        Ok(vec![data.restore(sliced(&data.arrays[0], &ranges, copy)?)?])
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::threads::Threads;

    use super::*;
    use crate::ops::slice::{Cut, Range};
    use crate::testing::{run, tensor};

    #[test]
    fn ranges_are_clamped_by_the_sign_of_their_step() {
        let cases = [
            ((1, 4, 1), (1, 1, 3)),
            ((-3, i64::MAX, 1), (2, 1, 3)),
            ((-9, 9, 2), (0, 2, 3)),
            ((4, 1, 1), (0, 1, 0)),
            ((9, 10, 1), (0, 1, 0)),
            ((-1, i64::MIN, -1), (4, -1, 5)),
            ((9, -9, -2), (4, -2, 3)),
            ((3, 0, -1), (3, -1, 3)),
            ((0, 3, -1), (0, 1, 0)),
            ((-9, i64::MIN, -1), (0, 1, 1)),
            ((-9, -5, -1), (0, 1, 0)),
            ((-9, -6, -2), (0, 1, 1)),
            ((0, i64::MAX, i64::MAX), (0, 1, 1)),
            ((4, i64::MIN, i64::MIN), (4, 1, 1)),
        ];
        for ((start, end, step), expected) in cases {
            let (first, stride, count) = expected;
            let range = Cut { start, end, step }.range(5);
            assert_eq!(range, Range { start: first, step: stride, count }, "{start}:{end}:{step}");
        }
        assert_eq!(Cut { start: 0, end: 5, step: -1 }.range(0).count, 0);
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

    #[test]
    fn starts_and_ends_are_needed() {
        let (x, list) = (tensor(&[1f32, 2.0], &[2]), || Some(tensor(&[0i64], &[1])));
        for (starts, ends, missing) in [(None, list(), "input 1"), (list(), None, "input 2")] {
            let error = run(&Slice {}, &[Some(x.clone()), starts, ends]).expect_err("it is missing").to_string();
            assert!(error.contains(missing), "{error}");
        }
    }
}
