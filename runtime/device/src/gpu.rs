//! A GPU: how it is opened, and what it does.

use std::sync::Arc;

use bytemuck::Pod;

use crate::backend::Backend;
use crate::command::Command;
#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
use crate::dry_run::DryRun;
#[cfg(feature = "emulator")]
use crate::emulator::Emulator;
use crate::error::Result;
use crate::faults::{Faults, BYTES};
use crate::gemm::Gemm;
use crate::launch::{Grid, Symbol, MOST_BLOCKS};
use crate::memory::Download;

/// A GPU, or what stands in for one. Work is done in the order in which it was given, while the caller goes on.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// Before the backend, which may clean up when nothing is allocated any more.
    pub(crate) faults: Arc<Faults>,
    pub(crate) backend: Arc<dyn Backend>,
}

impl Gpu {
    /// NVIDIA's GPU of this number, with a stream of its own.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) in one sentence that says what to do.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: usize) -> Result<Gpu> {
        Gpu::of(Arc::new(Cuda::open(ordinal)?))
    }

    /// The processor, with a memory of its own and kernels that were compiled for it: what tests run on.
    #[cfg(feature = "emulator")]
    ///
    /// # Errors
    /// The host has no room.
    pub fn emulator() -> Result<Gpu> {
        Gpu::of(Arc::new(Emulator))
    }

    /// A GPU that is not there: steps can be placed on it, and it records the commands of a run.
    ///
    /// # Errors
    /// None.
    pub fn dry_run() -> Result<Gpu> {
        Gpu::of(Arc::new(DryRun::default()))
    }

    /// The commands that a [dry run](Gpu::dry_run) was given since the last call.
    pub fn take_commands(&self) -> Vec<Command> {
        self.backend.take_commands()
    }

    fn of(backend: Arc<dyn Backend>) -> Result<Gpu> {
        let records = backend.allocate(BYTES)?;
        Ok(Gpu { faults: Arc::new(Faults::new(records)), backend })
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Waits until all work is done that was given before.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn finish(&self) -> Result<()> {
        self.backend.finish()
    }

    /// Checks that this process was not forked from the one that opened the GPU.
    ///
    /// # Errors
    /// It was.
    pub fn check_process(&self) -> Result<()> {
        self.backend.check_process()
    }

    /// Waits for all work of the GPU, also that of other libraries.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn finish_all(&self) -> Result<()> {
        self.backend.finish_all()
    }

    /// The stream that the work is given to, as CUDA counts handles; `None` where there are no streams.
    pub fn stream(&self) -> Option<u64> {
        self.backend.stream()
    }

    /// Lets work that is given from here on wait for the work that another stream was given before.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Safety
    /// It is a stream of this GPU.
    pub unsafe fn wait_for(&self, stream: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.backend.wait_for(stream) }
    }

    /// Makes copies to the host, when all work before is done: it waits once.
    ///
    /// # Errors
    /// What the device says, also of work before.
    pub fn download(&self, mut parts: Vec<Download>) -> Result<()> {
        parts.retain(|part| !part.to.is_empty());
        // SAFETY: each part lies in its buffer.
        unsafe { self.backend.download(&mut parts) }
    }

    /// Runs a kernel; nothing where the grid is empty.
    ///
    /// # Errors
    /// There is no such kernel, or what the device says; what a kernel does wrong may be said by a later call.
    ///
    /// # Safety
    /// `params` is the twin of the kernel's parameters, its addresses are those of memory that is as large as they say.
    pub unsafe fn launch<P: Pod>(&self, symbol: Symbol, grid: Grid, params: &P) -> Result<()> {
        if grid.blocks.contains(&0) {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.backend.launch(symbol, grid, bytemuck::bytes_of(params)) }
    }

    /// A product of matrices; nothing where the result has no elements.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Safety
    /// The addresses are those of matrices of these sizes.
    pub unsafe fn gemm(&self, gemm: &Gemm) -> Result<()> {
        if gemm.m == 0 || gemm.n == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        gemm.parts(MOST_BLOCKS).try_for_each(|part| unsafe { self.backend.gemm(&part) })
    }
}
