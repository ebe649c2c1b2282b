//! CPU kernels: the positions of the elements that indices select.

use std::borrow::Cow;

use num_integer::gcd;

use super::bounds::counted;
use crate::axes;
use crate::error::Result;
use crate::kernel::{Call, Constants};
use crate::ops::places::{check_indices, element_axis, from_start, vector_parts, Places, VectorParts};
use crate::types::TensorType;
use crate::value::{list, with_capacity, Array};
use crate::work;

/// Positions in a tensor of a known shape, found in advance.
pub(super) struct KnownPlaces {
    dims: Vec<usize>,
    places: Places,
}

/// Finds the positions in input 0 with `find`, if its shape and the indices (input 1) are known in advance.
///
/// # Errors
/// `find` fails.
pub(super) fn pack(
    constants: &Constants,
    find: impl FnOnce(&[usize], &Array) -> Result<Places>,
) -> Result<Option<KnownPlaces>> {
    let kind = constants.types.first().copied().flatten().and_then(|kind| kind.tensor().ok());
    let (Some(dims), Some(indices)) = (kind.and_then(|kind| kind.sizes()), constants.tensor(1)) else {
        return Ok(None);
    };
    let places = find(&dims, indices)?.merged();
    Ok(Some(KnownPlaces { dims, places }))
}

/// Returns the positions in a tensor of shape `dims`: the positions that were found in advance, or otherwise the
/// positions that `find` returns for the indices (input 1).
///
/// # Errors
/// `find` fails, or the indices are missing.
pub(super) fn places<'a>(
    known: Option<&'a KnownPlaces>,
    call: &Call,
    dims: &[usize],
    find: impl FnOnce(&[usize], &Array) -> Result<Places>,
) -> Result<Cow<'a, Places>> {
    match known.filter(|known| known.dims == dims) {
        Some(known) => Ok(Cow::Borrowed(&known.places)),
        None => find(dims, call.tensor(1)?).map(Cow::Owned),
    }
}

impl Places {
    /// Merges runs that follow each other, so that there are as few runs of one length as possible.
    fn merged(self) -> Places {
        let follows = |pair: &[usize]| pair[1] == pair[0] + self.run;
        let (mut factor, mut length) = (0, 1);
        for pair in self.starts.windows(2) {
            if follows(pair) {
                length += 1;
            } else {
                factor = gcd(factor, length);
                length = 1;
            }
        }
        match gcd(factor, length) {
            1 => self,
            _ if self.starts.is_empty() || self.run == 0 => self,
            factor => {
                let mut starts = self.starts;
                let kept = starts.len() / factor;
                (0..kept).for_each(|i| starts[i] = starts[i * factor]);
                starts.truncate(kept);
                Places { starts, run: self.run * factor }
            }
        }
    }
}

/// Returns the largest number of bytes that a step needs for positions that are not [packed](pack), and for their
/// indices in 64 bits; `None` if the number of indices is unknown.
pub(super) fn starts_bytes(packed: Option<&KnownPlaces>, indices: &TensorType) -> Option<usize> {
    match packed {
        Some(_) => Some(0),
        None => Some(counted::<[usize; 2]>(usize::try_from(work::count(indices)?).ok()?)),
    }
}

/// Returns the starts of the rows that `indices` select along an axis, in a block `[size of the axis, …]`.
pub(super) fn row_places(dims: &[usize], indices: &Array, axis: i64) -> Result<Places> {
    let axis = axes::resolve(axis, dims.len())?;
    let (size, run) = (dims[axis], dims[axis + 1..].iter().product());
    let numbers = in_range(indices, size, axis)?;
    Ok(Places { starts: list(numbers.iter().map(|&number| from_start(number, size) * run))?, run })
}

/// Returns the positions of the elements that `indices` select along an axis, in a tensor of shape `dims`.
pub(super) fn element_places(dims: &[usize], indices: &Array, axis: i64) -> Result<Places> {
    let axis = element_axis(dims, indices.dims(), axis)?;
    let (size, inner) = (dims[axis], dims[axis + 1..].iter().product::<usize>());
    let numbers = in_range(indices, size, axis)?;
    let (outer, last) = indices.dims().split_at(dims.len() - 1);
    let step = usize::from(axis + 1 < dims.len());
    let mut counter = Counter::new(outer, dims, axis);
    let mut starts = with_capacity(numbers.len())?;
    for row in numbers.chunks_exact(last[0].max(1)) {
        let base = counter.next();
        let start = |(i, &number): (usize, &i64)| base + i * step + from_start(number, size) * inner;
        starts.extend(row.iter().enumerate().map(start));
    }
    Ok(Places { starts, run: 1 })
}

