//! NVIDIA's GPUs as devices. The driver and cuBLAS are opened at run time.
//!
//! The feature `kernels` includes the kernels of `candle-plan-device`, which nvcc compiles (the variable `NVCC` names it).
//! Without the feature, the crate compiles but opens no GPU.
//!
//! All sessions of the process share the [context](context) of a GPU, with its memory pool and modules. Each session
//! has its own [staging buffer](staging) and cuBLAS handle, and its own [stream](stream) unless it works on one of another
//! library. Every entry point first binds the context to the calling thread.

mod blas;
mod cache;
mod checks;
mod context;
mod cublas;
mod driver;
mod errors;
mod failure;
mod images;
mod library;
mod modules;
mod multiply;
mod pool;
mod staging;
mod stream;
// The module of `build.rs`, for its tests.
#[cfg(test)]
#[path = "../versions.rs"]
mod versions;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_plan_device::{Backend, Download, Error, Gemm, Gpu, Grid, Memory, Result, Symbol};

use crate::blas::Blas;
use crate::context::Context;
use crate::driver::{
    cuCtxSynchronize, cuLaunchKernel, cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, StreamHandle,
};
use crate::modules::of_kernel;
use crate::multiply::multiply;
use crate::staging::Staging;
use crate::stream::Stream;

/// One session's use of a GPU.
struct Cuda {
    /// Created for the first product; dropped before the stream.
    blas: Mutex<Option<Blas>>,
    staging: Mutex<Stage>,
    stream: Arc<Stream>,
}

/// How bytes are copied to and from the GPU.
enum Stage {
    /// Not decided yet: nothing has been copied.
    Unopened,
    /// Through pinned memory.
    Pinned(Staging),
    /// Directly, because the host has no pinned memory left; waits for each copy.
    Pageable,
}

/// Makes the GPUs available as the devices `cuda` (the first one) and `cuda:N`.
pub fn register() {
    candle_plan_device::register("cuda", open);
}

