//! The memory pool of a GPU.

use std::ffi::c_int;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::cache::Cache;
use crate::driver::{
    cuCtxSynchronize, cuMemPoolCreate, cuMemPoolDestroy, cuMemPoolSetAttribute, cuMemPoolTrimTo, PoolHandle,
    PoolProperties, RELEASE_THRESHOLD,
};
use crate::failure::Failure;

/// A separate pool, so that the pool of other libraries keeps its settings. It has no handle if the GPU does not
/// support pools.
#[derive(Debug, Default)]
pub(super) struct Pool {
    handle: Option<PoolHandle>,
    /// The caches of all streams. They keep memory of the pool.
    caches: Mutex<Vec<Weak<Cache>>>,
}

impl Pool {
    /// Creates a pool that keeps freed memory for the next run.
    ///
    /// # Errors
    /// The driver reports an error.
    pub fn new(device: c_int) -> Result<Pool, Failure> {
        let (mut pool, mut most, properties) = (PoolHandle::NULL, u64::MAX, PoolProperties::of(device));
        // SAFETY: the first call writes one handle; the attribute is a 64-bit number.
        unsafe {
            cuMemPoolCreate(&raw mut pool, &raw const properties)?;
            cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, (&raw mut most).cast()).inspect_err(|_| {
                let _ = cuMemPoolDestroy(pool);
            })?;
        }
        Ok(Pool { handle: Some(pool), ..Pool::default() })
    }

    /// The driver's handle.
    pub fn handle(&self) -> Option<PoolHandle> {
        self.handle
    }

    /// Adds the cache of a new stream.
    pub fn add_cache(&self, cache: &Arc<Cache>) {
        let mut caches = self.caches.lock();
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(cache));
    }

    /// Runs work that may need memory from outside the pool: for kernels, workspaces and stacks. If none is left, returns
    /// the free memory of the pool and of the caches to the driver, and runs the work once more. The pool's context must be
    /// bound to the thread.
    ///
    /// # Errors
    /// The work fails.
    pub fn with_memory<T>(&self, mut work: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        match work() {
            Err(error) if error.is_memory() && self.give_back().is_ok() => work(),
            done => done,
        }
    }

    /// Returns the free memory of the pool and of the caches to the driver, after the work of all streams is done.
    fn give_back(&self) -> Result<(), Failure> {
        let caches: Vec<Arc<Cache>> = self.caches.lock().iter().filter_map(Weak::upgrade).collect();
        caches.iter().for_each(|cache| cache.clear());
        // SAFETY: the pool's context is bound to the thread; memory in use stays.
        unsafe {
            cuCtxSynchronize()?;
            self.handle.map_or(Ok(()), |pool| cuMemPoolTrimTo(pool, 0))
        }
    }

    /// Destroys the pool. Its context must be bound to the thread. The driver keeps the memory that was
    /// [given up](candle_plan_device::Owner::give_up) until its new owner frees it.
    ///
    /// # Safety
    /// Nothing else uses memory of the pool any more.
    pub unsafe fn destroy(&mut self) {
        if let Some(pool) = self.handle.take() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let _ = cuMemPoolTrimTo(pool, 0);
                let _ = cuMemPoolDestroy(pool);
            }
        }
    }
}
