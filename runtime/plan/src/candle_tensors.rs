//! Candle's tensors on an NVIDIA GPU: runs take them as inputs without a copy, and outputs become such tensors.
//!
//! Candle and a session use the same context of the GPU, and a stream each. The streams wait for each other on the
//! device.

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
    /// Lends a Candle tensor on the session's GPU as an input of a run. If its elements have gaps or are not in
    /// row-major order, the device copies them; otherwise there is no copy. The value keeps the tensor alive, and a run
    /// does not write to it.
    ///
    /// The run waits on the device for the stream of the tensor's Candle device. A Candle device without a stream of
    /// its own (`Device::new_cuda`) uses the calling thread's stream, so the thread that computes a tensor must lend
    /// it.
    ///
    /// Candle lacks some of ONNX's types. For booleans, lend a tensor of `U8` and convert the value with
    /// [`Value::reinterpret`].
    ///
    /// # Errors
    /// The tensor is not on the session's GPU (for one on the CPU, use [`Value::from_candle`]), its type is one of
    /// Candle's types of 4 and 6 bits or `F8E8M0`, or the device fails.
    ///
    /// # Safety
    /// Until the runs that take the value have returned, nobody writes to the tensor's storage or replaces it, as
    /// `Var::set`, `Tensor::slice_set` and in-place operations do.
    pub unsafe fn lend_tensor(&self, tensor: &Tensor) -> Result<Value> {
        let dtype = dtype_of(tensor.dtype())?;
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else {
            bail!("the tensor is on {:?}, not on {}: Value::from_candle takes it", tensor.device(), self.device());
        };
        check_device(&storage.device, self.device())?;
        let stream = storage.device.cuda_stream();
        // The guard makes the stream wait for Candle's other streams that write the elements.
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
        // SAFETY: the layout describes elements in the storage, which the tensor keeps alive; the caller promises the
        // rest.
        unsafe { self.lend(lent) }
    }
}

impl Value {
    /// Copies a tensor to a Candle tensor on `device`, which is the GPU that the tensor lies on. The copy is in memory
    /// of Candle's. The host does not wait for it, and the session may be dropped before.
    ///
    /// # Errors
    /// The tensor or `device` is not on that GPU (for a tensor on the host, use [`Value::into_candle`]), Candle lacks
    /// the type (convert booleans to `uint8` with [`Value::reinterpret`]), the allocation fails, or the device fails.
    pub fn to_candle(&self, device: &candle_core::Device) -> Result<Tensor> {
        self.tensor()?.to_candle(device)
    }
}

impl Array {
    /// [`Value::to_candle`].
    ///
    /// # Errors
    /// As [`Value::to_candle`].
    pub fn to_candle(&self, device: &candle_core::Device) -> Result<Tensor> {
        let (buffer, range) = self.in_buffer()?;
        let candle_core::Device::Cuda(device) = device else {
            bail!(
                "the tensor is on {}, not on {device:?}: Value::to_host and Value::into_candle bring it",
                self.device()
            );
        };
        check_device(device, self.device())?;
        let (stored, shape) = (storage_dtype_of(self.dtype())?, Shape::from(self.dims()));
        // SAFETY: the copy writes all elements before anyone reads them.
        let mut storage = unsafe { device.alloc_uninit(&shape, stored) }?;
        if !range.is_empty() {
            let stream = device.cuda_stream();
            // When the guard is dropped, Candle's other streams wait for the copy too.
            let (to, _write) = write_pointer(&mut storage, &stream);
            // SAFETY: Candle has allocated this number of bytes, on this GPU and in this stream.
            unsafe { buffer.copy_out(range.start, range.len(), to, stream.cu_stream().addr() as u64) }?;
        }
        Ok(Tensor::from_storage(Storage::Cuda(storage), shape, BackpropOp::none(), false))
    }
}

/// Rejects a Candle device that is not the GPU of this name.
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

fn dtype_of(stored: StorageDType) -> Result<DType> {
    let found = TYPES.iter().find(|(candle, _)| *candle == stored);
    found.map(|(_, logical)| *logical).ok_or_else(|| Error::op(format!("no input is of Candle's type {stored:?}")))
}

fn storage_dtype_of(dtype: DType) -> Result<StorageDType> {
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

fn read_pointer<'a>(storage: &'a CudaStorage, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
    pointer!(&storage.slice, device_ptr, stream)
}

fn write_pointer<'a>(storage: &'a mut CudaStorage, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
    pointer!(&mut storage.slice, device_ptr_mut, stream)
}
