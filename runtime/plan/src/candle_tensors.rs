//! Candle's tensors on an NVIDIA GPU: they are inputs of runs without a copy, and outputs become such tensors.
//!
//! Candle and a session use the same context of the GPU, and a stream each. Work of one waits on the device for the work of
//! the other.

use candle_core::backend::BackendDevice;
use candle_core::cuda_backend::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use candle_core::cuda_backend::{CudaDevice, CudaStorage, CudaStorageSlice};
use candle_core::op::BackpropOp;
use candle_core::{DType as StorageDType, DeviceLocation, Shape, Storage, Tensor};

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::lend::Lent;
use crate::session::Session;
use crate::value::{Array, Value};

impl Session {
    /// An input of a run that is a tensor of Candle's on the session's GPU. It is not copied, unless its elements have gaps
    /// or another order than rows; then it is copied on the device. The value holds the tensor, and a run does not write it.
    ///
    /// The run waits on the device for the stream of the tensor's Candle device. Where that has no stream of its own
    /// (`Device::new_cuda`), it is the calling thread's: the thread that computes a tensor lends it.
    ///
    /// ONNX has types that Candle lacks: a tensor of `U8` that holds booleans becomes one with [`Array::reinterpret`].
    ///
    /// # Errors
    /// The tensor is not on the session's GPU ([`Array::from_candle`] takes one of the processor's), it is of one of
    /// Candle's types of 4 and 6 bits or `F8E8M0`, or what the device says.
    ///
    /// # Safety
    /// Until the runs that take the value have returned, nobody writes into the tensor's storage or replaces it, as
    /// `Var::set`, `Tensor::slice_set` and operations in place do.
    pub unsafe fn lend_tensor(&self, tensor: &Tensor) -> Result<Value> {
        let dtype = dtype_of(tensor.dtype())?;
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else {
            bail!("the tensor is on {:?}, not on {}: Array::from_candle takes it", tensor.device(), self.device());
        };
        check_device(&storage.device, self.device())?;
        let stream = storage.device.cuda_stream();
        // It lets the stream wait for other streams of Candle's that write the elements.
        let (start, _read) = read_pointer(storage, &stream);
        let offset = layout.start_offset() * tensor.dtype().size_in_bytes();
        let lent = Lent {
            address: start + offset as u64,
            dims: layout.dims().to_vec(),
            strides: Some(layout.stride().iter().map(|&stride| stride as isize).collect()),
            dtype,
            stream: Some(stream.cu_stream().addr() as u64),
            owner: Box::new(tensor.detach()),
        };
        // SAFETY: the layout is that of elements in the storage, which the tensor holds; the rest is the caller's promise.
        unsafe { self.lend(lent) }
    }
}

impl Array {
    /// A tensor of Candle's on `device`, which is the GPU that this array lies on. The elements are copied on the GPU, into
    /// memory of Candle's; neither side waits on the host, and the session may be gone.
    ///
    /// # Errors
    /// The array or `device` is not on that GPU ([`Array::into_candle`] takes an array of the host), Candle lacks the type
    /// (an array of booleans becomes one of `uint8` with [`Array::reinterpret`]), there is no room, or what the device says.
    pub fn to_candle(&self, device: &candle_core::Device) -> Result<Tensor> {
        let (buffer, range) = self.in_buffer()?;
        let candle_core::Device::Cuda(device) = device else {
            bail!(
                "the tensor is on {}, not on {device:?}: Array::to_host and Array::into_candle bring it",
                self.device()
            );
        };
        check_device(device, self.device())?;
        let (stored, shape) = (storage_dtype_of(self.dtype())?, Shape::from(self.dims()));
        // SAFETY: all elements are written before somebody reads them.
        let mut storage = unsafe { device.alloc_uninit(&shape, stored) }?;
        if !range.is_empty() {
            let stream = device.cuda_stream();
            // When it is dropped, other streams of Candle's wait for the copy too.
            let (to, _write) = write_pointer(&mut storage, &stream);
            // SAFETY: Candle has allocated as many bytes, on this GPU and in this stream.
            unsafe { buffer.copy_out(range.start, range.len(), to, stream.cu_stream().addr() as u64) }?;
        }
        Ok(Tensor::from_storage(Storage::Cuda(storage), shape, BackpropOp::none(), false))
    }
}

/// Refuses a device of Candle's that is not the GPU of this name.
fn check_device(device: &CudaDevice, name: &str) -> Result<()> {
    let found = match device.location() {
        DeviceLocation::Cuda { gpu_id: 0 } => "cuda".to_string(),
        DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        other => format!("{other:?}"),
    };
    if found != name {
        bail!("Candle's device is {found}, and not {name}");
    }
    Ok(())
}

/// Candle's types, and ours of the same bits and meaning.
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

fn dtype_of(stored: StorageDType) -> Result<DType> {
    let found = TYPES.iter().find(|(theirs, _)| *theirs == stored);
    found.map(|(_, ours)| *ours).ok_or_else(|| Error::op(format!("no input is of Candle's type {stored:?}")))
}

fn storage_dtype_of(dtype: DType) -> Result<StorageDType> {
    let found = TYPES.iter().find(|(_, ours)| *ours == dtype);
    found.map(|(theirs, _)| *theirs).ok_or_else(|| Error::op(format!("Candle has no type for {dtype}")))
}

/// Where a storage begins, and what tells other streams of its use, whatever its type.
macro_rules! pointer {
    ($storage:expr, $method:ident, $stream:ident) => {
        pointer!(@ $storage, $method, $stream, U8 U32 I16 I32 I64 BF16 F16 F32 F64 F8E4M3 F6E2M3 F6E3M2 F4 F8E8M0)
    };
    (@ $storage:expr, $method:ident, $stream:ident, $($kind:ident)*) => {
        match $storage { $(CudaStorageSlice::$kind(slice) => slice.$method($stream),)* }
    };
}

fn read_pointer<'a>(storage: &'a CudaStorage, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
    pointer!(&storage.slice, device_ptr, stream)
}

fn write_pointer<'a>(storage: &'a mut CudaStorage, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
    pointer!(&mut storage.slice, device_ptr_mut, stream)
}
