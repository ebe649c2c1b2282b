//! Arrays in device memory.

use std::ops::Range;
use std::sync::Arc;

use candle_plan_descriptors::broadcast::Dims;
use candle_plan_device::{Buffer, Gpu};

use super::Array;
use crate::array::backing::Backing;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::element_count;

impl Array {
    /// Makes a tensor from all the bytes of a device buffer.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    pub(crate) fn on_device(buffer: Buffer, dims: &[usize], dtype: DType) -> Result<Array> {
        if element_count(dims)?.checked_mul(dtype.storage_dtype()?.size_in_bytes()) != Some(buffer.len()) {
            return Err(Error::op(format!("{} bytes do not fill a {dtype} tensor of shape {dims:?}", buffer.len())));
        }
        Ok(Array { storage: Arc::new(Backing::Device(buffer)), start: 0, dims: Dims::from_slice(dims), dtype })
    }

    /// Returns the device address of the first element.
    ///
    /// # Errors
    /// The tensor is on the host.
    pub fn address(&self) -> Result<u64> {
        let (buffer, range) = self.in_buffer()?;
        Ok(buffer.address() + range.start as u64)
    }

    /// Whether the elements are in device memory.
    pub fn is_on_device(&self) -> bool {
        matches!(*self.storage, Backing::Device(_))
    }

    /// Returns the name of the device that holds the elements.
    pub fn device(&self) -> &str {
        match &*self.storage {
            Backing::Device(buffer) => buffer.gpu().name(),
            _ => "cpu",
        }
    }

    /// Copies a tensor from its device to the host.
    ///
    /// # Errors
    /// The tensor is on the host, the allocation fails, or the device fails.
    pub fn to_host(&self) -> Result<Array> {
        super::transfer::download(self)
    }

    /// Delays the later free of the memory until the work that `stream` has now is done. Another library gave `stream`
    /// that work. Without a stream, waits for all work of the GPU.
    ///
    /// # Errors
    /// The tensor is on the host, or the device fails.
    ///
    /// # Safety
    /// `stream` is a stream of the device.
    pub unsafe fn free_after(&self, stream: Option<u64>) -> Result<()> {
        let gpu = self.in_buffer()?.0.gpu();
        // SAFETY: the caller guarantees that it is a stream of the device. Memory is freed in the order of the waiting
        // stream.
        let waits = stream.map(|stream| unsafe { gpu.wait_for(stream) });
        match waits {
            Some(Ok(())) => Ok(()),
            _ => Ok(gpu.finish_all()?),
        }
    }

    /// Copies the tensor to memory of its own on the same device, in the order of the work of `gpu`.
    ///
    /// # Errors
    /// The tensor is on the host, or the device is out of memory.
    pub(crate) fn copy_on_device(&self, gpu: &Gpu) -> Result<Array> {
        let (buffer, range) = self.in_buffer()?;
        Array::on_device(buffer.copied(gpu, range.start, range.len())?, self.dims(), self.dtype)
    }

    /// Gives the memory of the elements to the caller, as [`Buffer::into_memory`] describes. Returns the tensor itself if
    /// something else uses its memory too.
    ///
    /// # Errors
    /// The device reports an error.
    ///
    /// # Safety
    /// `stream` is a stream of the device.
    #[cfg(feature = "candle-cuda")]
    pub(crate) unsafe fn into_memory(self, stream: u64) -> Result<std::result::Result<u64, Array>> {
        if !(self.is_alone() && self.is_whole() && self.is_on_device()) {
            return Ok(Err(self));
        }
        let Array { storage, start, dims, dtype } = self;
        let backing = match Arc::try_unwrap(storage) {
            // SAFETY: guaranteed by the caller.
            Ok(Backing::Device(buffer)) => match unsafe { buffer.into_memory(stream) }? {
                Ok(address) => return Ok(Ok(address)),
                Err(buffer) => Arc::new(Backing::Device(buffer)),
            },
            Ok(backing) => Arc::new(backing),
            Err(shared) => shared,
        };
        Ok(Err(Array { storage: backing, start, dims, dtype }))
    }

    /// Returns the device buffer of the tensor and the range of its bytes in the buffer.
    ///
    /// # Errors
    /// The tensor is on the host.
    pub(crate) fn in_buffer(&self) -> Result<(&Buffer, Range<usize>)> {
        let width = self.dtype.storage_dtype()?.size_in_bytes();
        match &*self.storage {
            Backing::Device(buffer) => Ok((buffer, self.start * width..(self.start + self.len()) * width)),
            _ => Err(Error::op("the tensor is on the host")),
        }
    }
}
