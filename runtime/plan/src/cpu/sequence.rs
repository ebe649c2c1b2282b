//! CPU kernels: sequences.

use super::bounds::{is_short, len};
use super::join::{joined, part_of};
use crate::axes;
use crate::bail;
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::sequence::{
    ConcatFromSequence, Parts, SequenceAt, SequenceConstruct, SequenceEmpty, SequenceErase, SequenceInsert,
    SequenceLength, SplitToSequence,
};
use crate::types::Types;
use crate::value::storages::Record;
use crate::value::{list, scratch, try_list, Array, Items, Value};

impl Kernel for SequenceConstruct {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let items = try_list((0..call.len()).map(|i| call.value(i).cloned()))?;
        Ok(vec![Value::Sequence(items.into())])
    }
}

impl Kernel for SequenceEmpty {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, _: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![Value::Sequence(Items::default())])
    }
}

impl Kernel for SequenceAt {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let items = items(call, 0)?;
        Ok(vec![items[place(call, 1, items.len(), items.len())?].clone()])
    }
}

impl Kernel for SequenceInsert {
    fn takes_sequence(&self, input: usize) -> bool {
        input == 0
    }

    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let count = items(call, 0)?.len();
        let (at, item) = (place(call, 2, count, count + 1)?, call.value(1)?.clone());
        let mut all = call.take_items(0)?;
        all.insert(at, item)?;
        Ok(vec![Value::Sequence(all)])
    }
}

impl Kernel for SequenceErase {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn takes_sequence(&self, input: usize) -> bool {
        input == 0
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let count = items(call, 0)?.len();
        let at = place(call, 1, count.wrapping_sub(1), count)?;
        let mut all = call.take_items(0)?;
        all.remove(at)?;
        Ok(vec![Value::Sequence(all)])
    }
}

impl Kernel for SequenceLength {
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        Ok(vec![Array::scalar(items(call, 0)?.len() as i64).into()])
    }
}

impl Kernel for SplitToSequence {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        // Either the sizes of the parts are given, or no part is empty.
        let x = inputs.tensor(0).ok()?;
        let size = x.size(axes::resolve(self.axis, x.rank()?).ok()?)?;
        is_short(size.max(len(inputs, 1)?)).then_some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let x = &data.arrays[0];
        let axis = axes::resolve(self.axis, x.rank())?;
        let split = call.optional_tensor(1)?;
        let mut start = 0;
        let part = |size: usize| {
            let mut part = part_of(x, axis, start, size, call)?;
            start += size;
            if split.is_none() && !self.keep_axis {
                let mut dims = part.dims().to_vec();
                dims.remove(axis);
                part = part.reshape(&dims)?;
            }
            data.restore(part)
        };
        let sizes = part_sizes(split, x.dims()[axis])?;
        scratch::<Record>(sizes.len())?;
        let parts = try_list(sizes.into_iter().map(part))?;
        Ok(vec![Value::Sequence(parts.into())])
    }
}

impl Kernel for ConcatFromSequence {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&list(items(call, 0)?.iter())?)?;
        let stacked = |array: &Array| {
            let mut dims = array.dims().to_vec();
            dims.insert(axes::resolve(self.axis, dims.len() + 1)?, 1);
            array.reshape(&dims)
        };
        let arrays = match self.new_axis {
            true => try_list(data.arrays.iter().map(stacked))?,
            false => list(data.arrays.iter().cloned())?,
        };
        Ok(vec![data.restore(joined(&list(arrays.iter())?, self.axis, call)?)?])
    }
}

/// Returns the items of input `i`.
fn items<'a>(call: &'a Call, i: usize) -> Result<&'a Items> {
    match call.value(i)? {
        Value::Sequence(items) => Ok(items),
        other => Err(Error::op(format!("expected a sequence, found {}", other.describe()))),
    }
}

/// Returns the position in input `i`, which must be below `count`, or `default` if the input is absent. `count` is the
/// number of items, or one more. Negative positions count from the end of the items.
fn place(call: &Call, i: usize, default: usize, count: usize) -> Result<usize> {
    let items = items(call, 0)?.len();
    let place = match call.optional_tensor(i)?.map(|at| axes::number("the position", at)).transpose()? {
        None => default,
        Some(at) if at < 0 => at.checked_add(items as i64).and_then(|at| usize::try_from(at).ok()).unwrap_or(count),
        Some(at) => usize::try_from(at).unwrap_or(count),
    };
    if place >= count {
        bail!("there is no such position in a sequence of {items}");
    }
    Ok(place)
}

