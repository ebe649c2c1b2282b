//! The memory of a GPU as backends see it: addresses.

use std::any::Any;
use std::fmt::Debug;

/// An address, and the owner that frees its memory.
pub struct Memory {
    /// The address of the first byte.
    pub address: u64,
    /// Frees the memory when it is dropped.
    pub owner: Box<dyn Any + Send + Sync>,
}

/// A copy of bytes of a GPU to the host.
pub struct Download<'a> {
    /// The address of the first byte on the GPU.
    pub from: u64,
    /// The bytes on the host.
    pub to: &'a mut [u8],
}

impl Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}
