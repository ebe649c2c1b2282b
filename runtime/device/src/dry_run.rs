//! A GPU that is not there: it records the commands that it is given.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::backend::Backend;
use crate::command::Command;
use crate::error::Result;
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol};
use crate::memory::{Download, Memory};

/// It hands out addresses without memory behind them; what the host reads back is zeros.
#[derive(Debug, Default)]
pub(crate) struct DryRun {
    commands: Mutex<Vec<Command>>,
    /// The bytes that were handed out.
    allocated: AtomicU64,
}

/// Where each allocation begins, as on a GPU: at a multiple of this.
const ALIGNMENT: u64 = 256;

impl DryRun {
    fn record(&self, command: Command) {
        self.commands.lock().push(command);
    }
}

impl Backend for DryRun {
    fn name(&self) -> &str {
        "dry run"
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let size = (bytes as u64).next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let address = ALIGNMENT + self.allocated.fetch_add(size, Ordering::Relaxed);
        Ok(Memory { address, _owner: Box::new(()) })
    }

    unsafe fn upload(&self, from: &[u8], _: u64) -> Result<()> {
        self.record(Command::Upload(from.len()));
        Ok(())
    }

    unsafe fn download(&self, parts: &mut [Download]) -> Result<()> {
        self.record(Command::Download(parts.iter().map(|part| part.to.len()).sum()));
        parts.iter_mut().for_each(|part| part.to.fill(0));
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
            // As CUDA's backend does it: the library takes no empty sums.
            0 => {
                let (symbol, grid, _) = gemm.launch();
                self.record(Command::Launch(symbol, grid));
            }
            k => self.record(Command::Multiply { kind, m, n, k, batch }),
        }
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }

    fn stream(&self) -> Option<u64> {
        None
    }

    unsafe fn wait_for(&self, _: u64) -> Result<()> {
        Ok(())
    }

    unsafe fn hold_back(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn check_address(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut self.commands.lock())
    }
}