/// Returns the sizes of the parts into which an axis of size `size` is split.
fn part_sizes(split: Option<&Array>, size: usize) -> Result<Vec<usize>> {
    match Parts::of(split, &size)? {
        Parts::Each(part) => list((0..size).step_by(part).map(|start| part.min(size - start))),
        Parts::Sizes(sizes) => Ok(sizes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor, Tested};

    fn sequence(items: &[&[i32]]) -> Value {
        Value::Sequence(items.iter().map(|item| tensor(item, &[item.len()])).collect::<Vec<_>>().into())
    }

    fn ints(value: &Value) -> Vec<Vec<i64>> {
        match value {
            Value::Sequence(items) => items.iter().flat_map(ints).collect(),
            value => vec![value.tensor().expect("a tensor").to_i64().expect("integers")],
        }
    }

    fn at(kernel: &dyn Tested, inputs: &[Value], position: Option<i64>) -> Option<Vec<Vec<i64>>> {
        let mut inputs: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        inputs.extend(position.map(|position| Some(tensor(&[position], &[]))));
        run(kernel, &inputs).ok().map(|value| ints(&value))
    }

    #[test]
    fn items_are_inserted_and_removed() {
        let two = sequence(&[&[1, 2], &[3]]);
        for (position, expected) in
            [(0, Some(vec![1, 2])), (-1, Some(vec![3])), (2, None), (-3, None), (i64::MIN, None)]
        {
            assert_eq!(at(&SequenceAt {}, std::slice::from_ref(&two), Some(position)), expected.map(|item| vec![item]));
        }
        let insert = |position| at(&SequenceInsert {}, &[two.clone(), tensor(&[9i32], &[1])], position);
        assert_eq!(insert(None), Some(vec![vec![1, 2], vec![3], vec![9]]));
        assert_eq!(insert(Some(2)), insert(None));
        assert_eq!(insert(Some(-2)), Some(vec![vec![9], vec![1, 2], vec![3]]));
        assert_eq!(insert(Some(3)), None);
        assert_eq!(at(&SequenceErase {}, std::slice::from_ref(&two), None), Some(vec![vec![1, 2]]));
        assert_eq!(at(&SequenceErase {}, std::slice::from_ref(&two), Some(-2)), Some(vec![vec![3]]));
        assert_eq!(at(&SequenceErase {}, &[Value::Sequence(Items::default())], None), None);
        assert_eq!(at(&SequenceLength {}, &[two], None), Some(vec![vec![2]]));
    }

    #[test]
    fn sequences_are_made_of_parts() {
        let x = tensor(&[0i64, 1, 2, 3, 4, 5], &[2, 3]);
        let split = |axis, keep_axis, sizes: Option<Value>| {
            let inputs: Vec<Option<Value>> = [Some(x.clone()), sizes].into_iter().filter(Option::is_some).collect();
            run(&SplitToSequence { axis, keep_axis }, &inputs).ok()
        };
        let rows = split(0, false, None).expect("two rows");
        assert_eq!(ints(&rows), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(ints(&split(1, true, Some(tensor(&[2i32], &[]))).expect("2 and 1")), [vec![0, 1, 3, 4], vec![2, 5]]);
        assert_eq!(ints(&split(-1, true, Some(tensor(&[1i64, 2], &[2]))).expect("1 and 2"))[0], [0, 3]);
        assert!(split(1, true, Some(tensor(&[0i64], &[]))).is_none());
        assert!(split(1, true, Some(tensor(&[1i64, 1], &[2]))).is_none());

        let joined = |axis, new_axis| run(&ConcatFromSequence { axis, new_axis }, &[Some(rows.clone())]).ok();
        assert_eq!(joined(0, true).expect("equal rows").dims().expect("a tensor"), [2, 3]);
        assert_eq!(ints(&joined(-1, true).expect("equal rows")), [[0, 3, 1, 4, 2, 5]]);
        assert_eq!(ints(&joined(0, false).expect("lists")), [[0, 1, 2, 3, 4, 5]]);
        assert!(joined(1, false).is_none());
    }
}
