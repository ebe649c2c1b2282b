//! Prepared plan files that several sessions share. Sessions on the CPU share the whole prepared plan. Those on a GPU share only
//! the copies of constants, because each has a stream of its own.

use std::fs::Metadata;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::kernel::Memory;
use crate::prepare::PreparedPlan;

/// The prepared plans of the files that sessions of this process have opened. Those without a session are gone.
static OPENED: Mutex<Vec<(Key, Weak<PreparedPlan>)>> = Mutex::new(Vec::new());

/// The state of a plan file and the settings that change what a session prepares. Prepared plans of equal keys are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    file: FileState,
    memory: Memory,
    /// The name of the device.
    device: String,
}

/// The state of a file at one time. Two files with equal states have the same bytes: a prepared plan keeps its file open if it
/// maps it, and then no other file gets the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    /// The device that has the file.
    device: u64,
    /// The number of the file on the device.
    number: u64,
    /// The size in bytes.
    bytes: u64,
    /// When the bytes last changed, in nanoseconds.
    modified: i128,
    /// When the bytes or other data of the file last changed, in nanoseconds.
    changed: i128,
}

impl FileState {
    /// The state of an open file; `None` if the system does not identify files.
    #[cfg(unix)]
    fn of(file: &Metadata) -> Option<FileState> {
        use std::os::unix::fs::MetadataExt;

        let time = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        Some(FileState {
            device: file.dev(),
            number: file.ino(),
            bytes: file.size(),
            modified: time(file.mtime(), file.mtime_nsec()),
            changed: time(file.ctime(), file.ctime_nsec()),
        })
    }

    /// No state.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Option<FileState> {
        None
    }
}

impl Key {
    /// The key of a plan file that a session on a device opens; `None` if the system does not identify files.
    pub fn of(file: &Metadata, memory: Memory, device: &str) -> Option<Key> {
        Some(Key { file: FileState::of(file)?, memory, device: device.to_string() })
    }
}

/// Returns the prepared plan of a key, if a session holds it.
pub(crate) fn find(key: &Key) -> Option<Arc<PreparedPlan>> {
    OPENED.lock().iter().filter(|(other, _)| other == key).find_map(|(_, held)| held.upgrade())
}

/// Keeps a prepared plan for later sessions, as long as a session holds it. Returns the plan of a session that was faster, if
/// there is one.
pub(crate) fn keep(key: Key, prepared: Arc<PreparedPlan>) -> Arc<PreparedPlan> {
    let mut opened = OPENED.lock();
    opened.retain(|(_, held)| held.strong_count() > 0);
    if let Some(faster) = opened.iter().filter(|(other, _)| *other == key).find_map(|(_, held)| held.upgrade()) {
        return faster;
    }
    opened.push((key, Arc::downgrade(&prepared)));
    prepared
}

/// Lets later sessions on the same GPU find a prepared plan as long as its session lives, also if there is another plan of this
/// key. The GPU has finished the copies of its constants.
pub(crate) fn add(key: Key, prepared: &Arc<PreparedPlan>) {
    let mut opened = OPENED.lock();
    opened.retain(|(_, held)| held.strong_count() > 0);
    opened.push((key, Arc::downgrade(prepared)));
}
