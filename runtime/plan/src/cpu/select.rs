//! CPU kernels: selects elements by a condition or by their value.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::bounds::{counted, len};
use super::gather::runs;
use crate::array::words;
use crate::axes;
use crate::bail;
use crate::by_width;
use crate::dispatch;
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::kernel::{Call, Kernel};
use crate::movable::Movable;
use crate::ops::places::Places;
use crate::ops::select::{check_kept, Compress, NonZero, Trilu, Unique};
use crate::types::Types;
use crate::value::{list, with_capacity, Array, Value};

impl Kernel for Trilu {
    fn takes(&self, input: usize, _dtype: DType) -> bool {
        input == 0
    }

    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let k = Trilu::diagonal(call)?;
        let mut x = match call.take(0) {
            Some(x) => x,
            None => call.tensor(0)?.clone(),
        };
        let &[.., rows, columns] = x.dims() else { bail!("expected matrices, found {:?}", x.dims()) };
        by_width!(x.dtype(), W => words::update::<W>(&mut x, |data| {
            for (i, row) in data.chunks_exact_mut(columns.max(1)).enumerate() {
                // The first column on or above the diagonal; for the lower triangle, the first column above it.
                let diagonal = k.saturating_add((i % rows) as i64).saturating_add(i64::from(!self.upper));
                let (lower, upper) = row.split_at_mut(diagonal.clamp(0, columns as i64) as usize);
                if self.upper { lower.fill(0) } else { upper.fill(0) }
            }
        }))?;
        Ok(vec![x.into()])
    }
}

impl Kernel for Compress {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        // The kept rows, and their places.
        Some(counted::<usize>(len(inputs, 1)?).saturating_mul(2))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let data = Movable::new(&[call.value(0)?])?;
        let (x, axis) = flattened_or(&data.arrays[0], self.axis)?;
        let condition = call.read::<Bool>(1)?;
        check_kept(condition, x.dims()[axis])?;
        let kept = condition.iter().filter(|condition| condition.is_true()).count();
        let mut rows: Vec<usize> = with_capacity(kept)?;
        rows.extend((0..condition.len()).filter(|&i| condition[i].is_true()));
        Ok(vec![data.restore(rows_of(&x, axis, &rows, call)?)?])
    }
}

impl Kernel for NonZero {
    fn scratch(&self, inputs: &Types) -> Option<usize> {
        Some(counted::<usize>(len(inputs, 0)?))
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let mut found: Vec<usize> = with_capacity(x.len())?;
        by_width!(x.dtype(), W => {
            // A negative zero is zero.
            let sign = if x.dtype().is_float() { 1 << (W::BITS - 1) } else { 0 };
            let words = words::read::<W>(x)?;
            found.extend((0..words.len()).filter(|&i| words[i] & !sign != 0));
            Ok(())
        })?;
        let dims = if x.rank() == 0 { &[1] } else { x.dims() };
        let mut indices = with_capacity(dims.len() * found.len())?;
        for axis in 0..dims.len() {
            let inner: usize = dims[axis + 1..].iter().product();
            indices.extend(found.iter().map(|place| (place / inner % dims[axis]) as i64));
        }
        Ok(vec![Array::new(indices, &[dims.len(), found.len()])?.into()])
    }
}

impl Kernel for Unique {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let value = call.value(0)?;
        let data = Movable::new(&[value])?;
        let (x, axis) = flattened_or(&data.arrays[0], self.axis)?;
        let groups = Groups::of(&order_keys(value)?, x.dims(), axis, self.sorted)?;
        let numbers =
            |rows: &[usize]| Array::new(list(rows.iter().map(|&i| i as i64))?, &[rows.len()]).map(Value::from);
        let y = data.restore(rows_of(&x, axis, &groups.first, call)?)?;
        Ok(vec![y, numbers(&groups.first)?, numbers(&groups.member)?, numbers(&groups.count)?])
    }
}

/// Groups of equal rows of a tensor.
struct Groups {
    /// The first row of each group.
    first: Vec<usize>,
    /// The group of each row.
    member: Vec<usize>,
    /// The number of rows of each group.
    count: Vec<usize>,
}

