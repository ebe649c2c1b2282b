//! Memory of a GPU as backends know it: addresses.

use std::any::Any;
use std::fmt::Debug;

/// An address, and what frees what lies there.
pub(crate) struct Memory {
    pub address: u64,
    pub _owner: Box<dyn Any + Send + Sync>,
}

/// Bytes of a GPU, and where a copy puts them on the host.
pub struct Download<'a> {
    pub(crate) from: u64,
    pub(crate) to: &'a mut [u8],
}

impl Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}
