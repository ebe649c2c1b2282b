//! The checksum of a plan file: SHA-256 of the plan's JSON and of the tensors' bytes.
//!
//! It takes about a third of the time to load a plan, and depends on nothing else. For a large file, another thread
//! therefore computes it while the plan is prepared.

use std::fs::File;
use std::io::Read;
use std::thread;

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};

/// The number of bytes that a check reads at once.
const CHUNK: usize = 128 << 10;
/// The bytes of a file whose checksum takes as long as the start of several threads.
pub(crate) const LARGE: u64 = 256 << 10;

/// The checksum of the bytes read so far.
pub(crate) struct Checksum(Sha256);

impl Checksum {
    /// The checksum of a plan's JSON.
    pub fn of(plan: &str) -> Checksum {
        Checksum(Sha256::new_with_prefix(plan))
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Reads and adds the next `size` bytes.
    ///
    /// # Errors
    /// [`Error::Read`] if they cannot be read.
    pub fn add_next(&mut self, source: &mut impl Read, size: usize) -> Result<()> {
        let mut chunk = vec![0; CHUNK.min(size)];
        for at in (0..size).step_by(CHUNK) {
            let chunk = &mut chunk[..CHUNK.min(size - at)];
            source.read_exact(chunk).map_err(unreadable)?;
            self.add(chunk);
        }
        Ok(())
    }

    /// Compares the checksum with the one that the file states, in hexadecimal.
    ///
    /// # Errors
    /// [`Error::Read`] if they differ.
    pub fn check(self, stated: &str) -> Result<()> {
        let found: String = self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if *stated == found {
            return Ok(());
        }
        let reason = "its checksum does not match: the file was damaged or edited; compile it again".into();
        Err(Error::Read { kind: ErrorKind::Damaged, reason })
    }
}

/// Who computes the checksum of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checker {
    /// The reader of the plan.
    Reader,
    /// Another thread.
    Thread,
}

/// Runs `load`, and meanwhile `check` on the bytes of the file, on another thread. An error of `check` comes first: any
/// other error may be a result of damage. If the system starts no thread, the reader computes the checksum.
///
/// # Errors
/// Those of `check` and `load`.
pub(crate) fn check_while<T>(
    file: &File,
    check: impl FnOnce(FromStart) -> Result<()> + Send,
    load: impl FnOnce(Checker) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let checked = || check(FromStart { file, offset: 0 });
        match thread::Builder::new().name("checksum".into()).spawn_scoped(scope, checked) {
            Ok(thread) => {
                let loaded = load(Checker::Thread);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                loaded
            }
            Err(_) => load(Checker::Reader),
        }
    })
}

/// Reads a file from its start, beside other readers of the same open file.
pub(crate) struct FromStart<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FromStart<'_> {
    #[cfg(unix)]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }

    /// Other systems have no such reader, and no thread that needs one.
    #[cfg(not(unix))]
    fn read(&mut self, _buffer: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// The error for bytes that cannot be read.
pub(crate) fn unreadable(error: std::io::Error) -> Error {
    Error::Read { kind: ErrorKind::File, reason: format!("it cannot be read to its end: {error}") }
}
