//! What every GPU can do.

use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::dry_run::{Command, DryRun};
use crate::gemm::Gemm;

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
    backend: Arc<dyn Backend>,
    faults: Arc<Faults>,
}

/// Where kernels say that a value is one that they cannot take: an index beyond its axis, a divisor of 0.
#[derive(Debug)]
struct Faults {
    /// One number of 32 bits on the GPU: the mark of the first fault, 0 before.
    word: Memory,
    /// What the next kernels are marked with.
    mark: AtomicU32,
    /// Held by the run that the GPU works for. Of one thread: what ends a run early may begin another.
    turn: ReentrantMutex<()>,
}

/// The right to run kernels, and the faults that they tell.
pub struct Turn<'a> {
    gpu: &'a Gpu,
    _held: ReentrantMutexGuard<'a, ()>,
}

/// The parameter with which a kernel says that a value is one that it cannot take; the twin of `Fault` in `device.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Fault {
    word: u64,
    mark: u32,
    padding: u32,
}

/// What a kind of GPU does.
pub(crate) trait Backend: Debug + Send + Sync {
    fn name(&self) -> &str;

    /// Bytes whose contents are arbitrary.
    fn allocate(&self, bytes: usize) -> Result<Memory>;

    /// # Safety
    /// `to` is the address of as many bytes.
    unsafe fn upload(&self, from: &[u8], to: u64) -> Result<()>;

    /// Waits for all work before.
    ///
    /// # Safety
    /// `from` is the address of as many bytes.
    unsafe fn download(&self, from: u64, to: &mut [u8]) -> Result<()>;

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

    /// The commands since the last call, of a backend that records them.
    fn take_commands(&self) -> Vec<Command> {
        Vec::new()
    }
}

/// Memory of a GPU, which is freed when nobody holds it any more and the work before is done.
pub struct Buffer {
    memory: Memory,
    bytes: usize,
    gpu: Gpu,
}

/// An address, and what frees what lies there.
pub(crate) struct Memory {
    pub address: u64,
    pub _owner: Box<dyn Any + Send + Sync>,
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
    /// NVIDIA's GPU of this number, through candle.
    ///
    /// # Errors
    /// [`Error::Unavailable`] in one sentence that says what to do.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: usize) -> Result<Gpu> {
        Gpu::of(crate::cuda::Cuda::open(ordinal)?)
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
        let word = backend.allocate(size_of::<u32>())?;
        // SAFETY: the memory has as many bytes.
        unsafe { backend.upload(&[0; size_of::<u32>()], word.address)? };
        Ok(Gpu { backend, faults: Arc::new(Faults::new(word)) })
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Marks the kernels from here on: what [`Turn::fault_found`] gives if one of them finds a fault. Not 0.
    pub fn mark(&self, mark: u32) {
        self.faults.mark.store(mark, Ordering::Relaxed);
    }

    /// The parameter with which a kernel tells of a fault.
    pub fn fault(&self) -> Fault {
        Fault { word: self.faults.word.address, mark: self.faults.mark.load(Ordering::Relaxed), padding: 0 }
    }

    /// Waits until no other thread's run has the GPU, and forgets the faults of runs before.
    ///
    /// # Errors
    /// What the device says.
    pub fn turn(&self) -> Result<Turn<'_>> {
        let turn = Turn { gpu: self, _held: self.faults.turn.lock() };
        turn.forget()?;
        Ok(turn)
    }
}

impl Faults {
    fn new(word: Memory) -> Faults {
        Faults { word, mark: AtomicU32::new(0), turn: ReentrantMutex::new(()) }
    }
}

impl Turn<'_> {
    fn forget(&self) -> Result<()> {
        // SAFETY: the memory has as many bytes.
        unsafe { self.gpu.backend.upload(&[0; size_of::<u32>()], self.gpu.faults.word.address) }
    }

    /// The mark of the first kernel of this turn that found a fault, if one did, when all work before is done.
    ///
    /// # Errors
    /// What the device says, also of work before.
    pub fn fault_found(&self) -> Result<Option<u32>> {
        let mut word = [0; size_of::<u32>()];
        // SAFETY: the memory has as many bytes.
        unsafe { self.gpu.backend.download(self.gpu.faults.word.address, &mut word)? };
        Ok(Some(u32::from_ne_bytes(word)).filter(|&mark| mark != 0))
    }
}

impl Gpu {
    /// Waits until all work is done that was given before.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn finish(&self) -> Result<()> {
        self.backend.finish()
    }

    /// Memory whose contents are arbitrary.
    ///
    /// # Errors
    /// There is not so much.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer> {
        Ok(Buffer { memory: self.backend.allocate(bytes)?, bytes, gpu: self.clone() })
    }

    /// Memory with these contents.
    ///
    /// # Errors
    /// There is not so much, or what the device says of the copy.
    pub fn uploaded(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: the buffer has as many bytes.
            unsafe { self.backend.upload(bytes, buffer.address())? };
        }
        Ok(buffer)
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

impl Buffer {
    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its bytes from `start` on, when all work before is done.
    ///
    /// # Errors
    /// There are fewer, or what the device says, also of work before.
    pub fn download(&self, start: usize, to: &mut [u8]) -> Result<()> {
        if start.checked_add(to.len()).is_none_or(|end| end > self.bytes) {
            return Err(Error::Failed(format!("{} bytes at {start} are beyond {}", to.len(), self.bytes)));
        }
        match to {
            [] => Ok(()),
            // SAFETY: the range lies in the buffer.
            to => unsafe { self.gpu.backend.download(self.memory.address + start as u64, to) },
        }
    }

    /// A copy of `bytes` bytes from `start` on.
    ///
    /// # Errors
    /// There are fewer, or there is no room for them.
    pub fn copied(&self, start: usize, bytes: usize) -> Result<Buffer> {
        if start.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Error::Failed(format!("{bytes} bytes at {start} are beyond {}", self.bytes)));
        }
        let copy = self.gpu.allocate(bytes)?;
        if bytes > 0 {
            // SAFETY: both ranges lie in their buffers, which are two.
            unsafe { self.gpu.backend.copy(self.memory.address + start as u64, copy.address(), bytes)? };
        }
        Ok(copy)
    }

    /// The GPU that it is of.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

impl Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

impl Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes on {}", self.bytes, self.gpu.name())
    }
}
