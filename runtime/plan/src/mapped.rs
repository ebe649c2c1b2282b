//! Sessions whose large constants stay in the mapped plan file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use candle_plan_memory::mapping::while_unchanged;

use crate::checksum::{check_while, Checker, FromStart, LARGE};
use crate::error::{Error, ErrorKind, Result};
use crate::executable::Executable;
use crate::kernel::Memory;
use crate::session::{usable_processors, Session, Settings};
use crate::shared::{self, Key};

#[doc(hidden)]
impl Session {
    /// [`Session::load`] of a plan file. Large constants stay in the file. Another file may take its name, for example
    /// when the model is compiled again. All sessions with the same file, device and `memory` share the
    /// constants; on the CPU, also their packed copies. While a large file is loaded, one more thread computes its checksum.
    ///
    /// # Errors
    /// As [`Session::load`], and [`Error::Read`] if the file cannot be opened, or changes while it is loaded.
    ///
    /// # Safety
    /// Nobody writes to the file or shortens it while the session lives.
    pub unsafe fn open(
        path: &Path,
        device: &str,
        threads: Option<usize>,
        max_memory: Option<usize>,
        memory: Memory,
    ) -> Result<Session> {
        // SAFETY: guaranteed by the caller.
        unsafe { Session::open_with(path, &Settings::of(device, threads, max_memory, memory)) }
    }

    /// [`Session::open`] with these settings. With weights, custom operators or kept
    /// constants, the session shares no constants.
    ///
    /// # Errors
    /// As [`Session::open`] and [`Session::load_with`].
    ///
    /// # Safety
    /// As [`Session::open`].
    pub unsafe fn open_with(path: &Path, settings: &Settings) -> Result<Session> {
        let refused = |reason: String| Error::Read { kind: ErrorKind::File, reason };
        let unreadable = |error: std::io::Error| refused(format!("it cannot be opened: {error}"));
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let shares = settings.weights.is_none() && !settings.keep_constants;
        let device = settings.device.name().filter(|_| shares);
        let key = device.and_then(|device| Key::of(&metadata, settings.memory, device));
        let found = key.as_ref().and_then(shared::find);
        if let Some(prepared) = found.clone().filter(|_| settings.device.is_cpu()) {
            let executable = Arc::new(Executable::limited(prepared, settings.max_memory));
            return Session::sharing(executable, settings.device.open()?, settings.threads);
        }
        let check = |source: FromStart<'_>| crate::read::check(source, metadata.len());
        let load = |mapping, checker| {
            Session::prepare(|| crate::read::read_file(&file, mapping, checker), settings, found.as_deref())
        };
        let is_parallel = cfg!(unix) && metadata.len() >= LARGE && usable_processors() > 1;
        let load = |mapping| match is_parallel {
            true => check_while(&file, check, |checker| load(mapping, checker)),
            false => load(mapping, Checker::Reader),
        };
        // SAFETY: guaranteed by the caller. The session holds the mapping.
        let loaded = unsafe { while_unchanged(&file, load) }.map_err(unreadable)?;
        let changed = || refused("the file changed while it was loaded: load it again".to_string());
        let session = loaded.ok_or_else(changed)??;
        match key {
            Some(key) => session.shared(key),
            None => Ok(session),
        }
    }
}

/// Maps a file that has been deleted, so that nobody else can change it.
#[cfg(test)]
pub(crate) fn mapping_of_deleted(file: &File) -> candle_plan_memory::mapping::Mapping {
    // SAFETY: the test writes no more to the file.
    let mapping = unsafe { while_unchanged(file, |mapping| mapping) };
    mapping.expect("it is open").flatten().expect("it is mapped")
}
