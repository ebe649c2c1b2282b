//! The stream of a session, and memory that is allocated and freed in its order.

use std::sync::Arc;

use super::context::{Bound, Context};
use super::driver::{
    cuEventCreate, cuEventDestroy_v2, cuEventRecord, cuMemAllocFromPoolAsync, cuMemAlloc_v2, cuMemFreeAsync,
    cuMemFree_v2, cuStreamCreate, cuStreamDestroy_v2, cuStreamSynchronize, cuStreamWaitEvent, EventHandle,
    StreamHandle, NON_BLOCKING, WITHOUT_TIME,
};
use super::failure::Failure;
use crate::error::{Error, Result};
use crate::memory::Memory;

/// A queue of work for a GPU.
#[derive(Debug)]
pub(super) struct Stream {
    handle: StreamHandle,
    pub context: Arc<Context>,
}

impl Stream {
    pub fn new(context: Arc<Context>) -> Result<Arc<Stream>> {
        let _bound = context.bind()?;
        let mut handle = StreamHandle::NULL;
        // SAFETY: it writes one handle.
        context.pool.with_memory(|| unsafe { cuStreamCreate(&raw mut handle, NON_BLOCKING) })?;
        Ok(Arc::new(Stream { handle, context }))
    }

    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// As [`Context::bind`].
    ///
    /// # Errors
    /// As [`Context::bind`].
    pub fn bind(&self) -> Result<Bound> {
        self.context.bind()
    }

    /// Waits for all work before, of a thread whose context is the stream's.
    pub fn synchronize(&self) -> std::result::Result<(), Failure> {
        // SAFETY: the stream lives.
        unsafe { cuStreamSynchronize(self.handle) }
    }

    /// Lets work that is given from here on wait for the work that another stream was given before.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// It is a stream of the context, which is the thread's.
    pub unsafe fn wait_for(&self, other: StreamHandle) -> std::result::Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { order(other, self.handle) }
    }

    /// Lets work that another stream is given from here on wait for the work that was given before.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// It is a stream of the context, which is the thread's.
    pub unsafe fn hold_back(&self, other: StreamHandle) -> std::result::Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { order(self.handle, other) }
    }

    /// Memory whose contents are arbitrary.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or what the driver says.
    pub fn allocate(self: &Arc<Stream>, bytes: usize) -> Result<Memory> {
        if bytes == 0 {
            return Ok(Memory { address: 0, _owner: Box::new(()) });
        }
        let _bound = self.bind()?;
        let mut address = 0;
        // SAFETY: each writes one address; the pool and the stream live.
        let allocated = self.context.pool.with_memory(|| unsafe {
            match self.context.pool.handle() {
                Some(pool) => cuMemAllocFromPoolAsync(&raw mut address, bytes, pool, self.handle),
                None => cuMemAlloc_v2(&raw mut address, bytes),
            }
        });
        match allocated {
            Ok(()) => Ok(Memory { address, _owner: Box::new(Owner { address, stream: Arc::clone(self) }) }),
            Err(error) if error.is_memory() => Err(Error::OutOfMemory(bytes)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Stream {
    /// Work that is still queued is done all the same.
    fn drop(&mut self) {
        if let Ok(_bound) = self.bind() {
            // SAFETY: nobody uses the stream any more.
            let _ = unsafe { cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// Lets work that the stream `second` is given from here on wait for the work that `first` was given before.
///
/// # Safety
/// Both are streams of the thread's context.
unsafe fn order(first: StreamHandle, second: StreamHandle) -> std::result::Result<(), Failure> {
    let mut event = EventHandle::NULL;
    // SAFETY: the first call writes one handle. A destroyed event is waited for all the same.
    unsafe {
        cuEventCreate(&raw mut event, WITHOUT_TIME)?;
        let waits = cuEventRecord(event, first).and_then(|()| cuStreamWaitEvent(second, event, 0));
        waits.and(cuEventDestroy_v2(event))
    }
}

/// Memory, which is freed by whatever thread holds it last. It holds its stream, so the context lives as long.
struct Owner {
    address: u64,
    stream: Arc<Stream>,
}

impl Drop for Owner {
    /// Where the context cannot be bound (after a fork) nothing may be freed. Where freeing fails, the GPU is lost and the
    /// next call of the stream says so: the error is not kept for a call that has nothing to do with it.
    fn drop(&mut self) {
        let Ok(_bound) = self.stream.bind() else { return };
        let _ = match self.stream.context.pool.handle() {
            // SAFETY: nobody uses the memory any more, but for work that is in the stream already.
            Some(_) => unsafe { cuMemFreeAsync(self.address, self.stream.handle) },
            // SAFETY: nobody uses the memory any more, when the work is done.
            None => self.stream.synchronize().and_then(|()| unsafe { cuMemFree_v2(self.address) }),
        };
    }
}
