//! A backend without a GPU: it records commands.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::backend::Backend;
use crate::command::Command;
use crate::error::Result;
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol};
use crate::memory::{Download, Memory};

/// A backend that returns addresses without memory. Copies to the host give zeros.
#[derive(Debug, Default)]
pub(crate) struct DryRun {
    commands: Mutex<Vec<Command>>,
    /// The bytes allocated so far.
    allocated: AtomicU64,
}

/// The alignment of allocations, as on a GPU.
const ALIGNMENT: u64 = 256;

impl DryRun {
    fn record(&self, command: Command) {
        self.commands.lock().push(command);
    }
}

// SAFETY: no method accesses memory of a GPU; `download` writes to the memory that its argument lends.
unsafe impl Backend for DryRun {
    fn name(&self) -> &str {
        "dry run"
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let size = (bytes as u64).next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let address = ALIGNMENT + self.allocated.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the backend accesses no memory, so any address will do.
        Ok(unsafe { Memory::new(address, Box::new(())) })
    }

    unsafe fn upload(&self, from: &[u8], _: u64) -> Result<()> {
        self.record(Command::Upload(from.len()));
        Ok(())
    }

    unsafe fn download(&self, parts: &mut [Download]) -> Result<()> {
        self.record(Command::Download(parts.iter().map(Download::bytes).sum()));
        parts.iter_mut().for_each(|part| part.to().fill(0));
        Ok(())
    }

    unsafe fn copy(&self, _: u64, _: u64, bytes: usize) -> Result<()> {
        self.record(Command::Copy(bytes));
        Ok(())
    }

    unsafe fn launch(&self, symbol: Symbol, grid: Grid, _: &[u8]) -> Result<()> {
        self.record(Command::Launch(symbol, grid));
        Ok(())
    }

    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        let Gemm { kind, m, n, k, batch, .. } = *gemm;
        match k {
            // As in the CUDA backend: the library does not accept empty sums.
            0 => {
                let (symbol, grid, _) = gemm.launch();
                self.record(Command::Launch(symbol, grid));
            }
            k => self.record(Command::Multiply { kind, m, n, k, batch }),
        }
        Ok(())
    }

    fn check_address(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut self.commands.lock())
    }
}
