//! Memory-mapped files.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::time::SystemTime;

use memmap2::{Mmap, MmapOptions};

/// The bytes of a file, in memory that the operating system shares.
///
/// Nothing may write or shorten the file while the mapping exists. No program can enforce this, so it is a promise of
/// the code that makes a mapping: after a write, the bytes have changed, and after the file was shortened, the system
/// ends a process that reads the missing bytes. Replacing the file with another one of the same name does not affect
/// the mapping.
#[derive(Debug)]
pub struct Mapping {
    map: Mmap,
}

/// Runs `load` with the mapping of a whole file, or with `None` if the system cannot map it. Returns `None` if the size or
/// the modification time of the file changed meanwhile.
///
/// The function does not compare inodes. It knows the open file and no path, and an open file keeps its inode, even if
/// another file takes its name or nobody has a name for it any more. So `load` can only meet the bytes of one inode.
///
/// # Errors
/// The system does not report the size or the modification time.
///
/// # Safety
/// Nobody writes to the file or shortens it while the mapping exists. The function detects a change only while it loads.
pub unsafe fn while_unchanged<T>(file: &File, load: impl FnOnce(Option<Mapping>) -> T) -> io::Result<Option<T>> {
    let state = || -> io::Result<(u64, SystemTime)> {
        let metadata = file.metadata()?;
        Ok((metadata.len(), metadata.modified()?))
    };
    let before = state()?;
    // SAFETY: guaranteed by the caller.
    let loaded = load(unsafe { Mapping::new(file, before.0) }.ok());
    Ok((state()? == before).then_some(loaded))
}

impl Mapping {
    /// Maps the first `length` bytes of a file.
    ///
    /// # Errors
    /// The system cannot map the file, or the file is shorter.
    ///
    /// # Safety
    /// Nobody writes to the file or shortens it while the mapping exists.
    unsafe fn new(file: &File, length: u64) -> io::Result<Mapping> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping is read-only, and the caller guarantees that nothing changes the bytes.
        let map = unsafe { MmapOptions::new().len(length).map(file)? };
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Mapping { map })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Releases the memory of a range of bytes. The next read fetches them again.
    #[cfg(target_os = "linux")]
    pub fn release(&self, range: Range<usize>) {
        let start = range.start / WINDOW * WINDOW;
        let end = range.end.next_multiple_of(WINDOW).min(self.map.len());
        if start < end {
            // SAFETY: the pages belong to a shared mapping of a file that nothing changes, so they come back with the
            // same contents. The system may ignore the advice.
            let _ = unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
        }
    }

    /// Does nothing: only Linux supports the advice.
    #[cfg(not(target_os = "linux"))]
    pub fn release(&self, _range: Range<usize>) {}
}

/// The bytes that the system fetches at once on a page fault.
#[cfg(target_os = "linux")]
const WINDOW: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file that has been unlinked.
    fn file(bytes: &[u8], name: &str) -> File {
        let path = std::env::temp_dir().join(format!("candle-plan-mapping-{}-{name}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("a new file");
        file.write_all(bytes).expect("it is written");
        std::fs::remove_file(path).expect("it is there");
        file
    }

    #[test]
    fn bytes_come_back_after_their_memory_was_given_back() {
        let bytes: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        // SAFETY: nobody else knows the file.
        let mapping = unsafe { Mapping::new(&file(&bytes, "whole"), bytes.len() as u64) }.expect("it is mapped");
        for range in [0..bytes.len(), 5..6, 100_000..200_000, 299_999..300_000, 7..7] {
            assert!(mapping.bytes() == bytes);
            mapping.release(range);
        }
        assert!(mapping.bytes() == bytes);
    }

    #[test]
    fn a_file_that_is_replaced_while_it_is_loaded_keeps_its_bytes() {
        let path = std::env::temp_dir().join(format!("candle-plan-mapping-{}-replaced", std::process::id()));
        std::fs::write(&path, [1; 100]).expect("it is written");
        let (file, other) = (File::open(&path).expect("it is there"), path.with_extension("new"));
        let load = |mapping: Option<Mapping>| {
            std::fs::write(&other, [2; 100]).expect("it is written");
            std::fs::rename(&other, &path).expect("it takes the name");
            mapping.map(|mapping| mapping.bytes().to_vec())
        };
        // SAFETY: nobody writes to the file that is mapped.
        let loaded = unsafe { while_unchanged(&file, load) }.expect("it is open");
        assert_eq!(loaded.flatten(), Some(vec![1; 100]));
        assert_eq!(std::fs::read(&path).expect("it is there"), [2; 100]);
        std::fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_file_that_changes_while_it_is_loaded_is_refused() {
        let changing = file(&[1; 100], "changing");
        let length = |mapping: Option<Mapping>| mapping.map(|mapping| mapping.bytes().len());
        // SAFETY: nobody else knows the file, and nothing reads the mapping after the file is shortened.
        let [whole, shortened] = unsafe {
            let whole = while_unchanged(&changing, length).expect("it is open");
            let shortened = while_unchanged(&changing, |_| changing.set_len(99)).expect("it is open");
            [whole.flatten() == Some(100), shortened.is_none()]
        };
        assert!(whole && shortened);
    }
}
