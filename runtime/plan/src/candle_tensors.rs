//! Candle's tensors on an NVIDIA GPU: runs take them as inputs without a copy, and outputs become such tensors.
//!
//! Candle and a session use the same context of the GPU. Each has a stream of its own, and the streams wait for each other
//! on the device, unless the session is [on Candle's stream](crate::SessionBuilder::candle_device).

use candle_core::backend::BackendDevice;
use candle_core::cuda_backend::cudarc::driver::CudaStream;
use candle_core::cuda_backend::{CudaDevice, CudaStorage};
use candle_core::op::BackpropOp;
use candle_core::{DType as StorageDType, Shape, Storage, Tensor};

use crate::bail;
use crate::candle_device::name_of;
use crate::candle_storages::{dtype_of, read_pointer, slice_at, storage_dtype_of, write_pointer};
use crate::dtype::DType;
use crate::error::Result;
use crate::lend::Lent;
use crate::read::{check_bits, has_invalid_bits};
use crate::session::Session;
use crate::value::{Array, Value};

impl Session {
    /// Lends a Candle tensor on the session's GPU as an input of a run. If its elements have gaps or are not in
    /// row-major order, the device copies them; otherwise there is no copy. The value keeps the tensor alive, and a run
    /// does not write to it. [`Session::run_tensors`] does the same for the time of one run, without unsafe code.
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
        let (storage, _) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else {
            bail!("the tensor is on {:?}, not on {}: Value::from_candle takes it", tensor.device(), self.device());
        };
        // SAFETY: the owner keeps the tensor alive; the caller promises the rest.
        unsafe { self.lend_storage(tensor, storage, dtype, Box::new(tensor.detach())) }
    }

    /// Lends a tensor, whose storage is locked, as an input of the type `dtype`.
    ///
    /// # Errors
    /// The tensor is not on the session's GPU, an element is no value of the type, or the device fails.
    ///
    /// # Safety
    /// `dtype` has the tensor's type as its storage dtype, and the value is dropped before the lock.
    pub(crate) unsafe fn borrowed_on_gpu(&self, tensor: &Tensor, storage: &CudaStorage, dtype: DType) -> Result<Value> {
        // SAFETY: the lock keeps the tensor alive and others from writing to it; the caller guarantees the rest.
        let value = unsafe { self.lend_storage(tensor, storage, dtype, Box::new(())) }?;
        if has_invalid_bits(dtype) {
            check_bits(dtype, value.tensor()?.to_host()?.bits::<u8>()?)?;
        }
        Ok(value)
    }

    /// Lends the elements of a tensor.
    ///
    /// # Errors
    /// The tensor is not on the session's GPU, or the device fails.
    ///
    /// # Safety
    /// `dtype` has the width of the tensor's type. While the owner exists, so does the storage, and nobody writes to it
    /// until the runs that take the value have returned.
    unsafe fn lend_storage(
        &self,
        tensor: &Tensor,
        storage: &CudaStorage,
        dtype: DType,
        owner: Box<dyn Send + Sync>,
    ) -> Result<Value> {
        let (place, own) = (name_of(&storage.device), self.device());
        if place != own {
            let remedy = "bring the tensor there with Tensor::to_device, or make the session with";
            bail!("the tensor is on {place}, and the session on {own}: {remedy} SessionBuilder::candle_device");
        }
        let stream = storage.device.cuda_stream();
        // The guard makes the stream wait for Candle's other streams that write the elements.
        let (start, _read) = read_pointer(storage, &stream);
        let lent = Lent { stream: Some(handle_of(&stream)), ..Lent::of(tensor, start, dtype, owner) };
        // SAFETY: the layout describes elements in the storage; the caller guarantees the rest.
        unsafe { self.lend(lent) }
    }
}

impl Value {
    /// Copies a tensor to a Candle tensor on `device`, which is the GPU that the tensor lies on. The copy is in memory
    /// of Candle's. The host does not wait for it, and the session may be dropped before.
    /// [`Value::into_candle_on`] avoids the copy.
    ///
    /// # Errors
    /// The tensor or `device` is not on that GPU (for a tensor on the host, use [`Value::into_candle`]), Candle lacks
    /// the type (convert booleans to `uint8` with [`Value::reinterpret`]), the allocation fails, or the device fails.
    pub fn to_candle(&self, device: &candle_core::Device) -> Result<Tensor> {
        let array = self.tensor()?;
        array.to_cuda(cuda_of(device, array)?, storage_dtype_of(array.dtype())?)
    }

