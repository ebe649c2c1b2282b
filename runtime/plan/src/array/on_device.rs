//! Arrays whose elements lie in the memory of a device.

use std::ops::Range;
use std::sync::Arc;

use candle_plan_device::{Buffer, Gpu};
use candle_plan_kernels::broadcast::Dims;

use super::Array;
use crate::array::backing::Backing;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::size::element_count;

impl Array {
    /// A tensor whose storage dtype's elements fill the memory of a device.
    ///
    /// # Errors
    /// The number of elements is not the product of the dimensions.
    pub(crate) fn on_device(buffer: Buffer, dims: &[usize], dtype: DType) -> Result<Array> {
        if element_count(dims)?.checked_mul(dtype.storage_dtype()?.size_in_bytes()) != Some(buffer.len()) {
            return Err(Error::op(format!("{} bytes do not fill a {dtype} tensor of shape {dims:?}", buffer.len())));
        }
        Ok(Array { storage: Arc::new(Backing::Device(buffer)), start: 0, dims: Dims::from_slice(dims), dtype })
    }

    /// Where the elements begin in the memory of a device.
    ///
    /// # Errors
    /// They are on the host.
    pub fn address(&self) -> Result<u64> {
        let (buffer, range) = self.in_buffer()?;
        Ok(buffer.address() + range.start as u64)
    }

    /// Whether the elements lie in the memory of a device.
    pub fn is_on_device(&self) -> bool {
        matches!(*self.storage, Backing::Device(_))
    }

    /// The device that the elements lie on, by its name.
    pub fn device(&self) -> &str {
        match &*self.storage {
            Backing::Device(buffer) => buffer.gpu().name(),
            _ => "cpu",
        }
    }

    /// A copy on the host of a tensor that lies on a device.
    ///
    /// # Errors
    /// It lies on the host, there is no memory for it, or what the device says.
    pub fn to_host(&self) -> Result<Array> {
        super::transfer::download(self)
    }

    /// Keeps the memory, when it is freed later, until the work is done that another library has given to `stream` by now;
    /// without a stream, it waits for all work of the GPU.
    ///
    /// # Errors
    /// The tensor lies on the host, or what the device says.
    ///
    /// # Safety
    /// It is a stream of the device.
    pub unsafe fn free_after(&self, stream: Option<u64>) -> Result<()> {
        let gpu = self.in_buffer()?.0.gpu();
        // SAFETY: the caller's promise. Memory is freed in the order of the stream that waits here.
        let waits = stream.map(|stream| unsafe { gpu.wait_for(stream) });
        match waits {
            Some(Ok(())) => Ok(()),
            _ => Ok(gpu.finish_all()?),
        }
    }

    /// A copy on the same device, which shares no memory, made in the order of the work of `gpu`.
    ///
    /// # Errors
    /// The tensor lies on the host, or the device has no room.
    pub(crate) fn copy_on_device(&self, gpu: &Gpu) -> Result<Array> {
        let (buffer, range) = self.in_buffer()?;
        Array::on_device(buffer.copied(gpu, range.start, range.len())?, self.dims(), self.dtype)
    }

    /// The memory of a device that the elements lie in, and which of its bytes they are.
    ///
    /// # Errors
    /// They are on the host.
    pub(crate) fn in_buffer(&self) -> Result<(&Buffer, Range<usize>)> {
        let width = self.dtype.storage_dtype()?.size_in_bytes();
        match &*self.storage {
            Backing::Device(buffer) => Ok((buffer, self.start * width..(self.start + self.len()) * width)),
            _ => Err(Error::op("the tensor is on the host")),
        }
    }

    /// Whether the elements lie in memory of a device that belongs to somebody else.
    pub(super) fn is_lent(&self) -> bool {
        matches!(&*self.storage, Backing::Device(buffer) if buffer.is_lent())
    }
}
