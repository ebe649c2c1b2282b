//! How a Rust program makes a session: a plan, and the options that differ from the defaults.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::custom::{CustomOp, CustomOps};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Memory;
use crate::session::{Session, Settings};
use crate::weights::Weights;

/// A plan and the options of a session: [`Session::builder`] and [`Session::from_bytes`] make it.
///
/// By default, the session runs on the CPU, with one thread for each
/// [usable processor](crate::session::usable_processors), without a limit of memory, and with all packed weights.
/// `examples/run.rs` is an example.
#[derive(Debug, Clone)]
#[must_use = "`build` makes the session"]
pub struct SessionBuilder<'a> {
    source: Source<'a>,
    device: &'a str,
    threads: Option<usize>,
    max_memory: Option<usize>,
    memory: Memory,
    weights: Option<Weights>,
    custom: CustomOps,
}

/// Where the plan is.
#[derive(Debug, Clone)]
enum Source<'a> {
    File(PathBuf),
    Bytes(&'a [u8]),
}

impl Session {
    /// A builder of a session for a plan file.
    pub fn builder<'a>(path: impl AsRef<Path>) -> SessionBuilder<'a> {
        SessionBuilder::of(Source::File(path.as_ref().to_path_buf()))
    }

    /// A builder of a session for the bytes of a plan file.
    pub fn from_bytes(bytes: &[u8]) -> SessionBuilder<'_> {
        SessionBuilder::of(Source::Bytes(bytes))
    }
}

impl<'a> SessionBuilder<'a> {
    fn of(source: Source<'a>) -> SessionBuilder<'a> {
        let (memory, custom) = (Memory::Full, CustomOps::new());
        SessionBuilder { source, device: "cpu", threads: None, max_memory: None, memory, weights: None, custom }
    }

    /// Runs the plan on this device: `"cpu"`, or `"cuda"` or `"cuda:1"` if the program registers a backend for GPUs.
    pub fn device(self, name: &'a str) -> Self {
        SessionBuilder { device: name, ..self }
    }

    /// Uses this number of threads in a run, from 1 to [`MAX_THREADS`](crate::session::MAX_THREADS).
    pub fn threads(self, count: usize) -> Self {
        SessionBuilder { threads: Some(count), ..self }
    }

    /// Limits the bytes that the values of a run hold at once, beside the constants. If the plan has a limit too, the
    /// lower one applies.
    pub fn max_memory(self, bytes: usize) -> Self {
        SessionBuilder { max_memory: Some(bytes), ..self }
    }

    /// Bounds the packed weights.
    pub fn memory(self, memory: Memory) -> Self {
        SessionBuilder { memory, ..self }
    }

    /// Takes these weights instead of those of the plan. The plan's other weights stay as they are.
    pub fn weights(self, weights: Weights) -> Self {
        SessionBuilder { weights: Some(weights), ..self }
    }

    /// Computes the steps of the custom operator `my.domain::Name` with this implementation, which may be a function.
    pub fn custom_op(mut self, name: impl Into<String>, op: impl CustomOp + 'static) -> Self {
        self.custom.insert(name, Arc::new(op));
        self
    }

    /// Reads, verifies and prepares the plan. The session needs the file no more.
    ///
    /// # Errors
    /// As [`Session::load_with`]; also [`ErrorKind::File`] if the file cannot be read.
    pub fn build(self) -> Result<Session> {
        let read = || match &self.source {
            Source::Bytes(bytes) => crate::read::read(bytes),
            Source::File(path) => {
                let unreadable = |error: std::io::Error| Error::Read {
                    kind: ErrorKind::File,
                    reason: format!("{} cannot be opened: {error}", path.display()),
                };
                crate::read::read_file(&File::open(path).map_err(unreadable)?, None)
            }
        };
        Session::prepare(read, &self.settings())
    }

    fn settings(&self) -> Settings<'_> {
        let SessionBuilder { device, threads, max_memory, memory, .. } = *self;
        Settings { device, threads, max_memory, memory, weights: self.weights.as_ref(), custom: Some(&self.custom) }
    }

    /// [`SessionBuilder::build`] with large constants that stay in the plan file, as [`Session::open`] does. Bytes are
    /// copied.
    ///
    /// # Errors
    /// As [`Session::open`] and [`SessionBuilder::build`].
    ///
    /// # Safety
    /// Nobody writes to the file or shortens it while the session lives.
    pub unsafe fn build_mapped(self) -> Result<Session> {
        match &self.source {
            Source::Bytes(_) => self.build(),
            // SAFETY: guaranteed by the caller.
            Source::File(path) => unsafe { Session::open_with(path, &self.settings()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Array, Value};

    const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/v1.plan");

    fn x() -> Value {
        Array::new(vec![0f32; 4], &[1, 4]).expect("four numbers").into()
    }

    #[test]
    fn sessions_of_files_and_bytes_compute_the_same() {
        let bytes = std::fs::read(PLAN).expect("it is there");
        let built = [
            Session::builder(PLAN).threads(1).build(),
            // SAFETY: nobody writes to the file.
            unsafe { Session::builder(PLAN).threads(1).memory(Memory::Low).build_mapped() },
            Session::from_bytes(&bytes).device("cpu").threads(1).max_memory(1 << 20).build(),
        ];
        for session in built {
            let outputs = session.expect("a sound plan").run_named([("x", x())]).expect("it runs");
            let y = outputs["y"].tensor().expect("a tensor");
            assert_eq!(*y.read::<f32>().expect("numbers"), [0.5, 0.5]);
        }
    }

    #[test]
    fn errors_have_kinds() {
        let of = |builder: SessionBuilder| builder.build().err().map(|error| error.kind());
        assert_eq!(of(Session::builder("absent.plan")), Some(ErrorKind::File));
        assert_eq!(of(Session::from_bytes(b"")), Some(ErrorKind::Damaged));
        assert_eq!(of(Session::builder(PLAN).threads(0)), Some(ErrorKind::Threads));
        assert_eq!(of(Session::builder(PLAN).device("tpu")), Some(ErrorKind::Device));
        let session = Session::builder(PLAN).threads(1).max_memory(1).build().expect("a sound plan");
        let error = session.run_named([("x", x())]).expect_err("it needs more memory");
        assert_eq!((error.kind(), error.place().is_some()), (ErrorKind::Memory, true));
    }

    #[test]
    fn names_must_be_those_of_the_inputs() {
        let session = Session::builder(PLAN).threads(1).build().expect("a sound plan");
        for (names, said) in [
            (vec![], "input \"x\": expected float32 [batch, 4], found nothing"),
            (vec!["z"], "input \"z\": expected one of [\"x\"], found another name"),
            (vec!["x", "x"], "input \"x\": expected one value, found two"),
        ] {
            let error = session.run_named(names.into_iter().map(|name| (name, x()))).expect_err(said);
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Input, said));
        }
    }
}
