//! Turns: which run uses the GPU, and the faults of that run.

use std::sync::atomic::Ordering;

use parking_lot::ReentrantMutexGuard;

use crate::error::{Error, Result};
use crate::faults::{Fault, NESTED, WORD};
use crate::gpu::Gpu;
use crate::memory::Download;

/// The exclusive right to run kernels, and access to the faults that they report.
pub struct Turn<'a> {
    gpu: &'a Gpu,
    word: usize,
    _held: ReentrantMutexGuard<'a, ()>,
}

impl Gpu {
    /// Sets the mark of the kernels that are launched from now on, which [`Turn::finish`] returns if one of them
    /// reports a fault. Must not be 0.
    pub fn mark(&self, mark: u32) {
        self.faults.set_mark(mark);
    }

    /// Returns the parameter with which a kernel reports a fault.
    pub fn fault(&self) -> Fault {
        self.faults.fault()
    }

    /// Waits until no other thread's run uses the GPU.
    ///
    /// # Errors
    /// The process was forked, the device reports an error, or this thread already runs the session more often than is
    /// supported.
    pub fn turn(&self) -> Result<Turn<'_>> {
        self.backend.check_process()?;
        let held = self.faults.turn.lock();
        let word = self.faults.depth.load(Ordering::Relaxed);
        if word == NESTED {
            return Err(Error::Failed(format!("no more than {NESTED} runs of a session can be nested in a thread")));
        }
        self.faults.depth.store(word + 1, Ordering::Relaxed);
        let turn = Turn { gpu: self, word, _held: held };
        turn.clear()?;
        Ok(turn)
    }
}

impl Turn<'_> {
    /// Sets the word to 0 if it may have another value.
    fn clear(&self) -> Result<()> {
        let faults = &self.gpu.faults;
        if faults.is_clear(self.word) {
            return Ok(());
        }
        // SAFETY: the memory has as many bytes.
        unsafe { self.gpu.backend.upload(&[0; WORD], faults.address(self.word))? };
        faults.set_clear(self.word, true);
        Ok(())
    }

    /// Waits for all queued work, and copies `parts` to the host. Returns the mark of the first kernel in this turn
    /// that reported a fault, if any.
    ///
    /// # Errors
    /// A copy or earlier work failed.
    pub fn finish(&self, parts: Vec<Download>) -> Result<Option<u32>> {
        let (mut word, faults) = ([0; WORD], &self.gpu.faults);
        let mut parts: Vec<Download<'_>> = parts; // shortens the lifetime to that of `word`
        parts.push(Download { from: faults.address(self.word), to: &mut word });
        faults.set_clear(self.word, false);
        self.gpu.download(parts)?;
        let mark = u32::from_ne_bytes(word);
        faults.set_clear(self.word, mark == 0);
        Ok(Some(mark).filter(|&mark| mark != 0))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gpu.faults.depth.store(self.word, Ordering::Relaxed);
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;

    /// Writes the mark like a kernel that detects a fault.
    fn report(gpu: &Gpu) {
        let Fault { word, mark, .. } = gpu.fault();
        // SAFETY: the word exists.
        unsafe { gpu.backend.upload(&mark.to_ne_bytes(), word) }.expect("it is copied");
    }

    #[test]
    fn a_nested_run_keeps_the_fault_of_the_outer_one() {
        let gpu = Gpu::emulator().expect("enough memory");
        gpu.mark(7);
        let outer = gpu.turn().expect("the first");
        report(&gpu);
        let inner = gpu.turn().expect("nested");
        assert_eq!(inner.finish(Vec::new()), Ok(None));
        gpu.mark(8);
        report(&gpu);
        assert_eq!(inner.finish(Vec::new()), Ok(Some(8)));
        drop(inner);
        assert_eq!(outer.finish(Vec::new()), Ok(Some(7)));
        drop(outer);
        // Later turns do not see these faults.
        let turns: Vec<Turn> = (0..NESTED).map(|_| gpu.turn().expect("as many")).collect();
        assert!(turns.iter().all(|turn| turn.finish(Vec::new()) == Ok(None)));
        assert!(gpu.turn().is_err());
    }
}
