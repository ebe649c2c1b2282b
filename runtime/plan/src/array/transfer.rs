//! Arrays go to a device and come back.

use candle_plan_device::Gpu;

use super::words::{self, Word};
use super::Array;
use crate::by_width;
use crate::error::Result;

/// A tensor of the host, on a GPU.
///
/// # Errors
/// The GPU has no room for it.
pub(crate) fn upload(gpu: &Gpu, array: &Array) -> Result<Array> {
    let bytes = array.bytes_on_host()?;
    Array::on_device(gpu.uploaded(bytes)?, array.dims(), array.dtype())
}

/// A tensor of a GPU, on the host.
///
/// # Errors
/// There is no memory for it, or what the GPU says, also of steps before, which it may still have been computing.
pub(crate) fn download(array: &Array) -> Result<Array> {
    let mut here = alloc_on_host(array)?;
    let (buffer, range) = array.in_buffer()?;
    buffer.download(range.start, here.bytes_mut()?)?;
    Ok(here)
}

/// Room on the host for the elements of a tensor.
pub(crate) fn alloc_on_host(array: &Array) -> Result<Array> {
    fn alloc<W: Word>(array: &Array) -> Result<Array> {
        words::array(words::alloc_uninit::<W>(array.dims())?, array.dims(), array.dtype())
    }
    by_width!(array.dtype(), W => alloc::<W>(array))
}
