//! What every GPU can do.

use std::fmt::Debug;
use std::sync::Arc;

use bytemuck::Pod;

pub(crate) use crate::buffer::Memory;
use crate::dry_run::{Command, DryRun};
use crate::gemm::Gemm;
use crate::turn::{Faults, BYTES};

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What a device says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be used: why, and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// There is no room for so many bytes.
    #[error("the device has no room for {0} bytes more")]
    OutOfMemory(usize),
    /// A kernel or a copy failed.
    #[error("{0}")]
    Failed(String),
}

/// A GPU, or what stands in for one. Work is done in the order in which it was given, while the caller goes on.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// Before the backend, which may clean up when nothing is allocated any more.
    pub(crate) faults: Arc<Faults>,
    pub(crate) backend: Arc<dyn Backend>,
}

/// Bytes of a GPU, and where a copy puts them on the host.
pub struct Download<'a> {
    pub(crate) from: u64,
    pub(crate) to: &'a mut [u8],
}

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
    /// The addresses are those of matrices of these sizes; they are no more than [`MOST_BLOCKS`].
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

/// A kernel: `softmax` of the module `softmax` for elements of kind `f32` is `softmax_f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file of `kernels/`, without `.cu`.
    pub module: &'static str,
    /// The kernel.
    pub name: &'static str,
    /// What it is compiled for; empty where there is one form.
    pub kind: &'static str,
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = if self.kind.is_empty() { "" } else { "_" };
        write!(f, "{}{line}{}", self.name, self.kind)
    }
}

/// The threads of a block, as `BLOCK` of `device.cuh`.
pub const BLOCK: u32 = 256;
/// The most blocks along y and along z.
pub const MOST_BLOCKS: u32 = 65_535;

/// How many threads run a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The blocks along x, y and z; none where any is 0.
    pub blocks: [u32; 3],
    /// The threads of each.
    pub threads: u32,
}

impl Grid {
    /// A thread for each of `count` elements, up to where threads go round.
    pub fn over(count: u32) -> Grid {
        /// As many blocks as keep every GPU busy.
        const MOST: u32 = 1 << 16;
        Grid { blocks: [count.div_ceil(BLOCK).min(MOST), 1, 1], threads: BLOCK }
    }

    /// A block for each of `count` pieces of work, up to where blocks go round.
    pub fn blocks(count: u32) -> Grid {
        /// The most that a grid has along x is 2³¹ − 1.
        const MOST: u32 = 1 << 30;
        Grid { blocks: [count.min(MOST), 1, 1], threads: BLOCK }
    }
}

impl Gpu {
    /// NVIDIA's GPU of this number, with a stream of its own.
    ///
    /// # Errors
    /// [`Error::Unavailable`] in one sentence that says what to do.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: usize) -> Result<Gpu> {
        Gpu::of(Arc::new(crate::cuda::Cuda::open(ordinal)?))
    }

    /// The processor, with a memory of its own and kernels that were compiled for it: what tests run on.
    #[cfg(feature = "emulator")]
    ///
    /// # Errors
    /// The host has no room.
    pub fn emulator() -> Result<Gpu> {
        Gpu::of(Arc::new(crate::emulator::Emulator))
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
        let words = backend.allocate(BYTES)?;
        Ok(Gpu { faults: Arc::new(Faults::new(words)), backend })
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
