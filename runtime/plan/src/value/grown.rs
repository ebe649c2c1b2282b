//! Tensors that grow along an axis, in storage with room for more.

use candle_plan_descriptors::broadcast::Dims;
use candle_plan_descriptors::strided::View;
use candle_plan_kernels::strided::copy;
use candle_plan_kernels::threads::Threads;

use crate::array::words::{self, Word};
use crate::array::Array;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The smallest room along the axis.
const LEAST: usize = 16;

/// A tensor on the host that grows along an axis. A clone shares the storage until one of the two grows.
#[derive(Debug, Clone)]
pub struct Grown {
    /// The storage: a tensor with the dimensions of this one, except that it is longer along the axis. Elements beyond the
    /// present length mean nothing.
    room: Array,
    axis: usize,
    dims: Dims,
}

impl Grown {
    /// Copies a tensor into storage with room for `more` elements along the axis.
    ///
    /// # Errors
    /// The allocation fails, or the tensor has no such axis or is not on the host.
    pub fn of(array: &Array, axis: usize, more: usize) -> Result<Grown> {
        let length = array.dims().get(axis).ok_or_else(|| Error::op(format!("there is no axis {axis}")))?;
        let mut dims = Dims::from_slice(array.dims());
        dims[axis] = capacity(*length, more)?;
        let mut grown = Grown { room: empty(&dims, array.dtype())?, axis, dims };
        grown.dims[axis] = 0;
        grown.write(array)?;
        Ok(grown)
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.room.dtype()
    }

    /// The storage, and the axis along which it is longer than this tensor.
    pub fn room(&self) -> (&Array, usize) {
        (&self.room, self.axis)
    }

    /// The bytes of the elements, without the room for more.
    pub(crate) fn bytes_of_elements(&self) -> usize {
        self.dtype().width().map_or(0, |width| width * self.dims.iter().product::<usize>())
    }

    /// The size along the axis.
    pub fn length(&self) -> usize {
        self.dims[self.axis]
    }

    /// The first `length` elements along the axis, in the same storage.
    pub fn first(&self, length: usize) -> Grown {
        let mut first = self.clone();
        first.dims[self.axis] = length.min(self.length());
        first
    }

    /// Returns this tensor with `new` behind it. It lies in the same storage if there is room and nothing else shares the
    /// storage. Otherwise, this tensor moves to new storage too. The elements of this tensor stay the same.
    ///
    /// # Errors
    /// The dimensions or dtypes differ, or the allocation fails.
    pub fn appended(&mut self, new: &Array) -> Result<Grown> {
        let more = new.dims().get(self.axis).copied().unwrap_or(0);
        let fits = |(axis, (own, other)): (usize, (&usize, &usize))| axis == self.axis || own == other;
        let fit = self.dims.len() == new.rank() && self.dims.iter().zip(new.dims()).enumerate().all(fits);
        if !fit || self.dtype() != new.dtype() {
            let (old, other) =
                (format!("{} {:?}", self.dtype(), self.dims()), format!("{} {:?}", new.dtype(), new.dims()));
            return Err(Error::op(format!("cannot concatenate {old} and {other} along axis {}", self.axis)));
        }
        let room = self.room.dims()[self.axis];
        if self.length().checked_add(more).is_none_or(|needed| needed > room) || !self.room.is_alone() {
            *self = Grown::of(&self.to_array(&Threads::serial())?, self.axis, more)?;
        }
        let length = self.length();
        self.write(new)?;
        let longer = self.clone();
        self.dims[self.axis] = length;
        Ok(longer)
    }

    /// The elements in row-major order: a view if nothing lies between them, or a copy.
    ///
    /// # Errors
    /// The allocation fails.
    pub fn to_array(&self, threads: &Threads) -> Result<Array> {
        if self.dims[..self.axis].iter().all(|&dim| dim == 1) {
            return self.room.narrow_outer(self.axis, 0, self.length());
        }
        let mut view = View::contiguous(self.room.dims());
        view.dims[self.axis] = self.length();
        by_width!(self.dtype(), W => {
            let room = words::read::<W>(&self.room)?;
            let out = words::alloc_uninit::<W>(&view.dims)?.overwrite(|out| copy(room, &view, out, threads));
            words::array(out, &view.dims, self.dtype())
        })
    }

    /// Writes a tensor behind the elements, and adds its length.
    fn write(&mut self, new: &Array) -> Result<()> {
        let inner: usize = self.dims[self.axis + 1..].iter().product();
        let (pitch, start) = (self.room.dims()[self.axis] * inner, self.length() * inner);
        let more = new.dims()[self.axis];
        by_width!(new.dtype(), W => write_rows::<W>(&mut self.room, new, [pitch, start, more * inner]))?;
        self.dims[self.axis] += more;
        Ok(())
    }
}

