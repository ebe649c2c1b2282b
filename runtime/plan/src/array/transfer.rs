//! Copies of arrays to and from a device.

use bytemuck::cast_slice_mut;
use candle_plan_device::{Download, Gpu};
use candle_plan_memory::uninit::Uninit;

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
    fn copied<W: Word>(array: &Array) -> Result<Array> {
        let (buffer, range) = array.in_buffer()?;
        let words = words::alloc_uninit::<W>(array.dims())?;
        let words = words.try_overwrite(|words| buffer.download(range.start, cast_slice_mut(words)))?;
        words::array(words, array.dims(), array.dtype())
    }
    by_width!(array.dtype(), W => copied::<W>(array))
}

/// Copies tensors from a GPU to the host together, so that the host waits only once. `copy` makes the copies. The results
/// have the indices of their sources.
///
/// # Errors
/// The allocation fails, or `copy` fails.
pub(crate) fn downloaded(
    sources: &[(usize, Array)],
    copy: impl FnOnce(Vec<Download>) -> Result<()>,
) -> Result<Vec<(usize, Array)>> {
    let [mut of_u32, mut of_u16, mut of_u8] = [const { Vec::new() }; 3];
    let of_u64 = of_width::<u64>(sources, Vec::new(), |parts| {
        of_u32 = of_width::<u32>(sources, parts, |parts| {
            of_u16 = of_width::<u16>(sources, parts, |parts| {
                of_u8 = of_width::<u8>(sources, parts, copy)?;
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok([of_u64, of_u32, of_u16, of_u8].into_iter().flatten().collect())
}

/// Copies the tensors among `sources` whose elements are as wide as `W`. `copy` also makes the copies of `parts`.
fn of_width<'a, W: Word>(
    sources: &'a [(usize, Array)],
    parts: Vec<Download<'a>>,
    copy: impl FnOnce(Vec<Download>) -> Result<()>,
) -> Result<Vec<(usize, Array)>> {
    let own = || sources.iter().filter(|(_, source)| source.dtype().width().is_ok_and(|width| width == size_of::<W>()));
    let memories = own().map(|(_, source)| words::alloc_uninit::<W>(source.dims())).collect::<Result<_>>()?;
    let all = Uninit::try_overwrite_all(memories, |all| {
        let mut parts: Vec<Download> = parts; // for as long as `all` exists
        for ((_, source), words) in own().zip(all) {
            let (buffer, range) = source.in_buffer()?;
            parts.push(buffer.part(range.start, cast_slice_mut(words))?);
        }
        copy(parts)
    })?;
    let array = |((at, source), words): (&(usize, Array), Vec<W>)| {
        Ok((*at, words::array(words, source.dims(), source.dtype())?))
    };
    own().zip(all).map(array).collect()
}
