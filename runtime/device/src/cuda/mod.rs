//! NVIDIA's GPUs, through candle's device: its context, one stream, its memory and its cuBLAS.

mod checks;
mod errors;
mod multiply;

use std::collections::{BTreeMap, HashMap};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use candle_core::cuda_backend::cudarc::cublas::sys as blas;
use candle_core::cuda_backend::cudarc::cublas::CudaBlas;
use candle_core::cuda_backend::cudarc::driver::result::{self, DriverError};
use candle_core::cuda_backend::cudarc::driver::sys::{self, CUresult};
use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PushKernelArg,
};
use candle_core::CudaDevice;

use self::checks::{check_driver, check_libraries};
use self::errors::{failed, not_multiplied, told, unavailable};
use self::multiply::multiply;
use crate::backend::{Backend, Error, Grid, Memory, Result, Symbol};
use crate::gemm::Gemm;

/// The texts of the modules by their names; the driver compiles them for the GPU that is there.
const MODULES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

/// The GPUs that somebody has opened, by their numbers.
static OPEN: Mutex<BTreeMap<usize, Weak<Cuda>>> = Mutex::new(BTreeMap::new());

/// One GPU, for all of the process.
pub(crate) struct Cuda {
    name: String,
    /// The process that opened it: one that is forked from it cannot use the GPU.
    process: u32,
    device: ManuallyDrop<CudaDevice>,
    stream: Arc<CudaStream>,
    /// The kernels that were launched before.
    functions: RwLock<HashMap<Symbol, CudaFunction>>,
    /// Not to be used by two threads at once.
    blas: ManuallyDrop<Mutex<Arc<CudaBlas>>>,
}

/// Memory, which is freed in whatever thread holds it last.
struct Owner(ManuallyDrop<CudaSlice<u8>>);

impl Drop for Owner {
    fn drop(&mut self) {
        // Without the GPU being this thread's, nothing is freed; and there is nobody to tell.
        let _ = self.0.context().bind_to_thread();
        // SAFETY: it is dropped once.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl Drop for Cuda {
    /// After an error that the GPU does not recover from, what the libraries hold cannot be given back: they panic then.
    fn drop(&mut self) {
        if self.bind().is_ok() && self.stream.synchronize().is_ok() {
            // Where there is no pool, nothing was kept.
            let _ = give_back_memory(&self.stream);
            // SAFETY: they are dropped once, the handle before the device that made it.
            unsafe {
                ManuallyDrop::drop(&mut self.blas);
                ManuallyDrop::drop(&mut self.device);
            }
        }
    }
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", *self.device)
    }
}

impl Cuda {
    /// GPU number `ordinal`, opened where it is not yet.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: what is missing.
    pub fn open(ordinal: usize) -> Result<Arc<Cuda>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cuda) = open.get(&ordinal).and_then(Weak::upgrade) {
            return cuda.bind().map(|_| cuda);
        }
        let cuda = Arc::new(Cuda::new(ordinal)?);
        open.insert(ordinal, Arc::downgrade(&cuda));
        Ok(cuda)
    }

    fn new(ordinal: usize) -> Result<Cuda> {
        check_driver(ordinal)?;
        check_libraries()?;
        let device = CudaDevice::new_with_stream(ordinal).map_err(|error| unavailable(told(&error)))?;
        // SAFETY: all work on what this device allocates is in its one stream.
        unsafe { device.disable_event_tracking() };
        let stream = device.cuda_stream();
        keep_memory(&stream).or_else(|error| match error {
            DriverError(CUresult::CUDA_ERROR_NOT_SUPPORTED) => Ok(()),
            error => Err(failed(error)),
        })?;
        let blas = device.cublas_handle();
        let exact = blas::cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        // SAFETY: the handle is the device's.
        unsafe { blas::cublasSetMathMode(*blas.handle(), exact) }.result().map_err(not_multiplied)?;
        let name = if ordinal == 0 { "cuda".to_string() } else { format!("cuda:{ordinal}") };
        let (device, blas) = (ManuallyDrop::new(device), ManuallyDrop::new(Mutex::new(blas)));
        Ok(Cuda { name, process: std::process::id(), device, stream, functions: RwLock::default(), blas })
    }

    fn function(&self, symbol: Symbol) -> Result<CudaFunction> {
        let known = self.functions.read().unwrap_or_else(PoisonError::into_inner).get(&symbol).cloned();
        if let Some(function) = known {
            return Ok(function);
        }
        let module = MODULES.iter().find(|(name, _)| *name == symbol.module);
        let (name, ptx) = module.ok_or_else(|| Error::Failed(format!("there is no module {}", symbol.module)))?;
        // Kernels are not kept in the pool, which may hold all that there is.
        let loaded = self.with_memory(|| self.device.get_or_load_custom_func(&symbol.to_string(), name, ptx));
        let function = loaded.map_err(|error| Error::Failed(format!("{symbol}: {}", told(&error))))?;
        let function = function.into_cuda_function();
        self.functions.write().unwrap_or_else(PoisonError::into_inner).insert(symbol, function.clone());
        Ok(function)
    }

    /// What some work gives that allocates outside of the pool: where it fails, once more when what is free in the pool has
    /// been given back.
    fn with_memory<T, E>(&self, work: impl Fn() -> std::result::Result<T, E>) -> std::result::Result<T, E> {
        work().or_else(|error| match self.bind().is_ok() && give_back_memory(&self.stream).is_ok() {
            true => work(),
            false => Err(error),
        })
    }

    /// Makes the GPU the one that the driver's calls of this thread are for.
    fn bind(&self) -> Result<sys::CUstream> {
        if self.process != std::process::id() {
            return Err(unavailable(
                "a forked process cannot use the GPU of its parent: start it with `spawn`".to_string(),
            ));
        }
        self.stream.context().bind_to_thread().map_err(failed)?;
        Ok(self.stream.cu_stream())
    }
}

