//! A backend for this crate's tests: the memory of the host, without kernels.

use std::sync::Arc;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::gemm::Gemm;
use crate::gpu::Gpu;
use crate::launch::{Grid, Symbol};
use crate::memory::{Download, Memory, Owner};

/// A GPU with this backend.
pub(crate) fn host() -> Gpu {
    Gpu::new(Arc::new(Host)).expect("enough memory")
}

#[derive(Debug)]
struct Host;

struct Words {
    _words: Vec<u64>,
}

impl Owner for Words {}

// SAFETY: an address is that of a vector, which is alone until its owner is dropped, and all copies are done at once.
unsafe impl Backend for Host {
    fn name(&self) -> &str {
        "host"
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let mut words = vec![u64::MAX; bytes.div_ceil(size_of::<u64>())];
        let address = words.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the owner has the vector at the address.
        Ok(unsafe { Memory::new(address, Box::new(Words { _words: words })) })
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        let to = std::ptr::with_exposed_provenance_mut(to as usize);
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    unsafe fn download(&self, parts: &mut [Download]) -> Result<()> {
        for part in parts {
            let from = std::ptr::with_exposed_provenance(part.from() as usize);
            // SAFETY: guaranteed by the caller.
            unsafe { std::ptr::copy_nonoverlapping(from, part.to().as_mut_ptr(), part.bytes()) };
        }
        Ok(())
    }

    unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        Err(Error::Failed("tests copy nothing".to_string()))
    }

    unsafe fn launch(&self, symbol: Symbol, _: Grid, _: &[u8]) -> Result<()> {
        Err(Error::Failed(format!("there is no kernel {symbol}")))
    }

    unsafe fn gemm(&self, _: &Gemm) -> Result<()> {
        Err(Error::Failed("there are no products".to_string()))
    }

    fn check_address(&self, _: u64) -> Result<()> {
        Ok(())
    }
}
