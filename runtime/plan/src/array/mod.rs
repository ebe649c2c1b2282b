//! A tensor of numbers.

pub(crate) mod backing;
mod candle;
pub(crate) mod numbers;
#[allow(unsafe_code)] // Frees memory in the order of a stream that the caller names.
mod on_device;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
mod views;
mod word;
pub mod words;

pub(crate) use word::by_width;

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut, try_cast_slice, Pod};
use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, Storage, WithDType};
use candle_plan_descriptors::broadcast::Dims;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::size::{copied, element_count};
use backing::Backing;

/// A tensor: elements of a logical type, in row-major order.
///
/// Views share a storage, which is one of Candle's, device memory, a part of a plan's file, or memory of the caller. An
/// array may begin inside its storage (a view of outer rows). The runtime never overwrites a shared storage, a file or
/// the caller's memory.
#[derive(Debug)]
pub struct Array {
    storage: Arc<Backing>,
    /// The offset of the first element in the storage, in elements.
    start: usize,
    dims: Dims,
    dtype: DType,
}

impl Array {
    /// Makes a tensor of shape `dims` from `data`, without a copy.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    pub fn new<T: Element>(data: Vec<T>, dims: &[usize]) -> Result<Array> {
        let count = data.len();
        Array::filled(T::into_storage(data), count, dims, T::DTYPE)
    }

    /// Makes a tensor with one element and no dimensions.
    pub fn scalar<T: Element>(value: T) -> Array {
        let storage = Arc::new(Backing::host(T::into_storage(vec![value])));
        Array { storage, start: 0, dims: Dims::new(), dtype: T::DTYPE }
    }

    /// Makes a tensor of the logical type `dtype` from a storage of Candle, without a copy.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions, or the storage is not `dtype`'s storage dtype.
    pub fn from_storage(storage: CpuStorage, dims: &[usize], dtype: DType) -> Result<Array> {
        if storage.dtype() != dtype.storage_dtype()? {
            return Err(Error::op(format!("a Candle storage of type {:?} cannot hold {dtype}", storage.dtype())));
        }
        Array::lying_in(Backing::host(storage), dims, dtype)
    }

    /// Makes a tensor from a storage of Candle that holds `count` elements of `dtype`'s storage dtype.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    fn filled(storage: CpuStorage, count: usize, dims: &[usize], dtype: DType) -> Result<Array> {
        if element_count(dims)? != count {
            return Err(misfit(count, dims));
        }
        Ok(Array { storage: Arc::new(Backing::host(storage)), start: 0, dims: Dims::from_slice(dims), dtype })
    }

    /// Makes a tensor from all elements of a storage, which have `dtype`'s storage dtype.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions, or the storage is not aligned for the storage
    /// dtype.
    pub(crate) fn lying_in(storage: Backing, dims: &[usize], dtype: DType) -> Result<Array> {
        let (count, width) = (element_count(dims)?, dtype.width()?);
        let bytes = storage.bytes().unwrap_or_default();
        if count.checked_mul(width) != Some(bytes.len()) {
            return Err(misfit(bytes.len() / width, dims));
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

    /// Returns the elements in row-major order, without a copy.
    ///
    /// # Errors
    /// `T` is not the logical type, or the tensor is not on the CPU.
    pub fn read<T: Element>(&self) -> Result<&[T]> {
        self.expect::<T>()?;
        match &*self.storage {
            Backing::Candle(Storage::Cpu(storage)) => {
                let elements = T::stored(storage).and_then(|all| all.get(self.start..)?.get(..self.len()));
                elements.map(cast_slice).ok_or_else(|| self.not_held::<T>())
            }
            _ => self.bits(),
        }
    }

    /// Returns the elements as the storage dtype, for types that have no Rust type (`U: Element` names the storage
    /// dtype: `u8`).
    ///
    /// # Errors
    /// `U`'s storage dtype is not this tensor's storage dtype, or the tensor is not on the CPU.
    pub fn bits<U: Element>(&self) -> Result<&[U]> {
        let has_storage_dtype = self.dtype.storage_dtype()? == <U::Stored as WithDType>::DTYPE;
        let elements = self.elements().filter(|_| has_storage_dtype);
        elements.ok_or_else(|| self.not_held::<U>())
    }

    #[cold]
    fn not_held<U: Element>(&self) -> Error {
        Error::op(format!("the tensor's storage does not hold {}", U::DTYPE))
    }

    /// Returns the elements as numbers of type `P`, or `None` if `P` has another width or the elements are not on the
    /// CPU.
    pub(crate) fn elements<P: Pod>(&self) -> Option<&[P]> {
        let is_as_wide = self.dtype.width().is_ok_and(|width| width == size_of::<P>());
        self.bytes().filter(|_| is_as_wide).and_then(|bytes| try_cast_slice(bytes).ok())
    }

    /// Returns the bytes of the elements.
    ///
    /// # Errors
    /// The elements are not on the host.
    pub(crate) fn bytes_on_host(&self) -> Result<&[u8]> {
        self.bytes().ok_or_else(|| Error::op("the tensor is on a device"))
    }

    /// Returns the bytes of the elements, or `None` if they are not on the CPU.
    fn bytes(&self) -> Option<&[u8]> {
        let width = self.dtype.width().ok()?;
        self.storage.bytes()?.get(self.start * width..)?.get(..self.len() * width)
    }

    /// Changes the elements with `rewrite`, in place if the storage [is unshared](Array::is_alone), otherwise in a
    /// copy.
    ///
    /// # Errors
    /// `T` is not the logical type, the tensor is not on the CPU, or `rewrite` fails.
    pub fn update<T: Element>(&mut self, rewrite: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
        self.expect::<T>()?;
        let (storage, range) = self.alone()?;
        let elements = T::stored_mut(storage).and_then(|all| all.get_mut(range));
        let elements = elements.ok_or_else(|| Error::op("the tensor's storage does not hold its elements"))?;
        rewrite(cast_slice_mut(elements))
    }

    /// Returns the storage for writing, and the range of the elements in it. Copies the elements first unless the
    /// storage [is unshared](Array::is_alone).
    ///
    /// # Errors
    /// The allocation fails, or the tensor is not on the CPU.
    pub(crate) fn alone(&mut self) -> Result<(&mut CpuStorage, Range<usize>)> {
        if !self.is_alone() {
            *self = self.copy()?;
        }
        let range = self.start..self.start + self.len();
        match Arc::get_mut(&mut self.storage) {
            Some(Backing::Candle(Storage::Cpu(storage))) => Ok((storage, range)),
            _ => Err(Error::op("the tensor is not on the CPU")),
        }
    }

    /// Whether the storage may be overwritten: no other array shares it, it is not a file, and its memory does not
    /// belong to the caller.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.storage) == 1 && self.storage.is_owned()
    }

    /// Whether the storage belongs to the runtime and holds no elements beside those of this array.
    pub(crate) fn is_whole(&self) -> bool {
        self.storage.is_owned() && self.storage().1 == self.bytes_of_elements()
    }

    /// The bytes of the elements.
    pub(crate) fn bytes_of_elements(&self) -> usize {
        self.dtype.width().map_or(0, |width| width * self.len())
    }

    /// Returns the elements, without a copy if this array alone owns the storage and covers all of it.
    ///
    /// # Errors
    /// `T`'s storage dtype is not this tensor's storage dtype, or the tensor is not on the CPU.
    pub fn into_elements<T: Element>(mut self) -> Result<Vec<T>> {
        let length = self.len();
        match Arc::get_mut(&mut self.storage) {
            Some(Backing::Candle(Storage::Cpu(storage))) => match T::stored_mut(storage) {
                Some(all) if all.len() == length => Ok(bytemuck::allocation::cast_vec(std::mem::take(all))),
                _ => copied(self.bits()?),
            },
            _ => copied(self.bits()?),
        }
    }

    /// Returns the address of the storage and its size in bytes, which is 0 for the caller's memory on the host. The
    /// address does not change when a step takes over the storage.
    pub(crate) fn storage(&self) -> (usize, usize) {
        match (&*self.storage, self.storage.bytes()) {
            (Backing::Device(buffer), _) if !buffer.is_empty() => (buffer.address() as usize, buffer.len()),
            (Backing::Lent(_), Some(bytes)) if !bytes.is_empty() => (bytes.as_ptr().addr(), 0),
            (_, Some(bytes)) if !bytes.is_empty() => (bytes.as_ptr().addr(), bytes.len()),
            _ => (Arc::as_ptr(&self.storage).addr(), 0),
        }
    }

    fn expect<T: Element>(&self) -> Result<()> {
        match self.dtype {
            dtype if dtype == T::DTYPE => Ok(()),
            dtype => Err(Error::op(format!("expected {}, found {dtype}", T::DTYPE))),
        }
    }
}

#[cold]
fn misfit(count: usize, dims: &[usize]) -> Error {
    Error::op(format!("{count} elements do not fill a tensor of shape {dims:?}"))
}