impl Backend for Cuda {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        if bytes == 0 {
            return Ok(Memory { address: 0, _owner: Box::new(()) });
        }
        self.bind()?;
        // SAFETY: bytes have no invalid values.
        match unsafe { self.stream.alloc::<u8>(bytes) } {
            Ok(memory) => {
                let address = memory.device_ptr(&self.stream).0;
                Ok(Memory { address, _owner: Box::new(Owner(ManuallyDrop::new(memory))) })
            }
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Err(Error::OutOfMemory(bytes)),
            Err(error) => Err(failed(error)),
        }
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        let stream = self.bind()?;
        // SAFETY: the caller's promise; what is not pinned is read before the call returns.
        unsafe { result::memcpy_htod_async(to, from, stream) }.map_err(failed)
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        let stream = self.bind()?;
        // SAFETY: the caller's promise; it is waited for.
        unsafe { result::memcpy_dtoh_async(to, from, stream) }.map_err(failed)?;
        self.stream.synchronize().map_err(failed)
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        let stream = self.bind()?;
        // SAFETY: the caller's promise.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream) }.map_err(failed)
    }

    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()> {
        let function = self.function(symbol)?;
        let [x, y, z] = grid.blocks;
        let config = LaunchConfig { grid_dim: (x, y, z), block_dim: (grid.threads, 1, 1), shared_mem_bytes: 0 };
        let mut launch = self.stream.launch_builder(&function);
        let start = params.first().ok_or_else(|| Error::Failed(format!("{symbol} has no parameters")))?;
        // The driver reads as many bytes from there as the kernel's one parameter has.
        launch.arg(start);
        // SAFETY: the caller's promise.
        unsafe { launch.launch(config) }.map(drop).map_err(|error| Error::Failed(format!("{symbol}: {error}")))
    }

    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        if gemm.k == 0 {
            let (symbol, grid, params) = gemm.launch();
            // SAFETY: the caller's promise.
            return unsafe { self.launch(symbol, grid, bytemuck::bytes_of(&params)) };
        }
        self.bind()?;
        let blas = self.blas.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller's promise.
        self.with_memory(|| unsafe { multiply(*blas.handle(), gemm) }).map_err(not_multiplied)
    }

    fn finish(&self) -> Result<()> {
        self.stream.synchronize().map_err(failed)
    }
}

/// What memory of a GPU is allocated from.
fn memory_pool(stream: &CudaStream) -> std::result::Result<sys::CUmemoryPool, DriverError> {
    // SAFETY: the device is there.
    unsafe { result::device::get_default_mem_pool(stream.context().cu_device()) }
}

/// Memory that is freed stays with the process, for the next run.
fn keep_memory(stream: &CudaStream) -> std::result::Result<(), DriverError> {
    let mut most = u64::MAX;
    let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: this attribute is a number of 64 bits.
    unsafe { result::mem_pool::set_attribute(memory_pool(stream)?, threshold, (&raw mut most).cast()) }
}

/// Memory that is free goes back to the driver, for others of the process and for what is not allocated from the pool.
fn give_back_memory(stream: &CudaStream) -> std::result::Result<(), DriverError> {
    stream.synchronize()?;
    // SAFETY: nothing that is in use is taken.
    unsafe { result::mem_pool::trim_to(memory_pool(stream)?, 0) }
}
