//! Views of a tensor: arrays that share its storage.

use std::sync::Arc;

use candle_core::CpuStorage;
use candle_plan_descriptors::broadcast::Dims;

use super::{Array, Backing};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::element_count;

impl Array {
    /// Returns a tensor of the same type without its elements, unless it has at most one element.
    pub(crate) fn outline(&self) -> Array {
        match self.len() {
            0 | 1 => self.clone(),
            _ => Array::hollow(&self.dims, self.dtype),
        }
    }

    /// A tensor without its elements, for steps that read only the dimensions.
    pub(crate) fn hollow(dims: &[usize], dtype: DType) -> Array {
        let storage = Arc::new(Backing::host(CpuStorage::U8(Vec::new())));
        Array { storage, start: 0, dims: Dims::from_slice(dims), dtype }
    }

    /// Returns a view with other dimensions.
    ///
    /// # Errors
    /// The new dimensions hold another number of elements.
    pub fn reshape(&self, dims: &[usize]) -> Result<Array> {
        if element_count(dims)? != self.len() {
            return Err(Error::op(format!("cannot view {:?} as {dims:?}", self.dims())));
        }
        let dims = Dims::from_slice(dims);
        Ok(Array { storage: Arc::clone(&self.storage), start: self.start, dims, dtype: self.dtype })
    }

    /// Returns a view of the rows `start .. start + length` of axis `axis`; every axis before it has size 1.
    ///
    /// # Errors
    /// The range is not inside axis `axis`, or an axis before it is not 1.
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

    /// Returns a view of the same bits as another logical type with the same storage dtype, such as `bool` as `uint8`.
    ///
    /// # Errors
    /// The storage dtypes differ.
    pub fn reinterpret(&self, dtype: DType) -> Result<Array> {
        if self.dtype.storage_dtype()? != dtype.storage_dtype()? {
            return Err(Error::op(format!("{} elements are not bits of {dtype}", self.dtype)));
        }
        Ok(Array { dtype, ..self.clone() })
    }

    /// Whether both arrays share one storage.
    pub fn shares_storage_with(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }
}

impl Clone for Array {
    /// Returns another view of the same storage.
    fn clone(&self) -> Array {
        // `SmallVec::clone` clones one dimension at a time; this copies them all at once.
        let dims = Dims::from_slice(&self.dims);
        Array { storage: Arc::clone(&self.storage), start: self.start, dims, dtype: self.dtype }
    }
}
