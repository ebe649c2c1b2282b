//! Faults: invalid values that kernels detect.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};
use parking_lot::ReentrantMutex;

use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::mirror::Mirror;

/// The maximum number of nested runs of a session in one thread: a signal handler may run the session that it
/// interrupts.
pub(crate) const NESTED: usize = 8;
/// The bytes of all records.
pub(crate) const BYTES: usize = NESTED * size_of::<Record>();
/// The most bounds of a fault, as `RANK` in `device.cuh`.
const MAX_BOUNDS: usize = 8;

/// Where kernels report a value that they cannot process: an index out of bounds, a divisor of 0.
#[derive(Debug)]
pub(crate) struct Faults {
    /// A [`Record`] on the GPU for each of the nested runs.
    records: Memory,
    /// The mark of the kernels that are launched next.
    mark: AtomicU32,
    /// The number of the next launch that can report a fault. No run has so many launches that a number comes twice.
    launch: AtomicU32,
    /// A bit for each record, which is set if the record may hold anything but zeros.
    unclear: AtomicU32,
    /// The current number of nested runs.
    pub depth: AtomicUsize,
    /// The run that uses the GPU holds this lock.
    pub turn: ReentrantMutex<()>,
}

impl Faults {
    /// `records` is the memory of [`BYTES`] bytes.
    pub fn new(records: Memory) -> Faults {
        let [mark, launch, unclear] = [0, 0, u32::MAX].map(AtomicU32::new);
        Faults { records, mark, launch, unclear, depth: AtomicUsize::new(0), turn: ReentrantMutex::new(()) }
    }

    /// Sets the mark of the kernels that are launched from now on.
    pub fn set_mark(&self, mark: u32) {
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// The parameter of the next launch.
    ///
    /// # Errors
    /// There are more than 8 bounds, or one does not fit 32 bits.
    pub fn fault(&self, bounds: &[usize]) -> Result<Fault> {
        let record = self.address(self.depth.load(Ordering::Relaxed).saturating_sub(1));
        let (mark, launch) = (self.mark.load(Ordering::Relaxed), self.launch.fetch_add(1, Ordering::Relaxed));
        Ok(Fault { record, mark, launch, bounds: Bounds::new(bounds)?, padding: 0 })
    }

    /// Returns the address of a record.
    pub fn address(&self, record: usize) -> u64 {
        self.records.address() + (record * size_of::<Record>()) as u64
    }

    /// Whether a record certainly holds only zeros.
    pub fn is_clear(&self, record: usize) -> bool {
        self.unclear.load(Ordering::Relaxed) & 1 << record == 0
    }

    /// Stores whether a record certainly holds only zeros.
    pub fn set_clear(&self, record: usize, is_clear: bool) {
        match is_clear {
            true => self.unclear.fetch_and(!(1 << record), Ordering::Relaxed),
            false => self.unclear.fetch_or(1 << record, Ordering::Relaxed),
        };
    }
}

/// The parameter with which a kernel reports a value that it cannot take.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Fault in "device.cuh")]
pub struct Fault {
    pub(crate) record: u64,
    mark: u32,
    launch: u32,
    bounds: Bounds,
    padding: u32,
}

/// The sizes that a value does not fit.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Dims in "device.cuh")]
struct Bounds {
    rank: u32,
    size: [u32; MAX_BOUNDS],
}

#[cfg(test)]
impl Fault {
    /// Returns the record that a kernel writes to report this value.
    pub(crate) fn record_of(&self, report: &Report) -> Record {
        let launch = u64::from(self.mark) << 32 | u64::from(self.launch);
        let word = |half: u32| u64::from(!(report.place as u32)) << 32 | u64::from(half);
        let [low, high] = [report.value as u32, (report.value >> 32) as u32].map(word);
        Record { launch, low, high, bounds: self.bounds, padding: 0 }
    }
}

impl Bounds {
    fn new(bounds: &[usize]) -> Result<Bounds> {
        let refused = || Error::Failed(format!("kernels of the device cannot report the sizes {bounds:?}"));
        let mut all = Bounds { rank: bounds.len() as u32, size: [0; MAX_BOUNDS] };
        for (i, &bound) in bounds.iter().enumerate() {
            *all.size.get_mut(i).ok_or_else(refused)? = u32::try_from(bound).map_err(|_| refused())?;
        }
        Ok(all)
    }
}

/// The first invalid value that the kernels of a run report; zeros if there is none.
#[derive(Debug, Clone, Copy, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Record in "device.cuh")]
pub(crate) struct Record {
    launch: u64,
    low: u64,
    high: u64,
    bounds: Bounds,
    padding: u32,
}

/// A value that a kernel cannot take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The [mark](crate::Gpu::mark) of the kernel.
    pub mark: u32,
    /// The number of the element: the first one that the kernel cannot take.
    pub place: usize,
    /// The value that the kernel reports.
    pub value: i64,
    /// The sizes that the value does not fit, as the [launch](crate::Gpu::fault) gave them.
    pub bounds: Vec<usize>,
}

impl Report {
    /// Bound `i`; 0 where the launch gave none.
    pub fn bound(&self, i: usize) -> usize {
        self.bounds.get(i).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the value {} (element {}) is not allowed", self.value, self.place)
    }
}

impl Record {
    /// Returns the reported value, if there is one.
    pub fn report(&self) -> Option<Report> {
        let [low, high] = [self.low, self.high].map(|word| word & u64::from(u32::MAX));
        (self.launch != 0).then(|| Report {
            mark: (self.launch >> 32) as u32,
            place: !((self.low >> 32) as u32) as usize,
            value: (high << 32 | low) as i64,
            bounds: self.bounds.size.iter().take(self.bounds.rank as usize).map(|&size| size as usize).collect(),
        })
    }
}
