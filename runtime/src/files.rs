//! Opens plan files.

use std::path::Path;

use candle_plan::error::Result;
use candle_plan::kernel::Memory;
use candle_plan::session::Session;

/// Prepares a plan file, which nobody may change while the session lives: `compiler.load` states this.
///
/// # Errors
/// As [`Session::open`].
pub fn open(
    path: &Path,
    device: &str,
    threads: Option<usize>,
    max_memory: Option<usize>,
    memory: Memory,
) -> Result<Session> {
    // SAFETY: the users of the package promise that nobody changes the file.
    unsafe { Session::open(path, device, threads, max_memory, memory) }
}
