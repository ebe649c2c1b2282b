//! Tensors of a state that change row by row, and may be shorter than their storage.

use candle_plan_descriptors::broadcast::Dims;
use candle_plan_memory::buffer::budget;

use super::rows::{Edit, Mover, Runs};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::out_of_memory;

/// The smallest capacity along the axis of a tensor that has grown.
const LEAST: usize = 16;

/// A tensor, on the host or on a device, whose rows along an axis change in place. Its storage may be longer. A clone shares
/// the storage until one of the two changes.
#[derive(Debug, Clone)]
pub struct Grown {
    /// The storage: a tensor with the dimensions of this one, except that it may be longer along the axis. Elements beyond
    /// the present length mean nothing.
    storage: Array,
    axis: usize,
    dims: Dims,
    /// The number of rows before those that are known to be zeros.
    filled: usize,
}

/// Rows as they were before a step changed them.
#[derive(Debug)]
pub(crate) struct Former {
    rows: Array,
    /// The first matrix, and the first row in it.
    start: [usize; 2],
}

impl Former {
    /// The rows.
    pub fn rows(&self) -> &Array {
        &self.rows
    }
}

impl Grown {
    /// A tensor that shares the storage of another one until it changes.
    ///
    /// # Errors
    /// The tensor has no such axis.
    pub fn of(array: &Array, axis: usize) -> Result<Grown> {
        let length = *array.dims().get(axis).ok_or_else(|| Error::op(format!("there is no axis {axis}")))?;
        Ok(Grown { storage: array.clone(), axis, dims: Dims::from_slice(array.dims()), filled: length })
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.storage.dtype()
    }

    /// The storage, and the axis along which it may be longer than this tensor.
    pub fn storage(&self) -> (&Array, usize) {
        (&self.storage, self.axis)
    }

    /// The bytes of the elements, without the spare capacity.
    pub(crate) fn bytes_of_elements(&self) -> usize {
        self.dtype().width().map_or(0, |width| width * self.dims.iter().product::<usize>())
    }

    /// The size along the axis.
    pub fn length(&self) -> usize {
        self.dims[self.axis]
    }

    /// The number of rows before those that are known to be zeros.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// The same tensor, with zeros from a row on, as its caller knows.
    pub(crate) fn filled_to(self, row: usize) -> Grown {
        Grown { filled: row.min(self.length()), ..self }
    }

    /// The first `length` elements along the axis, in the same storage.
    pub fn first(&self, length: usize) -> Grown {
        let mut first = self.clone();
        first.dims[self.axis] = length.min(self.length());
        first.filled_to(self.filled)
    }

    /// Moves to other storage unless this one has the capacity for `length` rows and nothing else shares it. The elements
    /// stay the same. If there is a memory [budget], the spare capacity of `values` such tensors takes at most half of what is
    /// left.
    ///
    /// # Errors
    /// The allocation fails, or the length is too large.
    pub(crate) fn reserve(&mut self, length: usize, values: usize, mover: &dyn Mover) -> Result<()> {
        if length <= self.capacity() && self.storage.is_alone() {
            return Ok(());
        }
        let (row, rows, left) = (self.bytes_of_row(), length.max(self.length()), budget());
        let Some(spare) = left.checked_sub(rows.saturating_mul(row)) else {
            let mut dims = self.dims.clone();
            dims[self.axis] = rows;
            return Err(out_of_memory(&dims));
        };
        match left {
            _ if length <= self.length() => self.move_to(rows, mover),
            usize::MAX => self.move_to(capacity(length, self.length(), usize::MAX)?, mover),
            _ => self.move_to(capacity(length, self.length(), spare / (2 * values.max(1)) / row)?, mover),
        }
    }

    /// The bytes of all rows that have the same place along the axis, but at least 1.
    fn bytes_of_row(&self) -> usize {
        let others = self.dims.iter().enumerate().filter(|(axis, _)| *axis != self.axis);
        let elements = others.map(|(_, dim)| *dim).fold(1, usize::saturating_mul);
        elements.saturating_mul(self.dtype().width().unwrap_or(1)).max(1)
    }

