//! Memory of a GPU, which is freed when nobody holds it any more.

use std::any::Any;
use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::memory::{Download, Memory};

/// Memory of a GPU, which is freed when nobody holds it any more and the work before is done.
pub struct Buffer {
    memory: Memory,
    bytes: usize,
    /// Whether somebody else may read it too.
    is_lent: bool,
    gpu: Gpu,
}

impl Gpu {
    /// Memory whose contents are arbitrary.
    ///
    /// # Errors
    /// There is not so much.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer> {
        Ok(Buffer { memory: self.backend.allocate(bytes)?, bytes, is_lent: false, gpu: self.clone() })
    }

    /// Memory that belongs to somebody else, who is `owner` and is dropped with the buffer.
    ///
    /// # Errors
    /// The first or the last byte is not this GPU's memory.
    ///
    /// # Safety
    /// As long as the owner lives, there are `bytes` bytes at the address, and nobody writes them while work that reads them
    /// is pending.
    pub unsafe fn lent(&self, address: u64, bytes: usize, owner: Box<dyn Any + Send + Sync>) -> Result<Buffer> {
        if bytes > 0 {
            let last = address.checked_add(bytes as u64 - 1);
            let last = last.ok_or_else(|| Error::Failed(format!("{bytes} bytes at {address:#x} have no end")))?;
            self.backend.check_address(address)?;
            self.backend.check_address(last)?;
        }
        Ok(Buffer { memory: Memory { address, _owner: owner }, bytes, is_lent: true, gpu: self.clone() })
    }

    /// Memory with these contents.
    ///
    /// # Errors
    /// There is not so much, or what the device says of the copy.
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
    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether it belongs to somebody else: it is not written.
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// A copy to `to` of its bytes from `start` on, which is yet to be made.
    ///
    /// # Errors
    /// There are fewer.
    pub fn part<'a>(&'a self, start: usize, to: &'a mut [u8]) -> Result<Download<'a>> {
        self.check(start, to.len())?;
        Ok(Download { from: self.memory.address + start as u64, to })
    }

    /// Copies its bytes from `start` on, when all work before is done.
    ///
    /// # Errors
    /// There are fewer, or what the device says, also of work before.
    pub fn download(&self, start: usize, to: &mut [u8]) -> Result<()> {
        self.gpu.download(vec![self.part(start, to)?])
    }

    /// A copy of `bytes` bytes from `start` on, made in the order of the work of `gpu`, which is another handle of the same
    /// GPU where another session made the buffer.
    ///
    /// # Errors
    /// There are fewer, or there is no room for them.
    pub fn copied(&self, gpu: &Gpu, start: usize, bytes: usize) -> Result<Buffer> {
        self.check(start, bytes)?;
        let copy = gpu.allocate(bytes)?;
        if bytes > 0 {
            // SAFETY: both ranges lie in their buffers, which are two.
            unsafe { gpu.backend.copy(self.memory.address + start as u64, copy.address(), bytes)? };
        }
        Ok(copy)
    }

    /// Copies `bytes` bytes from `start` on to memory that another stream owns: after the work that the stream was given
    /// before, and before the work that it is given from here on.
    ///
    /// # Errors
    /// There are fewer, or what the device says.
    ///
    /// # Safety
    /// `to` is the address of as many bytes, which are not this buffer's, and the stream is one of this GPU.
    pub unsafe fn copy_out(&self, start: usize, bytes: usize, to: u64, stream: u64) -> Result<()> {
        self.check(start, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range lies in the buffer; the rest is the caller's promise.
        unsafe {
            self.gpu.wait_for(stream)?;
            self.gpu.backend.copy(self.memory.address + start as u64, to, bytes)?;
            match self.gpu.backend.hold_back(stream) {
                Ok(()) if !self.is_lent => Ok(()),
                // The host waits where the stream cannot, and where the buffer's owner may free it in a third stream.
                _ => self.gpu.finish(),
            }
        }
    }

    /// The GPU that it is of.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn check(&self, start: usize, bytes: usize) -> Result<()> {
        match start.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Error::Failed(format!("{bytes} bytes at {start} are beyond {}", self.bytes))),
        }
    }
}

impl Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes on {}", self.bytes, self.gpu.name())
    }
}
