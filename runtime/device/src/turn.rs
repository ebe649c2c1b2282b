//! Whose run a GPU works for, and the faults of that run.

use std::sync::atomic::Ordering;

use parking_lot::ReentrantMutexGuard;

use crate::error::{Error, Result};
use crate::faults::{Fault, NESTED, WORD};
use crate::gpu::Gpu;
use crate::memory::Download;

/// The right to run kernels, and the faults that they tell.
pub struct Turn<'a> {
    gpu: &'a Gpu,
    word: usize,
    _held: ReentrantMutexGuard<'a, ()>,
}

impl Gpu {
    /// Marks the kernels from here on: what [`Turn::finish`] gives if one of them finds a fault. Not 0.
    pub fn mark(&self, mark: u32) {
        self.faults.set_mark(mark);
    }

    /// The parameter with which a kernel tells of a fault.
    pub fn fault(&self) -> Fault {
        self.faults.fault()
    }

    /// Waits until no other thread's run has the GPU.
    ///
    /// # Errors
    /// The process was forked, what the device says, or this thread runs the session already, again and again.
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
    /// Makes the word 0 where it may be something else.
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

    /// Waits for all work before and copies `parts` to the host. Gives the mark of the first kernel of this turn that found
    /// a fault, if one did.
    ///
    /// # Errors
    /// What the device says, also of work before.
    pub fn finish(&self, parts: Vec<Download>) -> Result<Option<u32>> {
        let (mut word, faults) = ([0; WORD], &self.gpu.faults);
        let mut parts: Vec<Download<'_>> = parts; // as long as the word lives
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

    /// Writes the mark as a kernel that finds a fault does.
    fn tell(gpu: &Gpu) {
        let Fault { word, mark, .. } = gpu.fault();
        // SAFETY: the word is there.
        unsafe { gpu.backend.upload(&mark.to_ne_bytes(), word) }.expect("it is copied");
    }

    #[test]
    fn a_nested_run_keeps_the_fault_of_the_outer_one() {
        let gpu = Gpu::emulator().expect("enough memory");
        gpu.mark(7);
        let outer = gpu.turn().expect("the first");
        tell(&gpu);
        let inner = gpu.turn().expect("nested");
        assert_eq!(inner.finish(Vec::new()), Ok(None));
        gpu.mark(8);
        tell(&gpu);
        assert_eq!(inner.finish(Vec::new()), Ok(Some(8)));
        drop(inner);
        assert_eq!(outer.finish(Vec::new()), Ok(Some(7)));
        drop(outer);
        // The next turns do not see them.
        let turns: Vec<Turn> = (0..NESTED).map(|_| gpu.turn().expect("as many")).collect();
        assert!(turns.iter().all(|turn| turn.finish(Vec::new()) == Ok(None)));
        assert!(gpu.turn().is_err());
    }
}
