//! Freed memory that a run keeps for its later steps.
//!
//! A step frees values, and a later step allocates others of the same size. The driver takes about as long for these two
//! calls as for the launch of a kernel. All work of a session is in one stream, so a later step may use the memory at
//! once. The cache is empty between runs: then other sessions can use the memory.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::driver::{cuMemFreeAsync, cuMemFree_v2, cuStreamSynchronize, StreamHandle};
use crate::failure::Failure;

/// The largest block that the cache keeps, in bytes. Steps on larger values take longer than the driver's calls.
const LARGEST: usize = 4 << 20;
/// The most bytes of all blocks.
const MOST: usize = 64 << 20;

/// The cache of a stream.
#[derive(Debug)]
pub(super) struct Cache {
    stream: StreamHandle,
    /// Whether the blocks come from a memory pool.
    has_pool: bool,
    blocks: Mutex<Blocks>,
}

#[derive(Debug, Default)]
struct Blocks {
    is_open: bool,
    /// Addresses, by the exact size of their block.
    free: HashMap<usize, Vec<u64>>,
    bytes: usize,
}

impl Cache {
    /// The cache of a stream, closed.
    pub fn new(stream: StreamHandle, has_pool: bool) -> Cache {
        Cache { stream, has_pool, blocks: Mutex::default() }
    }

    /// Keeps freed blocks from now on.
    pub fn open(&self) {
        self.blocks.lock().is_open = true;
    }

    /// Takes a block of exactly this size.
    pub fn take(&self, bytes: usize) -> Option<u64> {
        let mut blocks = self.blocks.lock();
        let address = blocks.free.get_mut(&bytes)?.pop()?;
        blocks.bytes -= bytes;
        Some(address)
    }

    /// Frees a block, or keeps it. The stream's context must be bound to the thread.
    ///
    /// # Errors
    /// The driver reports an error.
    ///
    /// # Safety
    /// Nothing uses the block any more, except work that is already in the stream.
    pub unsafe fn free(&self, address: u64, bytes: usize) -> Result<(), Failure> {
        let mut blocks = self.blocks.lock();
        if blocks.is_open && bytes <= LARGEST && blocks.bytes + bytes <= MOST {
            blocks.bytes += bytes;
            blocks.free.entry(bytes).or_default().push(address);
            return Ok(());
        }
        drop(blocks);
        // SAFETY: guaranteed by the caller.
        unsafe { self.release(address) }
    }

    /// Keeps no more blocks, and frees all. The stream's context must be bound to the thread.
    pub fn close(&self) {
        self.blocks.lock().is_open = false;
        self.clear();
    }

    /// Frees all blocks. The stream's context must be bound to the thread. If freeing fails, the GPU is lost, and the next
    /// call on the stream reports it.
    pub fn clear(&self) {
        // The lock is held meanwhile, because the stream is destroyed after `close`.
        let mut blocks = self.blocks.lock();
        blocks.bytes = 0;
        for address in blocks.free.drain().flat_map(|(_, addresses)| addresses) {
            // SAFETY: nothing uses the block any more, except work that is already in the stream.
            let _ = unsafe { self.release(address) };
        }
    }

    /// Returns a block to the driver.
    ///
    /// # Safety
    /// As for [`Cache::free`].
    unsafe fn release(&self, address: u64) -> Result<(), Failure> {
        // SAFETY: guaranteed by the caller. Without a pool, no work uses the block after the wait.
        unsafe {
            if self.has_pool {
                return cuMemFreeAsync(address, self.stream);
            }
            cuStreamSynchronize(self.stream)?;
            cuMemFree_v2(address)
        }
    }
}
