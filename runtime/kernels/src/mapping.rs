//! Files that are read where the system holds them.

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::{Mmap, MmapOptions};

/// The bytes of a file as they were when it was opened, in memory that the process shares with the system.
///
/// They stay as long as nobody shortens the file or writes into it, which the caller of [`Mapping::of_unchanging`] promises. A
/// file that is replaced by another of its name stays as it is.
#[derive(Debug)]
pub struct Mapping {
    map: Mmap,
}

impl Mapping {
    /// The first `length` bytes of a file that nobody changes while the mapping lives.
    ///
    /// # Errors
    /// The system does not map it, or the file has fewer bytes.
    pub fn of_unchanging(file: &File, length: usize) -> io::Result<Mapping> {
        // SAFETY: the bytes are only read, and the caller promises that nobody changes them.
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

    /// Gives the memory of some bytes back: they are fetched again where somebody reads them.
    #[cfg(target_os = "linux")]
    pub fn release(&self, range: Range<usize>) {
        let start = range.start / WINDOW * WINDOW;
        let end = range.end.next_multiple_of(WINDOW).min(self.map.len());
        if start < end {
            // SAFETY: the pages are those of a shared mapping of a file that nobody changes: they come back as they were.
            // Advice that is not taken changes nothing.
            let _ = unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
        }
    }

    /// Only Linux can be told.
    #[cfg(not(target_os = "linux"))]
    pub fn release(&self, _range: Range<usize>) {}
}

/// What the system fetches at once where one byte of it is read.
#[cfg(target_os = "linux")]
const WINDOW: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file that has no name any more.
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
