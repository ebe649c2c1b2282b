//! Opens plan files.

use std::path::Path;

use candle_plan::error::Result;
use candle_plan::kernel::Memory;
use candle_plan::session::Session;
use candle_plan::weights::Weights;

/// The device, the number of threads, the limit of memory, and the packing of constants.
pub type Settings<'a> = (&'a str, Option<usize>, Option<usize>, Memory);

/// Prepares a plan file, which nobody may change while the session lives: `compiler.load` states this.
///
/// # Errors
/// As [`Session::open_with`].
pub fn open(
    path: &Path,
    (device, threads, max_memory, memory): Settings,
    weights: Option<&Weights>,
) -> Result<Session> {
    // SAFETY: the users of the package promise that nobody changes the file.
    unsafe { Session::open_with(path, device, threads, max_memory, memory, weights) }
}
