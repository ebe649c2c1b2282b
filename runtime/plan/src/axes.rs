//! Axes and dimensions that come from a plan or from a tensor.

use smallvec::{smallvec, SmallVec};

use crate::error::{Error, Result};
use crate::extent;
use crate::types::{TensorType, Types};
use crate::value::{try_list, Array, MAX_RANK};

/// Resolves axis `axis` of a tensor of rank `rank`; a negative axis counts from the end.
///
/// # Errors
/// The axis is out of range.
pub fn resolve(axis: i64, rank: usize) -> Result<usize> {
    let from_start = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    from_start
        .and_then(|axis| usize::try_from(axis).ok())
        .filter(|&axis| axis < rank)
        .ok_or_else(|| Error::op(format!("axis {axis} is out of range for a tensor of rank {rank}")))
}

/// One flag per axis.
pub type Mask = SmallVec<[bool; 8]>;

/// The mask of the axes of a tensor of rank `rank` that `axes` lists.
///
/// # Errors
/// An axis is out of range or listed twice, or no tensor has that rank.
pub fn mask(axes: &[i64], rank: usize) -> Result<Mask> {
    if rank > MAX_RANK {
        return Err(Error::op(format!("a tensor has at most {MAX_RANK} dimensions, found {rank}")));
    }
    let mut mask: Mask = smallvec![false; rank];
    for &axis in axes {
        let place = resolve(axis, rank)?;
        if std::mem::replace(&mut mask[place], true) {
            return Err(Error::op(format!("axis {axis} is named twice")));
        }
    }
    Ok(mask)
}

/// `[outer, n, inner]`: the sizes before, at and after axis `axis`.
///
/// # Errors
/// The axis is out of range.
pub fn split(dims: &[usize], axis: i64) -> Result<[usize; 3]> {
    let axis = resolve(axis, dims.len())?;
    Ok([dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()])
}

/// Converts signed integers to dimensions.
///
/// # Errors
/// A size is negative.
pub fn dims(sizes: &[i64]) -> Result<Vec<usize>> {
    let dim = |&size: &i64| usize::try_from(size).map_err(|_| Error::op(format!("{sizes:?} is not a shape")));
    try_list(sizes.iter().map(dim))
}

/// The number of elements of a list `[n]` of this type, if it is known. A tensor of rank 0 is a list of one number.
///
/// # Errors
/// A tensor of this type has more than one dimension.
pub fn length(list: &TensorType) -> Result<Option<usize>> {
    match list.shape.as_deref() {
        Some([]) => Ok(Some(1)),
        Some([_]) | None => Ok(list.size(0)),
        Some(shape) => Err(not_a_list(shape.len())),
    }
}

/// The numbers of a list `[n]`, or the number of a tensor of rank 0.
///
/// # Errors
/// The tensor has more than one dimension, or its elements are not integers.
pub fn numbers(list: &Array) -> Result<Vec<i64>> {
    match list.rank() {
        0 | 1 => list.to_i64(),
        rank => Err(not_a_list(rank)),
    }
}

/// The one integer of the input called `name` in errors.
///
/// # Errors
/// The input has another number of elements, or they are not integers.
pub(crate) fn number(name: &str, array: &Array) -> Result<i64> {
    extent::one_element(name, array.dims())?;
    Ok(array.to_i64()?[0])
}

/// The [numbers] of input `i`, where it is a constant.
///
/// # Errors
/// As [`numbers`].
pub(crate) fn constant_list(inputs: &Types, i: usize) -> Result<Option<Vec<i64>>> {
    inputs.constant(i).map(numbers).transpose()
}

/// The [dims] of input `i`, where it is a constant.
///
/// # Errors
/// As [`numbers`] and [`dims`].
pub(crate) fn constant_dims(inputs: &Types, i: usize) -> Result<Option<Vec<usize>>> {
    constant_list(inputs, i)?.map(|sizes| dims(&sizes)).transpose()
}

/// The [number] of input `i`, where it is a constant.
///
/// # Errors
/// As [`number`].
pub(crate) fn constant_number(inputs: &Types, i: usize, name: &str) -> Result<Option<i64>> {
    inputs.constant(i).map(|array| number(name, array)).transpose()
}

fn not_a_list(rank: usize) -> Error {
    Error::op(format!("a list of sizes or axes has one dimension, found {rank}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn axes_count_from_both_ends() {
        for (axis, rank, expected) in [
            (0, 1, Some(0)),
            (-1, 3, Some(2)),
            (-3, 3, Some(0)),
            (3, 3, None),
            (-4, 3, None),
            (0, 0, None),
            (i64::MIN, 2, None),
        ] {
            assert_eq!(resolve(axis, rank).ok(), expected, "axis {axis} of rank {rank}");
        }
        assert_eq!(mask(&[-1, 0], 3).ok(), Some(Mask::from([true, false, true].as_slice())));
        assert!(mask(&[1, -2], 3).is_err() && mask(&[0], MAX_RANK + 1).is_err());
        assert!(dims(&[2, 0]).is_ok() && dims(&[2, -1]).is_err());
    }

    #[test]
    fn lists_have_one_dimension() {
        let cases: [(&[usize], Option<usize>); 4] =
            [(&[], Some(1)), (&[2], Some(2)), (&[1, 2], None), (&[2, 1, 1], None)];
        for (shape, expected) in cases {
            let array = Array::new(vec![0i64; shape.iter().product()], shape).unwrap();
            assert_eq!(length(&TensorType::sized(DType::Int64, shape)).ok(), expected.map(Some), "{shape:?}");
            assert_eq!(numbers(&array).ok().map(|numbers| numbers.len()), expected, "{shape:?}");
        }
        assert_eq!(length(&TensorType::any(DType::Int64)).ok(), Some(None));
    }
}
