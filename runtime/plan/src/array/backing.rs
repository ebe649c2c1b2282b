//! The storages of arrays.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::cast_slice;
use candle_core::{CpuStorage, Storage};
use candle_plan_device::Buffer;
use candle_plan_memory::mapping::Mapping;

/// A storage, which one or several arrays use.
#[derive(Debug)]
pub(crate) enum Backing {
    /// A Candle storage on the host.
    Candle(Storage),
    /// A read-only part of a plan's file.
    File(Part),
    /// Memory of the caller on the host.
    Lent(Loan),
    /// Memory on a device.
    Device(Buffer),
}

impl Backing {
    /// A storage on the host.
    pub fn host(storage: CpuStorage) -> Backing {
        Backing::Candle(Storage::Cpu(storage))
    }

    /// Returns the bytes of all elements, or `None` if they are not on the host.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Backing::Candle(Storage::Cpu(storage)) => Some(bytes_of(storage)),
            Backing::Candle(_) | Backing::Device(_) => None,
            Backing::File(part) => Some(part.bytes()),
            Backing::Lent(loan) => Some(loan.bytes),
        }
    }

    /// Whether the memory belongs to the runtime, so that a step may overwrite it.
    pub fn is_owned(&self) -> bool {
        match self {
            Backing::Candle(_) => true,
            Backing::Device(buffer) => !buffer.is_lent(),
            Backing::File(_) | Backing::Lent(_) => false,
        }
    }
}

/// A range of bytes of a mapped file. Dropping it returns the memory to the operating system.
#[derive(Debug)]
pub(crate) struct Part {
    file: Arc<Mapping>,
    range: Range<usize>,
}

impl Part {
    /// Returns the bytes in `range`, or `None` if the file is too short.
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

/// Bytes on the host that an owner keeps alive.
pub(crate) struct Loan {
    /// They live as long as the owner.
    bytes: &'static [u8],
    _owner: Box<dyn Send + Sync>,
}

impl Loan {
    /// Lends bytes that exist as long as `owner`.
    pub fn new(bytes: &'static [u8], owner: Box<dyn Send + Sync>) -> Loan {
        Loan { bytes, _owner: owner }
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.bytes.len())
    }
}

/// Returns the bytes of a Candle storage, or none for a storage dtype that no plan uses.
pub(crate) fn bytes_of(storage: &CpuStorage) -> &[u8] {
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