/// Copies runs of `count` elements to places that are `pitch` apart, the first of them at `start`.
fn write_rows<W: Word>(room: &mut Array, new: &Array, [pitch, start, count]: [usize; 3]) -> Result<()> {
    let from = words::read::<W>(new)?;
    words::update::<W>(room, |to| {
        if count > 0 {
            for (to, from) in to.chunks_exact_mut(pitch).zip(from.chunks_exact(count)) {
                to[start..start + count].copy_from_slice(from);
            }
        }
    })
}

/// The room for `length` elements and `more`, so that copies take constant time for each element on average.
fn capacity(length: usize, more: usize) -> Result<usize> {
    let needed = length.checked_add(more).ok_or_else(|| Error::op(format!("{length} and {more} are too many")))?;
    Ok(needed.max(needed.saturating_add(length / 2)).max(LEAST))
}

/// A tensor of zeros.
fn empty(dims: &[usize], dtype: DType) -> Result<Array> {
    by_width!(dtype, W => {
        words::array(words::alloc_uninit::<W>(dims)?.fill(0), dims, dtype)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: u16, dims: &[usize]) -> Array {
        let count = dims.iter().product::<usize>() as u16;
        Array::new((from..from + count).collect(), dims).expect("they fill the shape")
    }

    fn seen(grown: &Grown) -> (Vec<usize>, Vec<u16>) {
        let array = grown.to_array(&Threads::serial()).expect("there is memory");
        (array.dims().to_vec(), array.read::<u16>().expect("uint16").to_vec())
    }

    #[test]
    fn it_grows_in_place() {
        let mut grown = Grown::of(&numbers(0, &[2, 1, 2]), 1, 0).expect("there is memory");
        let before = grown.room.storage();
        for at in 1..LEAST {
            let longer = grown.appended(&numbers(at as u16 * 4, &[2, 1, 2])).expect("it fits");
            assert_eq!((grown.length(), longer.length()), (at, at + 1));
            grown = longer;
        }
        assert_eq!(grown.room.storage(), before);
        let expected: Vec<u16> =
            (0..2u16).flat_map(|i| (0..16u16).flat_map(move |j| [4 * j + 2 * i, 4 * j + 2 * i + 1])).collect();
        assert_eq!(seen(&grown), (vec![2, 16, 2], expected.clone()));
        let longer = grown.appended(&numbers(64, &[2, 1, 2])).expect("it moves");
        assert_ne!(longer.room.storage(), before);
        assert_eq!((longer.length(), longer.room.dims()[1]), (17, 25));
        assert_eq!(seen(&grown).1, expected);
    }

    #[test]
    fn forks_do_not_see_each_other() {
        let mut one = Grown::of(&numbers(0, &[2, 2]), 1, 0).expect("there is memory");
        let mut other = one.first(1);
        let one = one.appended(&numbers(10, &[2, 1])).expect("it fits");
        let other = other.appended(&numbers(20, &[2, 1])).expect("it fits");
        assert_eq!(seen(&one), (vec![2, 3], vec![0, 1, 10, 2, 3, 11]));
        assert_eq!(seen(&other), (vec![2, 2], vec![0, 20, 2, 21]));
    }

    #[test]
    fn the_outermost_axis_needs_no_copy() {
        let mut grown = Grown::of(&numbers(0, &[1, 2, 2]), 1, 4).expect("there is memory");
        let longer = grown.appended(&numbers(4, &[1, 1, 2])).expect("it fits");
        let view = longer.to_array(&Threads::serial()).expect("a view");
        assert!(view.shares_storage_with(&longer.room));
        assert_eq!(seen(&longer), (vec![1, 3, 2], vec![0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn other_shapes_are_refused() {
        let mut grown = Grown::of(&numbers(0, &[2, 1]), 1, 0).expect("there is memory");
        for new in [numbers(0, &[3, 1]), numbers(0, &[2]), Array::new(vec![0i16; 2], &[2, 1]).expect("two")] {
            assert!(grown.appended(&new).is_err());
        }
        assert!(Grown::of(&numbers(0, &[2]), 1, 0).is_err() && Grown::of(&numbers(0, &[2]), 0, usize::MAX).is_err());
        let nothing = grown.appended(&numbers(0, &[2, 0])).expect("no row");
        assert_eq!(seen(&nothing), (vec![2, 1], vec![0, 1]));
    }
}
