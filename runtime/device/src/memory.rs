//! The memory of a GPU as backends see it: addresses.
//!
//! Safe code cannot make an address: only unsafe functions create these types, so each of them stands for memory that was
//! allocated or lent.

use std::fmt::Debug;

/// What owns memory: dropping it frees the memory.
pub trait Owner: Send + Sync {
    /// Gives up the memory: dropping the owner no longer frees it, and the caller frees it with the functions of the
    /// GPU's driver. Returns `false` if the driver has no function that frees it.
    fn give_up(&mut self) -> bool {
        false
    }
}

/// Of memory without bytes, and of addresses without memory.
impl Owner for () {}

/// The address of memory, and the owner that frees the memory when it is dropped.
pub struct Memory {
    address: u64,
    owner: Box<dyn Owner>,
}

impl Memory {
    /// The memory at an address.
    ///
    /// # Safety
    /// At the address is memory of a GPU, which exists until the owner is dropped. Memory without bytes, and a backend that
    /// accesses no memory, may have any address.
    pub unsafe fn new(address: u64, owner: Box<dyn Owner>) -> Memory {
        Memory { address, owner }
    }

    /// Gives the memory to the caller, as [`Owner::give_up`] describes. `None` if the owner keeps it.
    pub(crate) fn give_up(&mut self) -> Option<u64> {
        self.owner.give_up().then_some(self.address)
    }

    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

/// A copy of bytes of a GPU to the host.
pub struct Download<'a> {
    gpu: &'a str,
    from: u64,
    to: &'a mut [u8],
}

impl<'a> Download<'a> {
    /// A copy of the bytes at the address `from` of the GPU of this name.
    ///
    /// # Safety
    /// While the value exists, the address has at least as many bytes as `to`.
    pub(crate) unsafe fn new(gpu: &'a str, from: u64, to: &'a mut [u8]) -> Download<'a> {
        Download { gpu, from, to }
    }

    /// Returns the name of the GPU that has the bytes.
    pub fn gpu(&self) -> &str {
        self.gpu
    }

    /// Returns the address of the first byte on the GPU.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Returns the destination on the host.
    pub fn to(&mut self) -> &mut [u8] {
        self.to
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.to.len()
    }
}
