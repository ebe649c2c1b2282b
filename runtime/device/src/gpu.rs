//! The handle of a GPU.

use std::sync::Arc;

use bytemuck::Pod;

use crate::backend::Backend;
use crate::command::Command;
use crate::dry_run::DryRun;
use crate::error::{Error, Result};
use crate::faults::{Faults, BYTES};
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol, MOST_BLOCKS};
use crate::memory::Download;

/// A GPU, or a backend that stands in for one. Work is queued, and runs in order while the caller continues.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// Declared before the backend, which may clean up after all memory has been freed.
    pub(crate) faults: Arc<Faults>,
    pub(crate) backend: Arc<dyn Backend>,
}

impl Gpu {
    /// The GPU of a backend.
    ///
    /// # Errors
    /// The backend has no memory left.
    pub fn new(backend: Arc<dyn Backend>) -> Result<Gpu> {
        let records = backend.allocate(BYTES)?;
        Ok(Gpu { faults: Arc::new(Faults::new(records)), backend })
    }

    /// Opens a dry run without a GPU: steps can be placed on it, and it records the commands of a run.
    ///
    /// # Errors
    /// None.
    pub fn dry_run() -> Result<Gpu> {
        Gpu::new(Arc::new(DryRun::default()))
    }

    /// Returns the commands that a [dry run](Gpu::dry_run) has recorded since the last call.
    pub fn take_commands(&self) -> Vec<Command> {
        self.backend.take_commands()
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Waits until all queued work is done.
    ///
    /// # Errors
    /// The work failed.
    pub fn finish(&self) -> Result<()> {
        self.backend.finish()
    }

    /// Checks that this process is not a fork of the one that opened the GPU.
    ///
    /// # Errors
    /// It is a fork.
    pub fn check_process(&self) -> Result<()> {
        self.backend.check_process()
    }

    /// Waits for all work of the GPU, including that of other libraries.
    ///
    /// # Errors
    /// The work failed.
    pub fn finish_all(&self) -> Result<()> {
        self.backend.finish_all()
    }

    /// The stream that work is queued on, as a CUDA handle; `None` if the backend has no streams.
    pub fn stream(&self) -> Option<u64> {
        self.backend.stream()
    }

    /// The same GPU with its work on another library's stream. The result keeps the stream's owner.
    ///
    /// # Errors
    /// The backend has no streams, or the device reports an error.
    ///
    /// # Safety
    /// `stream` is one stream of this GPU in all threads, while the owner exists.
    pub unsafe fn on_stream(&self, stream: u64, owner: Box<dyn Send + Sync>) -> Result<Gpu> {
        // SAFETY: guaranteed by the caller.
        Gpu::new(unsafe { self.backend.on_stream(stream, owner) }?)
    }

    /// Makes work that is queued from now on wait for the work already queued on another stream.
    ///
    /// # Errors
    /// The device reports an error.
    ///
    /// # Safety
    /// `stream` is a stream of this GPU.
    pub unsafe fn wait_for(&self, stream: u64) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.backend.wait_for(stream) }
    }

    /// Copies `parts` to the host, after all queued work is done. Waits once.
    ///
    /// # Errors
    /// A part is on another GPU, or a copy or earlier work failed.
    pub fn download(&self, mut parts: Vec<Download>) -> Result<()> {
        parts.iter().try_for_each(|part| self.check_is(part.gpu()))?;
        parts.retain(|part| part.bytes() > 0);
        // SAFETY: each part is inside a buffer of this GPU.
        unsafe { self.backend.download(&mut parts) }
    }

    /// Checks that this is the GPU of this name.
    ///
    /// # Errors
    /// It is another one.
    pub(crate) fn check_is(&self, name: &str) -> Result<()> {
        match self.name() {
            own if own == name => Ok(()),
            own => Err(Error::Failed(format!("the memory is on the device {name}, not on {own}"))),
        }
    }

    /// Queues a kernel; does nothing if the grid is empty.
    ///
    /// # Errors
    /// The kernel does not exist, or the launch fails. A later call may report an error of the kernel.
    ///
    /// # Safety
    /// `params` matches the kernel's parameters, and its addresses refer to memory of the size that the parameters
    /// describe.
    pub unsafe fn launch<P: Pod>(&self, symbol: Symbol, grid: Grid, params: &P) -> Result<()> {
        if grid.blocks.contains(&0) {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.backend.launch(symbol, grid, bytemuck::bytes_of(params)) }
    }

    /// Queues matrix products; does nothing if the result has no elements.
    ///
    /// # Errors
    /// The device reports an error.
    ///
    /// # Safety
    /// Matrices with these sizes are at the addresses.
    pub unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        if gemm.m == 0 || gemm.n == 0 {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        gemm.parts(MOST_BLOCKS).try_for_each(|part| unsafe { self.backend.gemm(&part) })
    }
}
