//! Candle's storages on an NVIDIA GPU: their types, their addresses, and how they take over memory.

use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use candle_core::cuda_backend::{CudaStorage, CudaStorageSlice};
use candle_core::DType as StorageDType;

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Candle's types, and the dtypes with the same bits and meaning.
const TYPES: [(StorageDType, DType); 10] = [
    (StorageDType::U8, DType::Uint8),
    (StorageDType::U32, DType::Uint32),
    (StorageDType::I16, DType::Int16),
    (StorageDType::I32, DType::Int32),
    (StorageDType::I64, DType::Int64),
    (StorageDType::BF16, DType::Bfloat16),
    (StorageDType::F16, DType::Float16),
    (StorageDType::F32, DType::Float32),
    (StorageDType::F64, DType::Float64),
    (StorageDType::F8E4M3, DType::Float8E4M3Fn),
];

pub(crate) fn dtype_of(stored: StorageDType) -> Result<DType> {
    let found = TYPES.iter().find(|(candle, _)| *candle == stored);
    found.map(|(_, logical)| *logical).ok_or_else(|| Error::op(format!("no input is of Candle's type {stored:?}")))
}

pub(crate) fn storage_dtype_of(dtype: DType) -> Result<StorageDType> {
    let found = TYPES.iter().find(|(_, logical)| *logical == dtype);
    found.map(|(candle, _)| *candle).ok_or_else(|| Error::op(format!("Candle has no type for {dtype}")))
}

/// The address of a storage of any type, and the guard that tells other streams of its use.
macro_rules! pointer {
    ($storage:expr, $method:ident, $stream:ident) => {
        pointer!(@ $storage, $method, $stream, U8 U32 I16 I32 I64 BF16 F16 F32 F64 F8E4M3 F6E2M3 F6E3M2 F4 F8E8M0)
    };
    (@ $storage:expr, $method:ident, $stream:ident, $($kind:ident)*) => {
        match $storage { $(CudaStorageSlice::$kind(slice) => slice.$method($stream),)* }
    };
}

pub(crate) fn read_pointer<'a>(storage: &'a CudaStorage, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
    pointer!(&storage.slice, device_ptr, stream)
}

pub(crate) fn write_pointer<'a>(storage: &'a mut CudaStorage, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
    pointer!(&mut storage.slice, device_ptr_mut, stream)
}

/// The slice of `count` elements at an address.
///
/// # Errors
/// It is one of Candle's types of 4 and 6 bits or `F8E8M0`.
///
/// # Safety
/// The driver has allocated as many elements at the address, and nobody else frees them.
pub(crate) unsafe fn slice_at(
    address: u64,
    count: usize,
    stored: StorageDType,
    stream: &Arc<CudaStream>,
) -> Result<CudaStorageSlice> {
    macro_rules! slice {
        ($($kind:ident)*) => {
            match stored {
                // SAFETY: guaranteed by the caller.
                $(StorageDType::$kind => unsafe {
                    CudaStorageSlice::$kind(stream.upgrade_device_ptr(address, count))
                },)*
                _ => bail!("no output is of Candle's type {stored:?}"),
            }
        };
    }
    Ok(slice! { U8 U32 I16 I32 I64 BF16 F16 F32 F64 F8E4M3 })
}