    /// Moves to storage with a capacity of `capacity` rows, which is not less than the length.
    ///
    /// # Errors
    /// The allocation fails.
    pub(crate) fn move_to(&mut self, capacity: usize, mover: &dyn Mover) -> Result<()> {
        let mut dims = self.dims.clone();
        dims[self.axis] = capacity;
        let mut storage = mover.zeros(&dims, self.dtype())?;
        let all = [self.dims[..self.axis].iter().product(), self.length()];
        let [from, to] = [self.storage.dims(), &dims[..]].map(|dims| Runs::of(dims, self.axis, [0; 2], all));
        if !to.is_empty() {
            mover.copy((&self.storage, from), (&mut storage, to))?;
        }
        self.storage = storage;
        Ok(())
    }

    /// The rows that edits are about to change, as they are now.
    ///
    /// # Errors
    /// The allocation fails.
    pub(crate) fn former(&self, edits: &[Edit], mover: &dyn Mover) -> Result<Vec<Former>> {
        let held = |edit: &Edit| edit.to.start..edit.to.end.min(self.length());
        let former = |edit: &Edit| {
            let (start, count) = ([edit.matrices.start, edit.to.start], [edit.matrices.len(), held(edit).len()]);
            let from = self.runs(start, count);
            let mut rows = mover.zeros(&[from.count, from.length], self.dtype())?;
            mover.copy((&self.storage, from), (&mut rows, Runs { offset: 0, pitch: from.length, ..from }))?;
            Ok(Former { rows, start })
        };
        let is_held = |edit: &&Edit| !self.runs([0; 2], [edit.matrices.len(), held(edit).len()]).is_empty();
        edits.iter().filter(is_held).map(former).collect()
    }

    /// Takes edits back.
    ///
    /// # Errors
    /// The device fails, or there is no memory.
    pub(crate) fn restore(&mut self, former: &[Former], mover: &dyn Mover) -> Result<()> {
        self.reserve(self.length(), 1, mover)?;
        for Former { rows, start } in former {
            let to = Runs { count: rows.dims()[0], length: rows.dims()[1], ..self.runs(*start, [0; 2]) };
            mover.copy((rows, Runs { offset: 0, pitch: to.length, ..to }), (&mut self.storage, to))?;
        }
        Ok(())
    }

    /// Returns this tensor with `length` rows, after edits that take their rows from `new`. It lies in the same storage, which
    /// [has the capacity](Grown::reserve). Unless an edit changes the first [`Grown::length`] rows, this tensor stays the same.
    ///
    /// # Errors
    /// The device fails.
    pub(crate) fn edited(&mut self, length: usize, edits: &[Edit], new: &Array, mover: &dyn Mover) -> Result<Grown> {
        for edit in edits {
            let (matrix, count) = (edit.matrices.start, [edit.matrices.len(), edit.to.len()]);
            let to = self.runs([matrix, edit.to.start], count);
            match edit.from {
                _ if to.is_empty() => {}
                None => mover.clear((&mut self.storage, to))?,
                Some(row) => {
                    let from = Runs::of(new.dims(), self.axis, [matrix, row], count);
                    mover.copy((new, from), (&mut self.storage, to))?;
                }
            }
        }
        let mut edited = self.clone();
        edited.dims[self.axis] = length;
        Ok(edited.filled_to(length))
    }

    /// Rows of the storage.
    fn runs(&self, start: [usize; 2], count: [usize; 2]) -> Runs {
        Runs::of(self.storage.dims(), self.axis, start, count)
    }

    /// The size of the storage along the axis.
    fn capacity(&self) -> usize {
        self.storage.dims()[self.axis]
    }
}

