//! The memory of a GPU as backends see it: addresses.

use std::any::Any;
use std::fmt::Debug;

/// An address, and the owner that frees its memory.
pub(crate) struct Memory {
    pub address: u64,
    pub _owner: Box<dyn Any + Send + Sync>,
}

/// A copy of bytes of a GPU to the host.
pub struct Download<'a> {
    pub(crate) from: u64,
    pub(crate) to: &'a mut [u8],
}

impl Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}
