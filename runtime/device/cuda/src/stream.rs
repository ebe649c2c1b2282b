//! The stream of a session, and memory that is allocated and freed in stream order.

use std::sync::Arc;

use candle_plan_device::{Error, Memory, Owner, Result};

use crate::cache::Cache;
use crate::context::{Bound, Context};
use crate::driver::{
    cuEventCreate, cuEventDestroy_v2, cuEventRecord, cuMemAllocFromPoolAsync, cuMemAlloc_v2, cuStreamCreate,
    cuStreamDestroy_v2, cuStreamSynchronize, cuStreamWaitEvent, EventHandle, StreamHandle, NON_BLOCKING, WITHOUT_TIME,
};
use crate::failure::Failure;

/// A queue of work for a GPU.
pub(super) struct Stream {
    handle: StreamHandle,
    /// The owner, if the stream belongs to another library.
    owner: Option<Box<dyn Send + Sync>>,
    /// Memory that the session's run keeps.
    pub cache: Arc<Cache>,
    pub context: Arc<Context>,
}

impl Stream {
    pub fn new(context: Arc<Context>) -> Result<Arc<Stream>> {
        let _bound = context.bind()?;
        let mut handle = StreamHandle::NULL;
        // SAFETY: the call writes one handle.
        context.pool.with_memory(|| unsafe { cuStreamCreate(&raw mut handle, NON_BLOCKING) })?;
        Ok(Stream::of(context, handle, None))
    }

    /// A stream of another library.
    ///
    /// # Safety
    /// `handle` is one stream of the context in all threads, while the owner exists.
    pub unsafe fn borrowed(context: Arc<Context>, handle: StreamHandle, owner: Box<dyn Send + Sync>) -> Arc<Stream> {
        Stream::of(context, handle, Some(owner))
    }

    fn of(context: Arc<Context>, handle: StreamHandle, owner: Option<Box<dyn Send + Sync>>) -> Arc<Stream> {
        let cache = Arc::new(Cache::new(handle, context.pool.handle().is_some()));
        context.pool.add_cache(&cache);
        Arc::new(Stream { handle, owner, cache, context })
    }

    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// Binds the context, like [`Context::bind`].
    ///
    /// # Errors
    /// As for [`Context::bind`].
    pub fn bind(&self) -> Result<Bound> {
        self.context.bind()
    }

    /// Waits for all queued work. The context must be bound to the thread.
    pub fn synchronize(&self) -> std::result::Result<(), Failure> {
        // SAFETY: the stream exists.
        unsafe { cuStreamSynchronize(self.handle) }
    }

    /// Makes work that is queued from now on wait for the work already queued on another stream.
    ///
    /// # Errors
    /// The driver reports an error.
    ///
    /// # Safety
    /// `other` is a stream of the context, which is bound to the thread.
    pub unsafe fn wait_for(&self, other: StreamHandle) -> std::result::Result<(), Failure> {
        // SAFETY: guaranteed by the caller.
        unsafe { order(other, self.handle) }
    }

    /// Makes work that is queued on another stream from now on wait for the work already queued here.
    ///
    /// # Errors
    /// The driver reports an error.
    ///
    /// # Safety
    /// `other` is a stream of the context, which is bound to the thread.
    pub unsafe fn make_wait(&self, other: StreamHandle) -> std::result::Result<(), Failure> {
        // SAFETY: guaranteed by the caller.
        unsafe { order(self.handle, other) }
    }

    /// Allocates memory with arbitrary contents.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver reports another error.
    pub fn allocate(self: &Arc<Stream>, bytes: usize) -> Result<Memory> {
        if bytes == 0 {
            // SAFETY: the memory has no bytes.
            return Ok(unsafe { Memory::new(0, Box::new(())) });
        }
        if let Some(address) = self.cache.take(bytes) {
            // SAFETY: the cache has given away a block of this size.
            return Ok(unsafe { self.owned(address, bytes) });
        }
        let _bound = self.bind()?;
        let mut address = 0;
        // SAFETY: each call writes one address; the pool and the stream exist.
        let allocated = self.context.pool.with_memory(|| unsafe {
            match self.context.pool.handle() {
                Some(pool) => cuMemAllocFromPoolAsync(&raw mut address, bytes, pool, self.handle),
                None => cuMemAlloc_v2(&raw mut address, bytes),
            }
        });
        match allocated {
            // SAFETY: the driver has allocated as many bytes.
            Ok(()) => Ok(unsafe { self.owned(address, bytes) }),
            Err(error) if error.is_memory() => Err(Error::OutOfMemory(bytes)),
            Err(error) => Err(error.into()),
        }
    }

    /// The memory of a block, whose owner frees it.
    ///
    /// # Safety
    /// The block was allocated for this stream with this size, and nothing else frees it.
    unsafe fn owned(self: &Arc<Stream>, address: u64, bytes: usize) -> Memory {
        let owner = Block { address, bytes, stream: Some(Arc::clone(self)) };
        // SAFETY: guaranteed by the caller.
        unsafe { Memory::new(address, Box::new(owner)) }
    }
}

impl Drop for Stream {
    /// Queued work still runs after this.
    fn drop(&mut self) {
        if let Ok(_bound) = self.bind() {
            self.cache.close();
            if self.owner.is_none() {
                // SAFETY: nothing uses the stream any more.
                let _ = unsafe { cuStreamDestroy_v2(self.handle) };
            }
        }
    }
}

/// Makes work that is queued on the stream `second` from now on wait for the work already queued on `first`, which may be
/// the same stream.
///
/// # Safety
/// Both are streams of the context that is bound to the thread.
unsafe fn order(first: StreamHandle, second: StreamHandle) -> std::result::Result<(), Failure> {
    if first == second {
        return Ok(());
    }
    let mut event = EventHandle::NULL;
    // SAFETY: the first call writes one handle. Destroying an event does not affect the streams that wait for it.
    unsafe {
        cuEventCreate(&raw mut event, WITHOUT_TIME)?;
        let waits = cuEventRecord(event, first).and_then(|()| cuStreamWaitEvent(second, event, 0));
        waits.and(cuEventDestroy_v2(event))
    }
}

/// Memory that its last owner frees, on any thread. It holds its stream, which keeps the context alive.
struct Block {
    address: u64,
    bytes: usize,
    /// `None` if somebody else frees the memory.
    stream: Option<Arc<Stream>>,
}

impl Owner for Block {
    /// The driver's functions free memory of a pool also in the order of another stream, and after the pool is destroyed.
    fn give_up(&mut self) -> bool {
        self.stream = None;
        true
    }
}

impl Drop for Block {
    /// Frees nothing if the context cannot be bound (after a fork). If freeing fails, the GPU is lost, and the next
    /// call on the stream reports it; the error is not kept for an unrelated call.
    fn drop(&mut self) {
        let Some(stream) = &self.stream else { return };
        let Ok(_bound) = stream.bind() else { return };
        // SAFETY: nothing uses the memory any more, except work that is already in the stream.
        let _ = unsafe { stream.cache.free(self.address, self.bytes) };
    }
}
