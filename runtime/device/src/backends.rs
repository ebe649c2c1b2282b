//! The backends of a program, by name.

use parking_lot::Mutex;

use crate::error::Result;
use crate::gpu::Gpu;

/// Opens GPU number `ordinal` of a backend.
pub type Open = fn(ordinal: usize) -> Result<Gpu>;

static BACKENDS: Mutex<Vec<(&str, Open)>> = Mutex::new(Vec::new());

/// Makes a backend available to the program, under a name such as `cuda`. The crates of backends call it.
pub fn register(name: &'static str, open: Open) {
    let mut backends = BACKENDS.lock();
    backends.retain(|(other, _)| *other != name);
    backends.push((name, open));
}

/// Opens GPU number `ordinal` of the backend of this name; `None` if the program has no such backend.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable): the reason, and a remedy.
pub fn open(name: &str, ordinal: usize) -> Option<Result<Gpu>> {
    let found = BACKENDS.lock().iter().find(|(other, _)| *other == name).map(|(_, open)| *open);
    found.map(|open| open(ordinal))
}

/// The names of the backends that the program has registered.
pub fn backends() -> Vec<&'static str> {
    BACKENDS.lock().iter().map(|(name, _)| *name).collect()
}
