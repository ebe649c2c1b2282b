//! Opens plan files.

use std::path::Path;

use candle_plan::internal::Settings;
use candle_plan::{Result, Session};

/// Prepares a plan file, which nobody may change while the session lives: `compiler.load` states this.
///
/// # Errors
/// As [`Session::open_with`].
pub fn open(path: &Path, settings: &Settings) -> Result<Session> {
    // SAFETY: the users of the package promise that nobody changes the file.
    unsafe { Session::open_with(path, settings) }
}
