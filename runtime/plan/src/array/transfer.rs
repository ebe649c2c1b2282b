//! Copies of arrays to and from a device.

use candle_plan_device::Gpu;

use super::words::{self, Word};
use super::Array;
use crate::by_width;
use crate::error::Result;

/// Copies a tensor from the host to a GPU.
///
/// # Errors
/// The GPU is out of memory.
pub(crate) fn upload(gpu: &Gpu, array: &Array) -> Result<Array> {
    let bytes = array.bytes_on_host()?;
    Array::on_device(gpu.uploaded(bytes)?, array.dims(), array.dtype())
}

/// Copies a tensor from a GPU to the host.
///
/// # Errors
/// The allocation fails, or the GPU fails, perhaps in an earlier step that was still running.
pub(crate) fn download(array: &Array) -> Result<Array> {
    let mut copy = alloc_on_host(array)?;
    let (buffer, range) = array.in_buffer()?;
    buffer.download(range.start, copy.bytes_mut()?)?;
    Ok(copy)
}

/// Allocates a tensor on the host with the shape and dtype of `array`. Its elements have unspecified values until the
/// caller downloads others.
pub(crate) fn alloc_on_host(array: &Array) -> Result<Array> {
    fn alloc<W: Word>(array: &Array) -> Result<Array> {
        words::array(words::alloc_uninit::<W>(array.dims())?.unspecified(), array.dims(), array.dtype())
    }
    by_width!(array.dtype(), W => alloc::<W>(array))
}
