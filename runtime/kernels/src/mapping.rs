//! Memory-mapped files.

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::{Mmap, MmapOptions};

/// The bytes of a file at the time it was opened, in memory that the operating system shares.
///
/// The bytes stay valid as long as nothing truncates or writes the file, which the caller of [`Mapping::of_unchanging`]
/// guarantees. Replacing the file with another one of the same name does not affect the mapping.
#[derive(Debug)]
pub struct Mapping {
    map: Mmap,
}

impl Mapping {
    /// Maps the first `length` bytes of a file. The caller guarantees that nothing changes the file while the mapping
    /// exists.
    ///
    /// # Errors
    /// The system cannot map the file, or the file is shorter.
    pub fn of_unchanging(file: &File, length: usize) -> io::Result<Mapping> {
        // SAFETY: the mapping is read-only, and the caller guarantees that nothing changes the bytes.
        let map = unsafe { MmapOptions::new().len(length).map(file)? };
        match file.metadata()?.len() >= length as u64 {
            true => Ok(Mapping { map }),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
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
        let mapping = Mapping::of_unchanging(&file(&bytes, "whole"), bytes.len()).expect("it is mapped");
        for range in [0..bytes.len(), 5..6, 100_000..200_000, 299_999..300_000, 7..7] {
            assert!(mapping.bytes() == bytes);
            mapping.release(range);
        }
        assert!(mapping.bytes() == bytes);
        assert!(Mapping::of_unchanging(&file(&bytes, "part"), 1000).expect("a part").bytes() == &bytes[..1000]);
    }

    #[test]
    fn a_file_that_is_shorter_is_refused() {
        let short = Mapping::of_unchanging(&file(&[1; 1000], "short"), 1001);
        assert_eq!(short.expect_err("there are 1000").kind(), io::ErrorKind::UnexpectedEof);
    }
}