/// The capacity for `length` rows instead of `former` ones, with at most `spare` rows more. Without this limit, copies take
/// constant time for each row on average.
fn capacity(length: usize, former: usize, spare: usize) -> Result<usize> {
    let capacity = |more: usize| length.checked_add(more.min(spare));
    let too_many = || Error::op(format!("{length} rows are too many"));
    capacity((former / 2).max(LEAST.saturating_sub(length))).ok_or_else(too_many)
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::threads::Threads;

    use super::*;
    use crate::value::rows::OnHost;

    fn numbers(from: u16, dims: &[usize]) -> Array {
        let count = dims.iter().product::<usize>() as u16;
        Array::new((from..from + count).collect(), dims).expect("they fill the shape")
    }

    fn seen(grown: &Grown) -> (Vec<usize>, Vec<u16>) {
        let array = grown.to_array(&Threads::serial()).expect("there is memory");
        (array.dims().to_vec(), array.read::<u16>().expect("uint16").to_vec())
    }

    /// The tensor with the rows of `new` behind its own, along axis 1.
    fn appended(grown: &mut Grown, new: &Array) -> Grown {
        let (start, end) = (grown.length(), grown.length() + new.dims()[1]);
        let edits = [Edit { matrices: 0..new.dims()[0], to: start..end, from: Some(0) }];
        grown.reserve(end, 1, &OnHost).expect("there is memory");
        assert!(grown.former(&edits, &OnHost).expect("there is memory").is_empty());
        grown.edited(end, &edits, new, &OnHost).expect("it has the capacity")
    }

    #[test]
    fn it_grows_in_place() {
        let first = numbers(0, &[2, 1, 2]);
        let mut grown = Grown::of(&first, 1).expect("it has the axis");
        assert!(grown.storage.shares_storage_with(&first));
        grown = appended(&mut grown, &numbers(4, &[2, 1, 2]));
        let before = grown.storage.storage();
        for at in 2..LEAST {
            let longer = appended(&mut grown, &numbers(at as u16 * 4, &[2, 1, 2]));
            assert_eq!((grown.length(), longer.length()), (at, at + 1));
            grown = longer;
        }
        assert_eq!(grown.storage.storage(), before);
        let expected: Vec<u16> =
            (0..2u16).flat_map(|i| (0..16u16).flat_map(move |j| [4 * j + 2 * i, 4 * j + 2 * i + 1])).collect();
        assert_eq!(seen(&grown), (vec![2, 16, 2], expected.clone()));
        let longer = appended(&mut grown, &numbers(64, &[2, 1, 2]));
        assert_ne!(longer.storage.storage(), before);
        assert_eq!((longer.length(), longer.storage.dims()[1]), (17, 25));
        assert_eq!(seen(&grown).1, expected);
        assert_eq!(first.read::<u16>().expect("uint16"), [0, 1, 2, 3]);
    }

    #[test]
    fn forks_do_not_see_each_other() {
        let mut one = Grown::of(&numbers(0, &[2, 2]), 1).expect("it has the axis");
        let mut other = one.first(1);
        let one = appended(&mut one, &numbers(10, &[2, 1]));
        let other = appended(&mut other, &numbers(20, &[2, 1]));
        assert_eq!(seen(&one), (vec![2, 3], vec![0, 1, 10, 2, 3, 11]));
        assert_eq!(seen(&other), (vec![2, 2], vec![0, 20, 2, 21]));
    }

    #[test]
    fn edits_are_taken_back() {
        let mut grown = Grown::of(&numbers(0, &[3, 4, 1]), 1).expect("an axis");
        let new = numbers(20, &[3, 2, 1]);
        let edits = [
            Edit { matrices: 1..3, to: 1..3, from: Some(0) },
            Edit { matrices: 0..1, to: 3..5, from: Some(0) },
            Edit { matrices: 2..3, to: 3..5, from: None },
        ];
        let before = seen(&grown);
        grown.reserve(5, 1, &OnHost).expect("there is memory");
        let former = grown.former(&edits, &OnHost).expect("there is memory");
        let edited = grown.edited(5, &edits, &new, &OnHost).expect("it has the capacity");
        assert_eq!(seen(&edited).1, [0, 1, 2, 20, 21, 4, 22, 23, 7, 0, 8, 24, 25, 0, 0]);
        assert_ne!(seen(&grown), before);
        drop(edited);
        let storage = grown.storage.storage();
        grown.restore(&former, &OnHost).expect("there is memory");
        assert_eq!((seen(&grown), grown.storage.storage()), (before, storage));
    }

    #[test]
    fn other_axes_and_sizes_are_refused() {
        let mut grown = Grown::of(&numbers(0, &[2]), 0).expect("it has the axis");
        assert!(Grown::of(&numbers(0, &[2]), 1).is_err() && grown.reserve(usize::MAX, 1, &OnHost).is_err());
    }
}
