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
    pub mark: AtomicU32,
    /// A bit for each word that may hold something else than 0.
    pub unclear: AtomicU32,
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

    /// Where a word lies.
    pub fn address(&self, word: usize) -> u64 {
        self.words.address + (word * WORD) as u64
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
    pub(crate) padding: u32,
}
