//! A tensor of numbers.

pub(crate) mod backing;
mod candle;
#[allow(unsafe_code)] // Leaves memory to a stream that the caller names.
mod on_device;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
pub mod words;

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{cast_slice_mut, try_cast_slice, Pod};
use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, Storage, WithDType};
use candle_plan_kernels::broadcast::Dims;

use crate::by_width;
use crate::dispatch;
use crate::dtype::{Bool, DType, Element};
use crate::error::{Error, Result};
use crate::size::{element_count, list};
use backing::Backing;
use words::Word;

/// Elements in row-major order, of a logical type, in a storage that views share: one of candle's, or a part of a
/// plan's file.
///
/// It may begin inside that storage (a view of outer rows). A storage that several arrays lie in is never rewritten, nor is
/// a file.
#[derive(Debug)]
pub struct Array {
    storage: Arc<Backing>,
    /// Elements of the storage before the first.
    start: usize,
    dims: Dims,
    dtype: DType,
}

/// Says that an integer, element `place` of its tensor, is too large for [`Array::to_i64`].
pub(crate) fn beyond_i64(integer: impl Display, place: usize) -> String {
    format!("{integer} does not fit in 64 bits (element {place})")
}

impl Array {
    /// A tensor of shape `dims` that takes `data` over without a copy.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    pub fn new<T: Element>(data: Vec<T>, dims: &[usize]) -> Result<Array> {
        Array::lying_in(Backing::host(stored(data)), dims, T::DTYPE)
    }

    /// A tensor of one element and no dimensions.
    pub fn scalar<T: Element>(value: T) -> Array {
        let storage = Arc::new(Backing::host(stored(vec![value])));
        Array { storage, start: 0, dims: Dims::new(), dtype: T::DTYPE }
    }

    /// A tensor whose storage dtype is given.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions, or the storage is not `dtype`'s storage dtype.
    pub fn from_storage(storage: CpuStorage, dims: &[usize], dtype: DType) -> Result<Array> {
        if storage.dtype() != dtype.storage_dtype()? {
            return Err(Error::op(format!("{:?} storage does not carry {dtype}", storage.dtype())));
        }
        Array::lying_in(Backing::host(storage), dims, dtype)
    }

    /// A tensor whose storage dtype's elements are those that the storage holds.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions, or they are not aligned as the storage dtype's are.
    pub(crate) fn lying_in(storage: Backing, dims: &[usize], dtype: DType) -> Result<Array> {
        let (count, width) = (element_count(dims)?, dtype.storage_dtype()?.size_in_bytes());
        let bytes = storage.bytes().unwrap_or_default();
        if count.checked_mul(width) != Some(bytes.len()) {
            let found = bytes.len() / width;
            return Err(Error::op(format!("{found} elements do not fill a tensor of shape {dims:?}")));
        }
        if !bytes.as_ptr().addr().is_multiple_of(width) {
            return Err(Error::op(format!("the elements are not aligned to {width} bytes")));
        }
        Ok(Array { storage: Arc::new(storage), start: 0, dims: Dims::from_slice(dims), dtype })
    }

    /// The logical element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// The elements in row-major order, without a copy.
    ///
    /// # Errors
    /// `T` is not the logical type, or the tensor is not on the CPU.
    pub fn read<T: Element>(&self) -> Result<&[T]> {
        self.expect::<T>()?;
        self.bits()
    }

    /// The elements of the storage dtype, for types without a Rust type of their own (`U: Element` names the storage dtype: `u8`).
    ///
    /// # Errors
    /// `U`'s storage dtype is not this tensor's storage dtype, or the tensor is not on the CPU.
    pub fn bits<U: Element>(&self) -> Result<&[U]> {
        let has_storage_dtype = self.dtype.storage_dtype()? == <U::Stored as WithDType>::DTYPE;
        let elements = self.elements().filter(|_| has_storage_dtype);
        elements.ok_or_else(|| Error::op(format!("the tensor's storage does not hold {}", U::DTYPE)))
    }

    /// The elements as numbers of another type; `None` where that is not as wide, or they are not on the CPU.
    pub(crate) fn elements<P: Pod>(&self) -> Option<&[P]> {
        let is_as_wide = self.dtype.storage_dtype().is_ok_and(|stored| stored.size_in_bytes() == size_of::<P>());
        self.bytes().filter(|_| is_as_wide).and_then(|bytes| try_cast_slice(bytes).ok())
    }

    /// The elements' bytes.
    ///
    /// # Errors
    /// They are not on the host.
    pub(crate) fn bytes_on_host(&self) -> Result<&[u8]> {
        self.bytes().ok_or_else(|| Error::op("the tensor is on a device"))
    }

    /// The elements' bytes; `None` where they are not on the CPU.
    fn bytes(&self) -> Option<&[u8]> {
        let width = self.dtype.storage_dtype().ok()?.size_in_bytes();
        self.storage.bytes()?.get(self.start * width..)?.get(..self.len() * width)
    }

    /// The elements' bytes, to write, where this array [alone](Array::is_alone) lies in its storage.
    ///
    /// # Errors
    /// The tensor is not on the CPU.
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        let dtype = self.dtype;
        let (storage, range) = self.alone()?;
        by_width!(dtype, W => {
            let words = W::of_mut(storage).and_then(|words| words.get_mut(range));
            words.map(cast_slice_mut).ok_or_else(|| Error::op("the tensor's storage does not hold its elements"))
        })
    }

    /// The elements as 64-bit integers, from any integer or boolean type: how ops read shapes, axes and indices.
    ///
    /// # Errors
    /// The type is not an integer, or a value does not fit.
    #[allow(clippy::unnecessary_fallible_conversions)] // infallible for some of the types
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        match self.dtype {
            DType::Int64 => Ok(self.read::<i64>()?.to_vec()),
            DType::Bool => list(self.read::<Bool>()?.iter().map(|b| i64::from(b.0))),
            dtype => dispatch!("an index", dtype, [i32, i16, i8, u8, u16, u32, u64], T => {
                let fits = |(place, v): (usize, &T)| i64::try_from(*v).map_err(|_| Error::Op(beyond_i64(v, place)));
                self.read::<T>()?.iter().enumerate().map(fits).collect()
            }),
        }
    }

    /// The type alone, of a tensor of more than one element: elements cannot be read.
    pub(crate) fn outline(&self) -> Array {
        match self.len() {
            0 | 1 => self.clone(),
            _ => Array { storage: Arc::new(Backing::host(CpuStorage::U8(Vec::new()))), start: 0, ..self.clone() },
        }
    }

    /// The same elements under other dimensions, sharing storage.
    ///
    /// # Errors
    /// The dimensions hold another number of elements.
    pub fn reshape(&self, dims: &[usize]) -> Result<Array> {
        if element_count(dims)? != self.len() {
            return Err(Error::op(format!("cannot view {:?} as {dims:?}", self.dims())));
        }
        let dims = Dims::from_slice(dims);
        Ok(Array { storage: Arc::clone(&self.storage), start: self.start, dims, dtype: self.dtype })
    }

    /// Rows `start .. start + length` of the outermost dimension that is not 1, sharing storage.
    ///
    /// # Errors
    /// The range is not inside dimension `axis`, or an axis before it is not 1.
    pub fn narrow_outer(&self, axis: usize, start: usize, length: usize) -> Result<Array> {
        if self.dims().iter().take(axis).any(|&d| d != 1) {
            return Err(Error::op(format!("axis {axis} of {:?} is not the outermost", self.dims())));
        }
        let end = start.checked_add(length);
        if self.dims.get(axis).is_none_or(|&size| end.is_none_or(|end| end > size)) {
            return Err(Error::op(format!("there are no rows {start} to {start} + {length} along axis {axis}")));
        }
        let mut rows = self.clone();
        rows.dims[axis] = length;
        rows.start += start * self.dims[axis + 1..].iter().product::<usize>();
        Ok(rows)
    }

    /// The same bits as another logical type with the same storage dtype (`bool` read as `uint8`, say), sharing storage.
    ///
    /// # Errors
    /// The carriers differ.
    pub fn reinterpret(&self, dtype: DType) -> Result<Array> {
        if self.dtype.storage_dtype()? != dtype.storage_dtype()? {
            return Err(Error::op(format!("{} elements are not bits of {dtype}", self.dtype)));
        }
        Ok(Array { dtype, ..self.clone() })
    }

    /// Rewrites the elements: where they stand, unless another array lies in the same storage, or that is a file.
    ///
    /// # Errors
    /// `T` is not the logical type, the tensor is not on the CPU, or what `rewrite` returned.
    pub fn update<T: Element>(&mut self, rewrite: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
        self.expect::<T>()?;
        let (storage, range) = self.alone()?;
        let elements = T::stored_mut(storage).and_then(|all| all.get_mut(range));
        let elements = elements.ok_or_else(|| Error::op("the tensor's storage does not hold its elements"))?;
        rewrite(cast_slice_mut(elements))
    }

    /// The storage, where this array [alone](Array::is_alone) lies in it, and where the elements lie: they are copied
    /// if need be.
    ///
    /// # Errors
    /// There is no memory for the copy, or the tensor is not on the CPU.
    pub(crate) fn alone(&mut self) -> Result<(&mut CpuStorage, Range<usize>)> {
        if !self.is_alone() {
            *self = words::copy(self)?;
        }
        let range = self.start..self.start + self.len();
        match Arc::get_mut(&mut self.storage) {
            Some(Backing::Candle(Storage::Cpu(storage))) => Ok((storage, range)),
            _ => Err(Error::op("the tensor is not on the CPU")),
        }
    }

    /// Whether no other array lies in the storage, and that may be rewritten: it is no file, nor memory of somebody else.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.storage) == 1 && !self.is_in_file() && !self.is_lent()
    }

    /// Whether the elements lie in a plan's file.
    pub(crate) fn is_in_file(&self) -> bool {
        matches!(*self.storage, Backing::File(_))
    }

    /// The elements, without a copy where this array alone lies in their storage, all of it.
    ///
    /// # Errors
    /// `T`'s storage dtype is not this tensor's storage dtype, or the tensor is not on the CPU.
    pub fn into_elements<T: Element>(mut self) -> Result<Vec<T>> {
        let length = self.len();
        match Arc::get_mut(&mut self.storage) {
            Some(Backing::Candle(Storage::Cpu(storage))) => match T::stored_mut(storage) {
                Some(all) if all.len() == length => Ok(bytemuck::allocation::cast_vec(std::mem::take(all))),
                _ => Ok(self.bits::<T>()?.to_vec()),
            },
            _ => Ok(self.bits::<T>()?.to_vec()),
        }
    }

    /// Where the storage is that the elements lie in, and how many bytes it has: it stays there where a step takes it over.
    pub(crate) fn storage(&self) -> (usize, usize) {
        match (&*self.storage, self.storage.bytes()) {
            (Backing::Device(buffer), _) if !buffer.is_empty() => (buffer.address() as usize, buffer.len()),
            (_, Some(bytes)) if !bytes.is_empty() => (bytes.as_ptr().addr(), bytes.len()),
            _ => (Arc::as_ptr(&self.storage).addr(), 0),
        }
    }

    /// Whether both lie in one storage.
    pub fn shares_storage_with(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    fn expect<T: Element>(&self) -> Result<()> {
        match self.dtype {
            dtype if dtype == T::DTYPE => Ok(()),
            dtype => Err(Error::op(format!("expected {}, found {dtype}", T::DTYPE))),
        }
    }
}

impl Clone for Array {
    /// Another view of the same storage.
    fn clone(&self) -> Array {
        // Of its dimensions, all at once: a small vector clones what it holds one by one.
        let dims = Dims::from_slice(&self.dims);
        Array { storage: Arc::clone(&self.storage), start: self.start, dims, dtype: self.dtype }
    }
}

fn stored<T: Element>(data: Vec<T>) -> CpuStorage {
    let stored: Vec<T::Stored> = bytemuck::allocation::cast_vec(data);
    <T::Stored as candle_core::WithDType>::to_cpu_storage_owned(stored)
}
