//! Buffers in a GPU's memory.

use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::memory::{Download, Memory, Owner};

/// A buffer in a GPU's memory. It is freed when its last owner drops it and the queued work is done.
pub struct Buffer {
    memory: Memory,
    bytes: usize,
    /// Whether the memory has another owner, who may read it too.
    is_lent: bool,
    gpu: Gpu,
}

/// The owner of memory that a buffer borrows.
struct Lender {
    _owner: Box<dyn Send + Sync>,
}

impl Owner for Lender {}

impl Gpu {
    /// Allocates a buffer with arbitrary contents.
    ///
    /// # Errors
    /// The allocation fails.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer> {
        Ok(Buffer { memory: self.backend.allocate(bytes)?, bytes, is_lent: false, gpu: self.clone() })
    }

    /// Wraps memory of another owner. The buffer drops `owner` at its end.
    ///
    /// # Errors
    /// The first or the last byte is not this GPU's memory.
    ///
    /// # Safety
    /// While the owner exists, the address has `bytes` bytes, and nothing writes them while work that reads them is
    /// pending.
    pub unsafe fn lent(&self, address: u64, bytes: usize, owner: Box<dyn Send + Sync>) -> Result<Buffer> {
        if bytes > 0 {
            let last = address.checked_add(bytes as u64 - 1);
            let last = last.ok_or_else(|| Error::Failed(format!("{bytes} bytes at {address:#x} have no end")))?;
            self.backend.check_address(address)?;
            self.backend.check_address(last)?;
        }
        // SAFETY: guaranteed by the caller.
        let memory = unsafe { Memory::new(address, Box::new(Lender { _owner: owner })) };
        Ok(Buffer { memory, bytes, is_lent: true, gpu: self.clone() })
    }

    /// Allocates a buffer with these contents.
    ///
    /// # Errors
    /// The allocation or the copy fails.
    pub fn uploaded(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: the buffer has as many bytes.
            unsafe { self.backend.upload(bytes, buffer.address())? };
        }
        Ok(buffer)
    }
}

impl Buffer {
    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the size is 0.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether the memory has another owner. Then nothing writes to it.
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Describes a copy of the bytes from `start` on to `to`, for [`Gpu::download`].
    ///
    /// # Errors
    /// The buffer has fewer bytes.
    pub fn part<'a>(&'a self, start: usize, to: &'a mut [u8]) -> Result<Download<'a>> {
        let from = self.place(start, to.len())?;
        // SAFETY: the buffer has as many bytes there, and exists as long as the result.
        Ok(unsafe { Download::new(self.gpu.name(), from, to) })
    }

    /// Copies the bytes from `start` on to `to`, after all queued work is done.
    ///
    /// # Errors
    /// The buffer has fewer bytes, or the copy or earlier work failed.
    pub fn download(&self, start: usize, to: &mut [u8]) -> Result<()> {
        self.gpu.download(vec![self.part(start, to)?])
    }

    /// Copies `bytes` bytes from `start` on to a new buffer, in the order of the work of `gpu`. `gpu` is another handle
    /// of the same GPU if another session created this buffer.
    ///
    /// # Errors
    /// The buffer has fewer bytes or is on another GPU, or the allocation or the copy fails.
    pub fn copied(&self, gpu: &Gpu, start: usize, bytes: usize) -> Result<Buffer> {
        gpu.check_is(self.gpu.name())?;
        let (from, copy) = (self.place(start, bytes)?, gpu.allocate(bytes)?);
        if bytes > 0 {
            // SAFETY: the ranges are inside two different buffers of this GPU.
            unsafe { gpu.backend.copy(from, copy.address(), bytes)? };
        }
        Ok(copy)
    }

    /// Copies `bytes` bytes from `start` on to memory that another stream owns: after the work already queued on that
    /// stream, and before work that is queued on it from now on.
    ///
    /// # Errors
    /// The buffer has fewer bytes, or the copy fails.
    ///
    /// # Safety
    /// `to` is the address of at least as many bytes outside this buffer, and `stream` is a stream of this GPU.
    pub unsafe fn copy_out(&self, start: usize, bytes: usize, to: u64, stream: u64) -> Result<()> {
        let from = self.place(start, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the buffer; the caller guarantees the rest.
        unsafe {
            self.gpu.wait_for(stream)?;
            self.gpu.backend.copy(from, to, bytes)?;
            match self.gpu.backend.make_wait(stream) {
                Ok(()) if !self.is_lent => Ok(()),
                // The host waits if the stream cannot, or if the buffer's owner may free it on a third stream.
                _ => self.gpu.finish(),
            }
        }
    }

    /// Gives the memory to the caller, who frees it in the order of `stream` with the functions of the GPU's driver. Work
    /// that is queued on the stream from now on waits for the work already queued here. Returns the buffer itself if the
    /// memory has another owner or no bytes, or if the driver did not allocate it.
    ///
    /// # Errors
    /// The device reports an error.
    ///
    /// # Safety
    /// `stream` is a stream of this GPU.
    pub unsafe fn into_memory(mut self, stream: u64) -> Result<std::result::Result<u64, Buffer>> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.gpu.backend.make_wait(stream) }?;
        Ok(self.memory.give_up().filter(|_| self.bytes > 0).ok_or(self))
    }

    /// Returns the GPU of the buffer.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the address of byte `start`, from which on the buffer has as many bytes.
    ///
    /// # Errors
    /// The buffer has fewer bytes.
    fn place(&self, start: usize, bytes: usize) -> Result<u64> {
        match start.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address() + start as u64),
            _ => Err(Error::Failed(format!("{bytes} bytes at {start} are beyond {}", self.bytes))),
        }
    }
}

impl Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes on {}", self.bytes, self.gpu.name())
    }
}
