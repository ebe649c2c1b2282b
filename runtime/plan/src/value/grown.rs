//! Tensors that grow along an axis, in storage that is longer than they are.

use candle_plan_descriptors::broadcast::Dims;

use crate::array::words;
use crate::array::Array;
use crate::by_width;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The smallest capacity along the axis.
const LEAST: usize = 16;

/// A tensor on the host that grows along an axis. A clone shares the storage until one of the two grows.
#[derive(Debug, Clone)]
pub struct Grown {
    /// The storage: a tensor with the dimensions of this one, except that it is longer along the axis. Elements beyond the
    /// present length mean nothing.
    storage: Array,
    axis: usize,
    dims: Dims,
}

impl Grown {
    /// Copies a tensor into storage with capacity for `more` elements along the axis.
    ///
    /// # Errors
    /// The allocation fails, or the tensor has no such axis or is not on the host.
    pub fn of(array: &Array, axis: usize, more: usize) -> Result<Grown> {
        let length = array.dims().get(axis).ok_or_else(|| Error::op(format!("there is no axis {axis}")))?;
        let mut grown = Grown::with_capacity(array.dims(), array.dtype(), axis, capacity(*length, more)?)?;
        grown.write(array)?;
        Ok(grown)
    }

    /// A tensor of the length 0, and of these dimensions along the other axes.
    fn with_capacity(dims: &[usize], dtype: DType, axis: usize, capacity: usize) -> Result<Grown> {
        let mut dims = Dims::from_slice(dims);
        dims[axis] = capacity;
        let storage = empty(&dims, dtype)?;
        dims[axis] = 0;
        Ok(Grown { storage, axis, dims })
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.storage.dtype()
    }

    /// The storage, and the axis along which it is longer than this tensor.
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

    /// The first `length` elements along the axis, in the same storage.
    pub fn first(&self, length: usize) -> Grown {
        let mut first = self.clone();
        first.dims[self.axis] = length.min(self.length());
        first
    }

    /// Returns this tensor with `new` behind it. It lies in the same storage if that has the capacity and nothing else
    /// shares it. Otherwise, this tensor moves to new storage too. The elements of this tensor stay the same.
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
        let fits = self.length().checked_add(more).is_some_and(|needed| needed <= self.capacity());
        if !fits || !self.storage.is_alone() {
            *self = self.moved(more)?;
        }
        let length = self.length();
        self.write(new)?;
        let longer = self.clone();
        self.dims[self.axis] = length;
        Ok(longer)
    }

    /// The size of the storage along the axis.
    fn capacity(&self) -> usize {
        self.storage.dims()[self.axis]
    }

    /// Returns this tensor in new storage with capacity for `more` elements along the axis.
    fn moved(&self, more: usize) -> Result<Grown> {
        let mut moved = Grown::with_capacity(&self.dims, self.dtype(), self.axis, capacity(self.length(), more)?)?;
        moved.write_rows(&self.storage, self.length())?;
        Ok(moved)
    }

    /// Writes a tensor behind the elements, and adds its length.
    fn write(&mut self, new: &Array) -> Result<()> {
        self.write_rows(new, new.dims()[self.axis])
    }

    /// Writes the first `more` elements along the axis of a tensor behind the elements, and adds their number.
    fn write_rows(&mut self, new: &Array, more: usize) -> Result<()> {
        let inner: usize = self.dims[self.axis + 1..].iter().product();
        let (start, count) = (self.length() * inner, more * inner);
        let [to_pitch, from_pitch] = [self.capacity(), new.dims()[self.axis]].map(|size| size * inner);
        if count > 0 {
            by_width!(new.dtype(), W => {
                let from = words::read::<W>(new)?.chunks_exact(from_pitch);
                words::update::<W>(&mut self.storage, |to| {
                    for (to, from) in to.chunks_exact_mut(to_pitch).zip(from) {
                        to[start..start + count].copy_from_slice(&from[..count]);
                    }
                })
            })?;
        }
        self.dims[self.axis] += more;
        Ok(())
    }
}

/// The capacity for `length` elements and `more`, so that copies take constant time for each element on average.
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
    use candle_plan_kernels::threads::Threads;

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
        let before = grown.storage.storage();
        for at in 1..LEAST {
            let longer = grown.appended(&numbers(at as u16 * 4, &[2, 1, 2])).expect("it fits");
            assert_eq!((grown.length(), longer.length()), (at, at + 1));
            grown = longer;
        }
        assert_eq!(grown.storage.storage(), before);
        let expected: Vec<u16> =
            (0..2u16).flat_map(|i| (0..16u16).flat_map(move |j| [4 * j + 2 * i, 4 * j + 2 * i + 1])).collect();
        assert_eq!(seen(&grown), (vec![2, 16, 2], expected.clone()));
        let longer = grown.appended(&numbers(64, &[2, 1, 2])).expect("it moves");
        assert_ne!(longer.storage.storage(), before);
        assert_eq!((longer.length(), longer.storage.dims()[1]), (17, 25));
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
