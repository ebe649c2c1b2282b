//! The pool that the memory of a GPU comes from.

use std::ffi::c_int;

use super::driver::{
    cuCtxSynchronize, cuMemPoolCreate, cuMemPoolDestroy, cuMemPoolSetAttribute, cuMemPoolTrimTo, PoolHandle,
    PoolProperties, RELEASE_THRESHOLD,
};
use super::failure::Failure;

/// A pool of our own, so that the pool of other libraries keeps its settings. It has no handle where the GPU has no pools.
#[derive(Debug, Default)]
pub(super) struct Pool {
    handle: Option<PoolHandle>,
}

impl Pool {
    /// A pool that keeps freed memory for the next run.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(device: c_int) -> Result<Pool, Failure> {
        let (mut pool, mut most, properties) = (PoolHandle::NULL, u64::MAX, PoolProperties::of(device));
        // SAFETY: the first call writes one handle; the attribute is a number of 64 bits.
        unsafe {
            cuMemPoolCreate(&raw mut pool, &raw const properties)?;
            cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, (&raw mut most).cast()).inspect_err(|_| {
                let _ = cuMemPoolDestroy(pool);
            })?;
        }
        Ok(Pool { handle: Some(pool) })
    }

    /// The driver's handle.
    pub fn handle(&self) -> Option<PoolHandle> {
        self.handle
    }

    /// Does work of this thread's context, which is the pool's, that may need memory from outside of the pool: kernels,
    /// workspaces and stacks. Where there is none left, the free memory of the pool is given back, and the work is tried once
    /// more.
    ///
    /// # Errors
    /// Those of the work.
    pub fn with_memory<T>(&self, mut work: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        match work() {
            Err(error) if error.is_memory() && self.give_back().is_ok() => work(),
            done => done,
        }
    }

    /// Gives the free memory of the pool back to the driver, when the work of all streams is done.
    fn give_back(&self) -> Result<(), Failure> {
        // SAFETY: the thread's context is the pool's; what is in use stays.
        unsafe {
            cuCtxSynchronize()?;
            self.handle.map_or(Ok(()), |pool| cuMemPoolTrimTo(pool, 0))
        }
    }

    /// Destroys the pool, in a thread whose context is the pool's.
    ///
    /// # Safety
    /// Nobody uses memory of the pool any more.
    pub unsafe fn destroy(&mut self) {
        if let Some(pool) = self.handle.take() {
            // SAFETY: the caller's promise.
            unsafe {
                let _ = cuMemPoolTrimTo(pool, 0);
                let _ = cuMemPoolDestroy(pool);
            }
        }
    }
}