impl Groups {
    fn of(keys: &[u64], dims: &[usize], axis: usize, sorted: bool) -> Result<Groups> {
        let (rows, inner) = (dims[axis], dims[axis + 1..].iter().product::<usize>());
        let outer: usize = dims[..axis].iter().product();
        let part = |row: usize, o: usize| &keys[(o * rows + row) * inner..][..inner];
        let compare = |&a: &usize, &b: &usize| {
            (0..outer).map(|o| part(a, o).cmp(part(b, o))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let mut order = list(0..rows)?;
        // The comparison of indices keeps equal rows in order. A stable sort would allocate.
        order.sort_unstable_by(|a, b| compare(a, b).then(a.cmp(b)));
        let mut runs: Vec<&[usize]> = with_capacity(rows)?;
        runs.extend(order.chunk_by(|a, b| compare(a, b).is_eq()));
        if !sorted {
            runs.sort_unstable_by_key(|run| run[0]);
        }
        let mut member = list(std::iter::repeat_n(0, rows))?;
        for (group, run) in runs.iter().enumerate() {
            run.iter().for_each(|&row| member[row] = group);
        }
        let (first, count) = (list(runs.iter().map(|run| run[0]))?, list(runs.iter().map(|run| run.len()))?);
        Ok(Groups { first, member, count })
    }
}

/// Maps the elements to integers of the same order.
fn order_keys(value: &Value) -> Result<Vec<u64>> {
    let Value::Strings(strings) = value else { return number_keys(value.tensor()?) };
    let mut order = list(0..strings.data.len())?;
    order.sort_unstable_by_key(|&i| &strings.data[i]);
    let mut keys = list(std::iter::repeat_n(0, order.len()))?;
    for (rank, run) in order.chunk_by(|&a, &b| strings.data[a] == strings.data[b]).enumerate() {
        run.iter().for_each(|&i| keys[i] = rank as u64);
    }
    Ok(keys)
}

#[allow(clippy::useless_conversion)] // for one of the types
fn number_keys(x: &Array) -> Result<Vec<u64>> {
    const SIGN: u64 = 1 << 63;
    let float = |value: f64| match (value + 0.0).to_bits() {
        _ if value.is_nan() => u64::MAX,
        // A negative zero plus zero is zero.
        bits if bits & SIGN == 0 => bits | SIGN,
        bits => !bits,
    };
    match x.dtype() {
        DType::Uint64 => list(x.read::<u64>()?.iter().copied()),
        dtype if dtype.is_float() => dispatch!("Unique", dtype, [f32, f64, f16, bf16], T => {
            list(x.read::<T>()?.iter().map(|&value| float(value.into())))
        }),
        _ => list(x.to_i64()?.into_iter().map(|value| value as u64 ^ SIGN)),
    }
}

/// Returns the tensor and the axis to work on. Without an axis, the tensor is flattened.
fn flattened_or(x: &Array, axis: Option<i64>) -> Result<(Array, usize)> {
    match axis {
        Some(axis) => Ok((x.clone(), axes::resolve(axis, x.rank())?)),
        None => Ok((x.reshape(&[x.len()])?, 0)),
    }
}

/// Gathers rows of an axis; all are inside it.
fn rows_of(x: &Array, axis: usize, rows: &[usize], call: &Call) -> Result<Array> {
    let mut dims = x.dims().to_vec();
    dims[axis] = rows.len();
    let run = dims[axis + 1..].iter().product();
    let places = Places { starts: list(rows.iter().map(|row| row * run))?, run };
    runs(x, x.dims()[axis..].iter().product(), &places, &dims, call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_outputs, tensor};

    fn ints(value: &Value) -> (Vec<usize>, Vec<i64>) {
        let array = value.tensor().expect("a tensor");
        (array.dims().to_vec(), array.to_i64().expect("integers"))
    }

    #[test]
    fn triangles() {
        let x = tensor(&[1i16, 2, 3, 4, 5, 6], &[2, 3]);
        let cases = [
            (true, 0, [1, 2, 3, 0, 5, 6]),
            (true, 1, [0, 2, 3, 0, 0, 6]),
            (true, -5, [1, 2, 3, 4, 5, 6]),
            (true, i64::MAX, [0; 6]),
            (false, 0, [1, 0, 0, 4, 5, 0]),
            (false, -1, [0, 0, 0, 4, 0, 0]),
            (false, i64::MAX, [1, 2, 3, 4, 5, 6]),
            (false, i64::MIN, [0; 6]),
        ];
        for (upper, k, expected) in cases {
            let y = run(&Trilu { upper }, &[Some(x.clone()), Some(tensor(&[k], &[]))]).expect("a matrix");
            assert_eq!(ints(&y).1, expected, "{upper} {k}");
        }
        assert!(run(&Trilu { upper: true }, &[Some(tensor::<f32>(&[], &[2, 0]))]).is_ok());
        assert!(run(&Trilu { upper: true }, &[Some(tensor(&[1f32], &[1]))]).is_err());
    }

    #[test]
    fn conditions() {
        let x = tensor(&[1i32, 2, 3, 4, 5, 6], &[3, 2]);
        let compress = |axis, condition: &[bool]| {
            let condition: Vec<Bool> = condition.iter().map(|&keep| keep.into()).collect();
            run(&Compress { axis }, &[Some(x.clone()), Some(tensor(&condition, &[condition.len()]))])
                .map(|y| ints(&y))
                .ok()
        };
        assert_eq!(compress(Some(0), &[false, true, true]), Some((vec![2, 2], vec![3, 4, 5, 6])));
        assert_eq!(compress(Some(-1), &[false, true]), Some((vec![3, 1], vec![2, 4, 6])));
        assert_eq!(compress(None, &[true, false, false, true]), Some((vec![2], vec![1, 4])));
        assert_eq!(compress(Some(1), &[false, false, true]), None);
    }

    #[test]
    fn non_zeros() {
        let found = |x: Value| run(&NonZero {}, &[Some(x)]).map(|y| ints(&y)).expect("numbers");
        assert_eq!(found(tensor(&[1f32, 0.0, -0.0, -2.0], &[2, 2])), (vec![2, 2], vec![0, 1, 0, 1]));
        assert_eq!(found(tensor(&[i8::MIN, 0], &[2])), (vec![1, 1], vec![0]));
        assert_eq!(found(tensor(&[3u64], &[])), (vec![1, 1], vec![0]));
        assert_eq!(found(tensor::<u8>(&[], &[2, 0])), (vec![2, 0], vec![]));
    }

    #[test]
    fn unique() {
        let all = |axis, sorted, x: Value| {
            let outputs = run_outputs(&Unique { axis, sorted }, &[Some(x)], 4).expect("a tensor");
            outputs[1..].iter().map(|list| ints(list).1).collect::<Vec<_>>()
        };
        let list = tensor(&[2i64, 1, 1, 3, -4, 3], &[6]);
        assert_eq!(all(None, true, list.clone()), [vec![4, 1, 0, 3], vec![2, 1, 1, 3, 0, 3], vec![1, 2, 1, 2]]);
        assert_eq!(all(None, false, list), [vec![0, 1, 3, 4], vec![0, 1, 1, 2, 3, 2], vec![1, 2, 2, 1]]);
        let floats = tensor(&[f32::NAN, 0.0, -1.5, -0.0, f32::NAN, -2.5, 1.0], &[7]);
        assert_eq!(all(None, true, floats)[0], [5, 2, 1, 6, 0]);
        let rows = tensor(&[1u8, 0, 0, 1, 0, 0, 2, 3, 4], &[3, 3]);
        assert_eq!(all(Some(0), true, rows.clone()), [vec![0, 2], vec![0, 0, 1], vec![2, 1]]);
        assert_eq!(all(Some(1), true, rows), [vec![1, 2, 0], vec![2, 0, 1], vec![1, 1, 1]]);
        assert!(all(None, true, tensor::<u16>(&[], &[0])).iter().all(Vec::is_empty));
    }
}
