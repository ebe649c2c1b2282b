//! Turns: which run uses the GPU, and the faults of that run.

use std::sync::atomic::Ordering;

use bytemuck::Zeroable;
use parking_lot::ReentrantMutexGuard;

use crate::error::{Error, Result};
use crate::faults::{Fault, Record, Report, NESTED};
use crate::gpu::Gpu;
use crate::memory::Download;

/// The exclusive right to run kernels, and access to the faults that they report.
pub struct Turn<'a> {
    gpu: &'a Gpu,
    record: usize,
    _held: ReentrantMutexGuard<'a, ()>,
}

impl Gpu {
    /// Sets the mark of the kernels that are launched from now on, which [`Turn::finish`] returns if one of them
    /// reports a fault. Must not be 0.
    pub fn mark(&self, mark: u32) {
        self.faults.set_mark(mark);
    }

    /// Returns the parameter with which the next launch can report an invalid value. `bounds` are the sizes that the
    /// value must fit.
    ///
    /// # Errors
    /// There are more than 8 sizes, or one does not fit 32 bits.
    pub fn fault(&self, bounds: &[usize]) -> Result<Fault> {
        self.faults.fault(bounds)
    }

    /// Waits until no other thread's run uses the GPU.
    ///
    /// # Errors
    /// The process was forked, the device reports an error, or this thread already runs the session more often than is
    /// supported.
    pub fn turn(&self) -> Result<Turn<'_>> {
        self.backend.check_process()?;
        let held = self.faults.turn.lock();
        let record = self.faults.depth.load(Ordering::Relaxed);
        if record == NESTED {
            return Err(Error::Failed(format!("no more than {NESTED} runs of a session can be nested in a thread")));
        }
        self.faults.depth.store(record + 1, Ordering::Relaxed);
        let turn = Turn { gpu: self, record, _held: held };
        if record == 0 {
            self.backend.begin_run();
        }
        turn.clear()?;
        Ok(turn)
    }
}

impl Turn<'_> {
    /// Sets the record to zeros, unless it certainly holds only zeros.
    fn clear(&self) -> Result<()> {
        let faults = &self.gpu.faults;
        if faults.is_clear(self.record) {
            return Ok(());
        }
        let zeros = Record::zeroed();
        // SAFETY: the memory has as many bytes.
        unsafe { self.gpu.backend.upload(bytemuck::bytes_of(&zeros), faults.address(self.record))? };
        faults.set_clear(self.record, true);
        Ok(())
    }

    /// Waits for all queued work, and copies `parts` to the host. Returns the first invalid value that a kernel of this
    /// turn reported, if there is one.
    ///
    /// # Errors
    /// The device reports an error, perhaps of earlier work.
    pub fn finish(&self, parts: Vec<Download>) -> Result<Option<Report>> {
        let (mut record, faults) = (Record::zeroed(), &self.gpu.faults);
        let mut parts: Vec<Download<'_>> = parts; // as long as the record lives
        let bytes = bytemuck::bytes_of_mut(&mut record);
        // SAFETY: the memory of the records has as many bytes there.
        parts.push(unsafe { Download::new(self.gpu.name(), faults.address(self.record), bytes) });
        faults.set_clear(self.record, false);
        self.gpu.download(parts)?;
        let report = record.report();
        faults.set_clear(self.record, report.is_none());
        Ok(report)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.record == 0 {
            self.gpu.backend.end_run();
        }
        self.gpu.faults.depth.store(self.record, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;

    /// Writes the record that a kernel writes when it finds a fault.
    fn tell(gpu: &Gpu, report: &Report) {
        let fault = gpu.fault(&report.bounds).expect("few bounds");
        // SAFETY: the record is there.
        unsafe { gpu.backend.upload(bytemuck::bytes_of(&fault.record_of(report)), fault.record) }
            .expect("it is copied");
    }

    #[test]
    fn a_nested_run_keeps_the_fault_of_the_outer_one() {
        let gpu = host();
        let reports = [
            Report { mark: 7, place: 0, value: i64::MIN + 1, bounds: vec![3, 0, 5] },
            Report { mark: 8, place: 1 << 31, value: 1 << 31, bounds: Vec::new() },
        ];
        gpu.mark(7);
        let outer = gpu.turn().expect("the first");
        tell(&gpu, &reports[0]);
        let inner = gpu.turn().expect("nested");
        assert_eq!(inner.finish(Vec::new()), Ok(None));
        gpu.mark(8);
        tell(&gpu, &reports[1]);
        assert_eq!(inner.finish(Vec::new()), Ok(Some(reports[1].clone())));
        drop(inner);
        assert_eq!(outer.finish(Vec::new()), Ok(Some(reports[0].clone())));
        drop(outer);
        // Later turns do not see these faults.
        let turns: Vec<Turn> = (0..NESTED).map(|_| gpu.turn().expect("as many")).collect();
        assert!(turns.iter().all(|turn| turn.finish(Vec::new()) == Ok(None)));
        assert!(gpu.turn().is_err());
    }
}
