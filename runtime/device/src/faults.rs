//! Faults: invalid values that kernels detect.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};
use parking_lot::ReentrantMutex;

use crate::memory::Memory;

/// The maximum number of nested runs of a session in one thread: a signal handler may run the session that it
/// interrupts.
pub(crate) const NESTED: usize = 8;
/// The size of a word in bytes.
pub(crate) const WORD: usize = size_of::<u32>();
/// The size of all words in bytes.
pub(crate) const BYTES: usize = NESTED * WORD;

/// Where kernels report a value that they cannot process: an index out of bounds, a divisor of 0.
#[derive(Debug)]
pub(crate) struct Faults {
    /// One 32-bit word on the GPU per nested run: the mark of the first fault, or 0.
    words: Memory,
    /// The mark of the kernels that are launched next.
    mark: AtomicU32,
    /// One bit per word, which is set if the word may not be 0.
    unclear: AtomicU32,
    /// The current number of nested runs.
    pub depth: AtomicUsize,
    /// Held by the run that uses the GPU.
    pub turn: ReentrantMutex<()>,
}

impl Faults {
    /// `words` has [`BYTES`] bytes.
    pub fn new(words: Memory) -> Faults {
        let (mark, unclear, depth) = (AtomicU32::new(0), AtomicU32::new(u32::MAX), AtomicUsize::new(0));
        Faults { words, mark, unclear, depth, turn: ReentrantMutex::new(()) }
    }

    /// Sets the mark of the kernels that are launched from now on.
    pub fn set_mark(&self, mark: u32) {
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// Returns the parameter for the kernels that are launched from now on.
    pub fn fault(&self) -> Fault {
        let word = self.depth.load(Ordering::Relaxed).saturating_sub(1);
        Fault { word: self.address(word), mark: self.mark.load(Ordering::Relaxed), padding: 0 }
    }

    /// Returns the address of a word.
    pub fn address(&self, word: usize) -> u64 {
        self.words.address + (word * WORD) as u64
    }

    /// Whether a word is known to be 0.
    pub fn is_clear(&self, word: usize) -> bool {
        self.unclear.load(Ordering::Relaxed) & 1 << word == 0
    }

    /// Records whether a word is known to be 0.
    pub fn set_clear(&self, word: usize, is_clear: bool) {
        match is_clear {
            true => self.unclear.fetch_and(!(1 << word), Ordering::Relaxed),
            false => self.unclear.fetch_or(1 << word, Ordering::Relaxed),
        };
    }
}

/// The parameter with which a kernel reports an invalid value. Must match `Fault` in `device.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Fault {
    pub(crate) word: u64,
    pub(crate) mark: u32,
    padding: u32,
}