/// Opens GPU number `ordinal`, with a new stream.
///
/// # Errors
/// [`Error::Unavailable`]: the reason, and a remedy.
pub fn open(ordinal: usize) -> Result<Gpu> {
    if images::is_empty() {
        let remedy = "build candle-plan-device-cuda with its feature `kernels`";
        return Err(Error::Unavailable(format!("this program contains no kernels for NVIDIA's GPUs: {remedy}")));
    }
    Gpu::new(Arc::new(Cuda::open(ordinal)?))
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Cuda {
    /// Opens a stream of GPU number `ordinal`.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: the reason.
    fn open(ordinal: usize) -> Result<Cuda> {
        Ok(Cuda::on(Stream::new(Context::open(ordinal)?)?))
    }

    fn on(stream: Arc<Stream>) -> Cuda {
        Cuda { blas: Mutex::default(), staging: Mutex::new(Stage::Unopened), stream }
    }

    /// Returns the staging buffer; the first call creates it.
    ///
    /// # Errors
    /// The driver reports an error other than a lack of pinned memory.
    fn stage(&self) -> Result<MutexGuard<'_, Stage>> {
        let mut stage = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Unopened = *stage {
            *stage = match Staging::new(&self.stream) {
                Ok(staging) => Stage::Pinned(staging),
                Err(error) if error.is_memory() => Stage::Pageable,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(stage)
    }
}

// SAFETY: the memory is the driver's, whose owner frees it in the order of the session's stream. The host's memory is copied
// to and from the staging buffer, or each copy is waited for. All backends of a GPU share its context, and so its memory.
unsafe impl Backend for Cuda {
    fn name(&self) -> &str {
        &self.stream.context.name
    }

    fn check_process(&self) -> Result<()> {
        self.stream.context.check_process()
    }

    fn begin_run(&self) {
        self.stream.cache.open();
    }

    fn end_run(&self) {
        // A forked process cannot free the memory.
        if let Ok(_bound) = self.stream.bind() {
            self.stream.cache.close();
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        self.stream.allocate(bytes)
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        match &mut *self.stage()? {
            // SAFETY: guaranteed by the caller.
            Stage::Pinned(staging) => unsafe { staging.upload(from, to) }?,
            _ => {
                // SAFETY: guaranteed by the caller; the source exists until the copy is done.
                unsafe { cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream.handle()) }?;
                self.stream.synchronize()?;
            }
        }
        Ok(())
    }

    unsafe fn download(&self, parts: &mut [Download]) -> Result<()> {
        let _bound = self.stream.bind()?;
        match &mut *self.stage()? {
            // SAFETY: guaranteed by the caller.
            Stage::Pinned(staging) => unsafe { staging.download(parts) }?,
            _ => {
                for part in parts {
                    let (to, from, bytes) = (part.to().as_mut_ptr().cast(), part.from(), part.bytes());
                    // SAFETY: guaranteed by the caller; waits for each copy.
                    unsafe { cuMemcpyDtoHAsync_v2(to, from, bytes, self.stream.handle()) }?;
                    self.stream.synchronize()?;
                }
            }
        }
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.handle()) }?)
    }

    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()> {
        let _bound = self.stream.bind()?;
        let context = &self.stream.context;
        let function = context.modules.function(&context.pool, context.capability, symbol)?;
        let [x, y, z] = grid.blocks;
        // The driver reads the kernel's single parameter from this address before the call returns.
        let mut parameters = [params.as_ptr().cast_mut().cast::<c_void>()];
        let (parameters, none, stream) = (parameters.as_mut_ptr(), std::ptr::null_mut(), self.stream.handle());
        // The stacks of a kernel's threads do not come from the pool. If there is no memory for them, nothing was
        // launched.
        // SAFETY: guaranteed by the caller.
        let launch = || unsafe { cuLaunchKernel(function, x, y, z, grid.threads, 1, 1, 0, stream, parameters, none) };
        context.pool.with_memory(launch).map_err(|failure| of_kernel(symbol, failure))
    }

    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        if gemm.k == 0 {
            let (symbol, grid, params) = gemm.launch();
            // SAFETY: guaranteed by the caller.
            return unsafe { self.launch(symbol, grid, bytemuck::bytes_of(&params)) };
        }
        let _bound = self.stream.bind()?;
        let mut blas = self.blas.lock().unwrap_or_else(PoisonError::into_inner);
        let context = &self.stream.context;
        let blas = match &mut *blas {
            Some(blas) => blas,
            none => none.insert(context.pool.with_memory(|| Blas::new(&self.stream))?),
        };
        // SAFETY: guaranteed by the caller. If cuBLAS finds no memory, it has launched nothing.
        Ok(context.pool.with_memory(|| unsafe { multiply(blas.handle, gemm) })?)
    }

    fn finish(&self) -> Result<()> {
        let _bound = self.stream.bind()?;
        Ok(self.stream.synchronize()?)
    }

    fn finish_all(&self) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: the context is bound to the thread.
        Ok(unsafe { cuCtxSynchronize() }?)
    }

    fn stream(&self) -> Option<u64> {
        Some(self.stream.handle().0 as u64)
    }

    unsafe fn on_stream(&self, stream: u64, owner: Box<dyn Send + Sync>) -> Result<Arc<dyn Backend>> {
        let (context, handle) = (Arc::clone(&self.stream.context), StreamHandle(stream as usize));
        // SAFETY: guaranteed by the caller.
        Ok(Arc::new(Cuda::on(unsafe { Stream::borrowed(context, handle, owner) })))
    }

    unsafe fn wait_for(&self, stream: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { self.stream.wait_for(StreamHandle(stream as usize)) }?)
    }

    unsafe fn make_wait(&self, stream: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { self.stream.make_wait(StreamHandle(stream as usize)) }?)
    }

    fn check_address(&self, address: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        self.stream.context.check_address(address)
    }
}

impl Drop for Cuda {
    /// Waits, so that the memory that the stream has freed is available to others.
    fn drop(&mut self) {
        if let Ok(_bound) = self.stream.bind() {
            let _ = self.stream.synchronize();
        }
    }
}
