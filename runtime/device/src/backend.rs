//! What every kind of GPU does.

use std::fmt::Debug;

use crate::command::Command;
use crate::error::Result;
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol};
use crate::memory::{Download, Memory};

/// What a kind of GPU does.
pub(crate) trait Backend: Debug + Send + Sync {
    fn name(&self) -> &str;

    /// Checks that this process can use the GPU: one that was forked from the process that opened it cannot.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }

    /// Bytes whose contents are arbitrary.
    fn allocate(&self, bytes: usize) -> Result<Memory>;

    /// Reads `from` before it returns.
    ///
    /// # Safety
    /// `to` is the address of as many bytes.
    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()>;

    /// Waits for all work before.
    ///
    /// # Safety
    /// Each part is at the address of as many bytes.
    unsafe fn download(&self, parts: &mut [Download]) -> Result<()>;

    /// # Safety
    /// Both are addresses of as many bytes, which do not overlap.
    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()>;

    /// # Safety
    /// The parameters are those of the kernel, and what it does with their addresses is sound.
    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()>;

    /// # Safety
    /// The addresses are those of matrices of these sizes; they are no more than [`MOST_BLOCKS`](crate::launch::MOST_BLOCKS).
    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()>;

    /// Waits for all work before.
    fn finish(&self) -> Result<()>;

    /// Waits for all work of the GPU, also that of other libraries.
    fn finish_all(&self) -> Result<()> {
        self.finish()
    }

    /// The commands since the last call, of a backend that records them.
    fn take_commands(&self) -> Vec<Command> {
        Vec::new()
    }

    /// The stream that the work is given to, as CUDA counts handles; `None` where there are no streams.
    fn stream(&self) -> Option<u64>;

    /// Lets work that is given from here on wait for the work that another stream was given before.
    ///
    /// # Safety
    /// It is a stream of this GPU.
    unsafe fn wait_for(&self, stream: u64) -> Result<()>;

    /// Lets work that another stream is given from here on wait for the work that was given before.
    ///
    /// # Safety
    /// It is a stream of this GPU.
    unsafe fn hold_back(&self, stream: u64) -> Result<()>;

    /// Whether an address that somebody else gave is one of this GPU's memory; why not.
    fn check_address(&self, address: u64) -> Result<()>;
}
