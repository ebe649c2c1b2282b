//! Where the elements of arrays lie.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::cast_slice;
use candle_core::{CpuStorage, Storage};
use candle_plan_device::Buffer;
use candle_plan_kernels::mapping::Mapping;

/// What the elements of one or several arrays lie in.
#[derive(Debug)]
pub(crate) enum Backing {
    /// A storage of candle's, on the host.
    Candle(Storage),
    /// A part of a plan's file, which nobody writes to.
    File(Part),
    /// Memory of a device.
    Device(Buffer),
}

impl Backing {
    /// A storage on the host.
    pub fn host(storage: CpuStorage) -> Backing {
        Backing::Candle(Storage::Cpu(storage))
    }

    /// The bytes of all elements; `None` where they are not on the host.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Backing::Candle(Storage::Cpu(storage)) => Some(bytes_of(storage)),
            Backing::Candle(_) | Backing::Device(_) => None,
            Backing::File(part) => Some(part.bytes()),
        }
    }
}

/// Some bytes of a file; their memory is given back when nobody reads them any more.
#[derive(Debug)]
pub(crate) struct Part {
    file: Arc<Mapping>,
    range: Range<usize>,
}

impl Part {
    /// The bytes of a range, if the file has them.
    pub fn new(file: &Arc<Mapping>, range: Range<usize>) -> Option<Part> {
        file.bytes().get(range.clone())?;
        Some(Part { file: Arc::clone(file), range })
    }

    fn bytes(&self) -> &[u8] {
        self.file.bytes().get(self.range.clone()).unwrap_or_default()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.file.release(self.range.clone());
    }
}

/// The bytes of a storage dtype's elements; none of a storage dtype that no type has.
fn bytes_of(storage: &CpuStorage) -> &[u8] {
    match storage {
        CpuStorage::U8(data) => data,
        CpuStorage::U32(data) => cast_slice(data),
        CpuStorage::I16(data) => cast_slice(data),
        CpuStorage::I32(data) => cast_slice(data),
        CpuStorage::I64(data) => cast_slice(data),
        CpuStorage::F16(data) => cast_slice(data),
        CpuStorage::BF16(data) => cast_slice(data),
        CpuStorage::F32(data) => cast_slice(data),
        CpuStorage::F64(data) => cast_slice(data),
        _ => &[],
    }
}
