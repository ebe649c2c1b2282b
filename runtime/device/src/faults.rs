//! The faults that kernels find.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};
use parking_lot::ReentrantMutex;

use crate::memory::Memory;

/// How many runs of a session may begin inside of one another, in one thread: a signal's handler may run the session that it
/// interrupts.
pub(crate) const NESTED: usize = 8;
/// The bytes of a word.
pub(crate) const WORD: usize = size_of::<u32>();
/// The bytes of all words.
pub(crate) const BYTES: usize = NESTED * WORD;

/// Where kernels say that a value is one that they cannot take: an index beyond its axis, a divisor of 0.
#[derive(Debug)]
pub(crate) struct Faults {
    /// A number of 32 bits on the GPU for each of the nested runs: the mark of the first fault, 0 before.
    words: Memory,
    /// What the next kernels are marked with.
    mark: AtomicU32,
    /// A bit for each word that may hold something else than 0.
    unclear: AtomicU32,
    /// How many runs are nested now.
    pub depth: AtomicUsize,
    /// Held by the run that the GPU works for.
    pub turn: ReentrantMutex<()>,
}

impl Faults {
    /// `words` is the memory of [`BYTES`] bytes.
    pub fn new(words: Memory) -> Faults {
        let (mark, unclear, depth) = (AtomicU32::new(0), AtomicU32::new(u32::MAX), AtomicUsize::new(0));
        Faults { words, mark, unclear, depth, turn: ReentrantMutex::new(()) }
    }

    /// Marks the kernels from here on.
    pub fn set_mark(&self, mark: u32) {
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// The parameter of the kernels from here on.
    pub fn fault(&self) -> Fault {
        let word = self.depth.load(Ordering::Relaxed).saturating_sub(1);
        Fault { word: self.address(word), mark: self.mark.load(Ordering::Relaxed), padding: 0 }
    }

    /// Where a word lies.
    pub fn address(&self, word: usize) -> u64 {
        self.words.address + (word * WORD) as u64
    }

    /// Whether a word is 0 for sure.
    pub fn is_clear(&self, word: usize) -> bool {
        self.unclear.load(Ordering::Relaxed) & 1 << word == 0
    }

    /// Keeps whether a word is 0 for sure.
    pub fn set_clear(&self, word: usize, is_clear: bool) {
        match is_clear {
            true => self.unclear.fetch_and(!(1 << word), Ordering::Relaxed),
            false => self.unclear.fetch_or(1 << word, Ordering::Relaxed),
        };
    }
}

/// The parameter with which a kernel says that a value is one that it cannot take; the twin of `Fault` in `device.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Fault {
    pub(crate) word: u64,
    pub(crate) mark: u32,
    padding: u32,
}