/// Returns the indices, or an error if one is outside an axis of size `size`.
fn in_range(indices: &Array, size: usize, axis: usize) -> Result<Vec<i64>> {
    let numbers = indices.to_i64()?;
    if numbers.iter().fold(false, |wrong, &number| wrong | (from_start(number, size) >= size)) {
        check_indices(&numbers, &[size], axis)?;
    }
    Ok(numbers)
}

/// Walks through all coordinates of a tensor of shape `dims` in order, and returns the position of each in a tensor of
/// shape `within`. The coordinate on `axis` counts as 0, and so do the coordinates on any further dimensions of
/// `within`.
struct Counter<'a> {
    dims: &'a [usize],
    strides: Vec<usize>,
    at: Vec<usize>,
    place: usize,
}

impl<'a> Counter<'a> {
    fn new(dims: &'a [usize], within: &[usize], axis: usize) -> Counter<'a> {
        let stride = |i: usize| if i == axis { 0 } else { within[i + 1..].iter().product() };
        Counter { dims, strides: (0..dims.len()).map(stride).collect(), at: vec![0; dims.len()], place: 0 }
    }

    /// Returns the position of the current coordinates, and moves on to the next ones.
    fn next(&mut self) -> usize {
        let place = self.place;
        for axis in (0..self.dims.len()).rev() {
            self.at[axis] += 1;
            self.place += self.strides[axis];
            if self.at[axis] < self.dims[axis] {
                break;
            }
            self.place -= self.strides[axis] * self.dims[axis];
            self.at[axis] = 0;
        }
        place
    }
}

/// Returns the starts of the parts that the vectors of `indices`, `[.., k]`, select in a tensor of shape `dims`.
pub(super) fn vector_places(dims: &[usize], indices: &Array, batch_dims: usize) -> Result<Places> {
    let VectorParts { outer, per_batch, picked, rest } = vector_parts(dims, indices.dims(), batch_dims)?;
    let vectors: usize = per_batch.iter().product();
    let depth = picked.len();
    let strides: Vec<usize> = (0..depth).map(|i| dims[batch_dims + i + 1..].iter().product()).collect();
    let batches: usize = outer[..batch_dims].iter().product();
    let block: usize = dims[batch_dims..].iter().product();
    let numbers = indices.to_i64()?;
    let mut starts = with_capacity(batches * vectors)?;
    let mut is_inside = true;
    for i in 0..batches * vectors {
        let axes = numbers[i * depth..][..depth].iter().zip(picked).zip(&strides);
        starts.push(axes.fold(i / vectors * block, |start, ((&number, &size), &stride)| {
            let at = from_start(number, size);
            is_inside &= at < size;
            start.wrapping_add(at.wrapping_mul(stride))
        }));
    }
    if !is_inside {
        check_indices(&numbers, picked, batch_dims)?;
    }
    Ok(Places { starts, run: rest.iter().product() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_runs_are_merged() {
        let cases: [(&[usize], usize, &[usize], usize); 7] = [
            (&[0, 1, 2, 3], 1, &[0], 4),
            (&[4, 5, 0, 1, 2, 3], 1, &[4, 0, 2], 2),
            (&[4, 6, 0, 2, 8, 10], 2, &[4, 0, 8], 4),
            (&[0, 1, 3], 1, &[0, 1, 3], 1),
            (&[3, 3, 4], 1, &[3, 3, 4], 1),
            (&[], 3, &[], 3),
            (&[0, 0], 0, &[0, 0], 0),
        ];
        for (starts, run, merged, length) in cases {
            let found = Places { starts: starts.to_vec(), run }.merged();
            assert_eq!(found, Places { starts: merged.to_vec(), run: length }, "{starts:?} of {run}");
        }
    }
}
