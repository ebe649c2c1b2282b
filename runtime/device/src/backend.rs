//! The interface of a backend.

use std::fmt::Debug;
use std::sync::Arc;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol};
use crate::memory::{Download, Memory};

/// A kind of GPU, such as CUDA, the emulator or a dry run. A backend that does all work at once queues none, and has no streams.
///
/// # Safety
/// [`Gpu`](crate::Gpu) and [`Buffer`](crate::Buffer) have safe functions, which rely on these promises of an
/// implementation:
/// - The memory that [`allocate`](Backend::allocate) returns has at least as many bytes. Until its owner is dropped,
///   nothing else uses it. Work that is queued by then may still use it.
/// - A copy or a launch accesses only the memory that its arguments name, and a kernel only the memory that its parameters
///   name. When a method returns, even with an error, nothing accesses the host's memory that its arguments name any more.
/// - Backends of the same [name](Backend::name) are the same GPU: each accepts the addresses of the others.
/// - [`check_address`](Backend::check_address) accepts only addresses of the GPU's memory.
///
/// A backend that accesses no memory at all, as a dry run, may return any addresses.
pub unsafe trait Backend: Debug + Send + Sync {
    /// The name of the GPU, such as `cuda:1`. It never changes.
    fn name(&self) -> &str;

    /// Checks that this process can use the GPU. A process that was forked after the GPU was opened cannot.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }

    /// Begins a run: from now on, the backend may keep freed memory for later allocations.
    fn begin_run(&self) {}

    /// Ends a run: the backend frees the memory that it keeps.
    fn end_run(&self) {}

    /// Allocates bytes with arbitrary contents.
    fn allocate(&self, bytes: usize) -> Result<Memory>;

    /// Copies `from` to the GPU, and reads it before the method returns.
    ///
    /// # Safety
    /// `to` is the address of at least as many bytes.
    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()>;

    /// Waits for all queued work, then copies the parts to the host.
    ///
    /// # Safety
    /// Each part's address has at least as many bytes.
    unsafe fn download(&self, parts: &mut [Download]) -> Result<()>;

    /// Copies bytes within the GPU.
    ///
    /// # Safety
    /// Both addresses have at least `bytes` bytes, and the ranges do not overlap.
    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()>;

    /// Queues a kernel.
    ///
    /// # Safety
    /// The parameters fit the kernel, and the kernel accesses valid memory with them.
    unsafe fn launch(&self, symbol: Symbol, grid: Grid, params: &[u8]) -> Result<()>;

    /// Queues matrix products.
    ///
    /// # Safety
    /// Matrices with these sizes are at the addresses. `gemm.batch` is at most
    /// [`MOST_BLOCKS`](crate::launch::MOST_BLOCKS).
    unsafe fn gemm(&self, gemm: &Gemm) -> Result<()>;

    /// Waits for all queued work.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// Waits for all work of the GPU, including that of other libraries.
    fn finish_all(&self) -> Result<()> {
        self.finish()
    }

    /// Returns the commands since the last call, if the backend records them.
    fn take_commands(&self) -> Vec<Command> {
        Vec::new()
    }

    /// The stream that the work is queued on, as a CUDA handle; `None` if the backend has no streams.
    fn stream(&self) -> Option<u64> {
        None
    }

    /// A backend of the same GPU that queues its work on another library's stream. It keeps the stream's owner.
    ///
    /// # Safety
    /// `stream` is one stream of this GPU in all threads, while the owner exists.
    unsafe fn on_stream(&self, _stream: u64, _owner: Box<dyn Send + Sync>) -> Result<Arc<dyn Backend>> {
        Err(Error::Failed(format!("the device {} has no streams", self.name())))
    }

    /// Makes work that is queued from now on wait for the work already queued on another stream.
    ///
    /// # Safety
    /// The argument is a stream of this GPU.
    unsafe fn wait_for(&self, _: u64) -> Result<()> {
        Ok(())
    }

    /// Makes work that is queued on another stream from now on wait for the work already queued here.
    ///
    /// # Safety
    /// The argument is a stream of this GPU.
    unsafe fn make_wait(&self, _: u64) -> Result<()> {
        Ok(())
    }

    /// Checks that an address from outside belongs to this GPU's memory.
    fn check_address(&self, address: u64) -> Result<()>;
}