    /// Converts a tensor to a Candle tensor on `device`, which is the GPU that the tensor lies on. Candle takes over the
    /// memory and frees it, also after the session's end. The elements are copied only if another value, a session or a
    /// tensor shares them, as [`Value::to_candle`] does.
    ///
    /// # Errors
    /// As [`Value::to_candle`].
    pub fn into_candle_on(self, device: &candle_core::Device) -> Result<Tensor> {
        let array = self.into_array()?;
        let (device, stored) = (cuda_of(device, &array)?, storage_dtype_of(array.dtype())?);
        array.into_cuda(device, stored)
    }
}

impl Array {
    /// Copies the tensor to memory of Candle's, as a tensor of the type `stored`.
    ///
    /// # Errors
    /// The tensor is not on the device's GPU, the allocation fails, or the device fails.
    fn to_cuda(&self, device: &CudaDevice, stored: StorageDType) -> Result<Tensor> {
        let (buffer, range) = self.in_buffer()?;
        check_device(device, self.device())?;
        // The driver allocates no memory without bytes.
        let allocated = Shape::from(self.len().max(1));
        // SAFETY: the copy writes all elements before anyone reads them.
        let mut storage = unsafe { device.alloc_uninit(&allocated, stored) }?;
        if !range.is_empty() {
            let stream = device.cuda_stream();
            // When the guard is dropped, Candle's other streams wait for the copy too.
            let (to, _write) = write_pointer(&mut storage, &stream);
            // SAFETY: Candle has allocated this number of bytes, on this GPU and in this stream.
            unsafe { buffer.copy_out(range.start, range.len(), to, handle_of(&stream)) }?;
        }
        Ok(Tensor::from_storage(Storage::Cuda(storage), self.dims(), BackpropOp::none(), false))
    }

    /// Gives the memory to Candle, as a tensor of the type `stored`, or [copies](Array::to_cuda) the tensor if something
    /// else uses its memory. `stored` has the width of the elements.
    ///
    /// # Errors
    /// As [`Array::to_cuda`].
    pub(crate) fn into_cuda(self, device: &CudaDevice, stored: StorageDType) -> Result<Tensor> {
        check_device(device, self.device())?;
        let (stream, shape, count) = (device.cuda_stream(), Shape::from(self.dims()), self.len());
        // Without events, `upgrade_device_ptr` panics: so that it does not, the driver makes one here first.
        stream.context().new_event(None).map_err(candle_core::Error::wrap)?;
        // SAFETY: it is a stream of this GPU.
        let address = match unsafe { self.into_memory(handle_of(&stream)) }? {
            Ok(address) => address,
            Err(array) => return array.to_cuda(device, stored),
        };
        // SAFETY: the driver has allocated as many elements at the address, and nobody else frees them.
        let slice = unsafe { slice_at(address, count, stored, &stream) }?;
        let mut storage = CudaStorage { slice, device: device.clone() };
        // Candle's other streams wait for the elements too.
        drop(write_pointer(&mut storage, &stream));
        Ok(Tensor::from_storage(Storage::Cuda(storage), shape, BackpropOp::none(), false))
    }
}

fn handle_of(stream: &CudaStream) -> u64 {
    stream.cu_stream().addr() as u64
}

/// The GPU of `device`.
///
/// # Errors
/// It is no GPU.
fn cuda_of<'a>(device: &'a candle_core::Device, array: &Array) -> Result<&'a CudaDevice> {
    array.in_buffer()?;
    match device {
        candle_core::Device::Cuda(device) => Ok(device),
        _ => {
            let place = array.device();
            bail!("the tensor is on {place}, not on {device:?}: Value::to_host and Value::into_candle bring it")
        }
    }
}

/// Rejects a Candle device that is not the GPU of this name.
fn check_device(device: &CudaDevice, name: &str) -> Result<()> {
    match name_of(device) {
        found if found == name => Ok(()),
        found => bail!("Candle's device is {found}, and not {name}"),
    }
}
