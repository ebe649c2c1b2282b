//! The processor as a GPU.

use std::ffi::{c_char, c_void, CString};

use crate::backend::{Backend, Error, Grid, Memory, Result, Symbol};
use crate::gemm::Gemm;

/// Its memory is the host's, where nobody else looks: what lies there has the address alone.
#[derive(Debug)]
pub(crate) struct Emulator;

/// What every byte is at first: a kernel that does not write what it should is seen.
const UNWRITTEN: u8 = 0xA5;
/// Bytes behind every buffer that stay as they are: a kernel that writes beyond is seen.
const GUARD: usize = 64;

/// Memory, in units that any element is aligned in.
struct Owner {
    words: Vec<u128>,
    bytes: usize,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        assert!(
            bytes[self.bytes..].iter().all(|&byte| byte == UNWRITTEN),
            "a kernel wrote behind {} bytes",
            self.bytes
        );
    }
}

extern "C" {
    fn emulator_find(name: *const c_char) -> *const c_void;
    fn emulator_parameters(kernel: *const c_void) -> u64;
    fn emulator_run(kernel: *const c_void, blocks: *const u32, threads: u32, params: *const c_void);
}

impl Backend for Emulator {
    fn name(&self) -> &str {
        "emulator"
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let mut words = Vec::new();
        let count = (bytes.saturating_add(GUARD)).div_ceil(size_of::<u128>());
        words.try_reserve_exact(count).map_err(|_| Error::OutOfMemory(bytes))?;
        words.resize(count, u128::from_ne_bytes([UNWRITTEN; 16]));
        Ok(Memory { address: words.as_ptr().addr() as u64, _owner: Box::new(Owner { words, bytes }) })
    }

    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()> {
        let name =
            CString::new(format!("{}/{symbol}", symbol.module)).map_err(|error| Error::Failed(error.to_string()))?;
        // SAFETY: the name ends with a zero.
        let kernel = unsafe { emulator_find(name.as_ptr()) };
        if kernel.is_null() {
            return Err(Error::Failed(format!("there is no kernel {symbol}")));
        }
        // SAFETY: it is a kernel.
        let size = unsafe { emulator_parameters(kernel) };
        if size != params.len() as u64 {
            return Err(Error::Failed(format!("{symbol} takes {size} bytes of parameters, not {}", params.len())));
        }
        // SAFETY: the caller's promise.
        unsafe { emulator_run(kernel, grid.blocks.as_ptr(), grid.threads, params.as_ptr().cast()) };
        Ok(())
    }

    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        let (symbol, grid, params) = gemm.launch();
        // SAFETY: the caller's promise.
        unsafe { self.launch(symbol, grid, bytemuck::bytes_of(&params)) }
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}
