//! NVIDIA's GPUs: the driver and cuBLAS, which are opened at run time.
//!
//! The [context](context) of a GPU, with its memory pool and modules, is shared by all sessions of the process. Each session
//! has a [stream](stream) of its own, with a [staging buffer](staging) and a handle of cuBLAS. Every entry binds the context
//! to the calling thread first.

mod blas;
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

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::blas::Blas;
use self::context::Context;
use self::driver::{
    cuCtxSynchronize, cuLaunchKernel, cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2, StreamHandle,
};
use self::modules::of_kernel;
use self::multiply::multiply;
use self::staging::Staging;
use self::stream::Stream;
use crate::backend::Backend;
use crate::error::Result;
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol};
use crate::memory::{Download, Memory};

/// One session's use of a GPU.
pub(crate) struct Cuda {
    /// Made with the first product; dropped before the stream.
    blas: Mutex<Option<Blas>>,
    staging: Mutex<Stage>,
    stream: Arc<Stream>,
}

/// How bytes go to the GPU and come back.
enum Stage {
    /// Nothing was copied yet.
    Unopened,
    /// Through pinned memory.
    Pinned(Staging),
    /// The host has no pinned memory: each copy is waited for.
    Pageable,
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Cuda {
    /// A stream of GPU number `ordinal`.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: what is missing.
    pub fn open(ordinal: usize) -> Result<Cuda> {
        let stream = Stream::new(Context::open(ordinal)?)?;
        Ok(Cuda { blas: Mutex::default(), staging: Mutex::new(Stage::Unopened), stream })
    }

    /// The staging buffer, which is made where this is the first copy.
    ///
    /// # Errors
    /// What the driver says, but that there is no pinned memory left.
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

impl Backend for Cuda {
    fn name(&self) -> &str {
        &self.stream.context.name
    }

    fn check_process(&self) -> Result<()> {
        self.stream.context.check_process()
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        self.stream.allocate(bytes)
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        match &mut *self.stage()? {
            // SAFETY: the caller's promise.
            Stage::Pinned(staging) => unsafe { staging.upload(from, to) }?,
            _ => {
                // SAFETY: the caller's promise; the source lives until the copy is done.
                unsafe { cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream.handle()) }?;
                self.stream.synchronize()?;
            }
        }
        Ok(())
    }

    unsafe fn download(&self, parts: &mut [Download]) -> Result<()> {
        let _bound = self.stream.bind()?;
        match &mut *self.stage()? {
            // SAFETY: the caller's promise.
            Stage::Pinned(staging) => unsafe { staging.download(parts) }?,
            _ => {
                for part in parts {
                    let (to, bytes) = (part.to.as_mut_ptr().cast(), part.to.len());
                    // SAFETY: the caller's promise; each copy is waited for.
                    unsafe { cuMemcpyDtoHAsync_v2(to, part.from, bytes, self.stream.handle()) }?;
                    self.stream.synchronize()?;
                }
            }
        }
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: the caller's promise.
        Ok(unsafe { cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.handle()) }?)
    }

    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()> {
        let _bound = self.stream.bind()?;
        let context = &self.stream.context;
        let function = context.modules.function(&context.pool, context.capability, symbol)?;
        let [x, y, z] = grid.blocks;
        // The driver reads as many bytes from there as the kernel's one parameter has, before the call returns.
        let mut parameters = [params.as_ptr().cast_mut().cast::<c_void>()];
        let (parameters, none, stream) = (parameters.as_mut_ptr(), std::ptr::null_mut(), self.stream.handle());
        // The stacks of a kernel's threads are no memory of the pool. Where there is none for them, nothing was launched.
        // SAFETY: the caller's promise.
        let launch = || unsafe { cuLaunchKernel(function, x, y, z, grid.threads, 1, 1, 0, stream, parameters, none) };
        context.pool.with_memory(launch).map_err(|failure| of_kernel(symbol, failure))
    }

    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        if gemm.k == 0 {
            let (symbol, grid, params) = gemm.launch();
            // SAFETY: the caller's promise.
            return unsafe { self.launch(symbol, grid, bytemuck::bytes_of(&params)) };
        }
        let _bound = self.stream.bind()?;
        let mut blas = self.blas.lock().unwrap_or_else(PoisonError::into_inner);
        let context = &self.stream.context;
        let blas = match &mut *blas {
            Some(blas) => blas,
            none => none.insert(context.pool.with_memory(|| Blas::new(&self.stream))?),
        };
        // SAFETY: the caller's promise. Where cuBLAS finds no memory, it has launched nothing.
        Ok(context.pool.with_memory(|| unsafe { multiply(blas.handle, gemm) })?)
    }

    fn finish(&self) -> Result<()> {
        let _bound = self.stream.bind()?;
        Ok(self.stream.synchronize()?)
    }

    fn finish_all(&self) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: the context is the thread's.
        Ok(unsafe { cuCtxSynchronize() }?)
    }

    fn stream(&self) -> Option<u64> {
        Some(self.stream.handle().0 as u64)
    }

    unsafe fn wait_for(&self, stream: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: the caller's promise.
        Ok(unsafe { self.stream.wait_for(StreamHandle(stream as usize)) }?)
    }

    unsafe fn hold_back(&self, stream: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        // SAFETY: the caller's promise.
        Ok(unsafe { self.stream.hold_back(StreamHandle(stream as usize)) }?)
    }

    fn check_address(&self, address: u64) -> Result<()> {
        let _bound = self.stream.bind()?;
        self.stream.context.check_address(address)
    }
}

impl Drop for Cuda {
    /// What the stream has freed is free for others when its work is done.
    fn drop(&mut self) {
        if let Ok(_bound) = self.stream.bind() {
            let _ = self.stream.synchronize();
        }
    }
}
