//! How a Rust program makes a session: a plan, and the options that differ from the defaults.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Tensor;

use crate::candle_device::Chosen;
use crate::checksum::Checker;
use crate::custom::{CustomOp, CustomOps};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Memory;
use crate::plan::Plan;
use crate::session::{Session, Settings};
use crate::value::Value;
use crate::weights::Weights;

/// A plan and the options of a session: [`Session::builder`] and [`Session::from_bytes`] make it.
///
/// By default, the session runs on the CPU, with one thread for each processor that the process may use, without a limit
/// of memory, and with all packed weights.
///
/// ```
/// use candle_plan::{Error, ErrorKind, Session};
///
/// # fn main() -> Result<(), Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
/// let session = Session::builder(path).device("cpu").threads(2).max_memory(1 << 30).build()?;
/// assert_eq!((session.device(), session.threads()), ("cpu", 2));
///
/// let error = Session::from_bytes(b"PK\x03\x04 of an archive").build().map(drop).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotAPlan);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "`build` makes the session"]
pub struct SessionBuilder<'a> {
    source: Source<'a>,
    device: Chosen<'a>,
    threads: Option<usize>,
    max_memory: Option<usize>,
    memory: Memory,
    weights: Option<Weights>,
    custom: CustomOps,
    keep_constants: bool,
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
        let (threads, max_memory, weights, keep_constants) = (None, None, None, false);
        SessionBuilder { source, device: "cpu".into(), threads, max_memory, memory, weights, custom, keep_constants }
    }

    /// Runs the plan on this device: `"cpu"`, or `"cuda"` or `"cuda:1"` if the program registers a backend for GPUs.
    pub fn device(self, name: &'a str) -> Self {
        SessionBuilder { device: name.into(), ..self }
    }

    /// Runs the plan where a device of Candle is, instead of on a [named](SessionBuilder::device) device.
    ///
    /// On an NVIDIA GPU (the feature `candle-cuda`), the session has no stream of its own. Its work is in the device's
    /// stream, in one order with Candle's work, so no stream waits for another one. Several threads may use the session
    /// and the device at the same time. The end of a run waits for all work of the stream, also for that of other
    /// threads. The session keeps the stream alive.
    ///
    /// [`SessionBuilder::build`] refuses a device of `Device::new_cuda`, which has another stream in each thread: use
    /// `Device::new_cuda_with_stream`. It also refuses a device that is neither the CPU nor an NVIDIA GPU.
    ///
    /// ```
    /// use candle_core::Device;
    /// use candle_plan::Session;
    ///
    /// # fn main() -> Result<(), candle_plan::Error> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
    /// let device = Device::Cpu; // or Device::new_cuda_with_stream(0)?
    /// let session = Session::builder(path).candle_device(&device).build()?;
    /// assert_eq!(session.device(), "cpu");
    /// # Ok(())
    /// # }
    /// ```
    pub fn candle_device(self, device: &'a candle_core::Device) -> Self {
        SessionBuilder { device: Chosen::Candle(device), ..self }
    }

    /// Uses this number of threads in a run, from 1 to 1024.
    pub fn threads(self, count: usize) -> Self {
        SessionBuilder { threads: Some(count), ..self }
    }

    /// Limits the bytes that the values of a run hold at once, beside the constants. If the plan has a limit too, the
    /// lower one applies.
    pub fn max_memory(self, bytes: usize) -> Self {
        SessionBuilder { max_memory: Some(bytes), ..self }
    }

    /// Does without packed weights that are larger than the weights of the plan.
    pub fn low_memory(self) -> Self {
        SessionBuilder { memory: Memory::Low, ..self }
    }

    /// Keeps the elements of the constants that the session has packed, so that [`Session::constant`] returns them.
    pub fn keep_constants(self) -> Self {
        SessionBuilder { keep_constants: true, ..self }
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
    /// [`Error::Read`] and [`Error::Verify`] if the plan is not sound, if a custom operator has no implementation, or if
    /// the file cannot be read; [`Error::Device`] if the device is not available; [`Error::Threads`] if the session
    /// cannot have so many threads; [`Error::Weights`] if the weights do not fit the plan.
    pub fn build(self) -> Result<Session> {
        Session::prepare(|| self.read(), &self.settings(), None)
    }

    /// Reads the plan and its constants.
    fn read(&self) -> Result<(Plan, Vec<Value>)> {
        match &self.source {
            Source::Bytes(bytes) => crate::read::read(bytes),
            Source::File(path) => {
                let unreadable = |error: std::io::Error| Error::Read {
                    kind: ErrorKind::File,
                    reason: format!("{} cannot be opened: {error}", path.display()),
                };
                crate::read::read_file(&File::open(path).map_err(unreadable)?, None, Checker::Reader)
            }
        }
    }

    /// Reads the numeric constants of the plan as Candle tensors by name, without making a session. A constant without a
    /// name, or of a nested block, is not among them. A tensor's type is the [storage
    /// dtype](crate::DType::storage_dtype) of the constant. [`Session::constant`] returns a constant of a session.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`]; also if the host lacks memory.
    pub fn constants(&self) -> Result<BTreeMap<String, Tensor>> {
        let (plan, constants) = self.read()?;
        plan.arrays(&constants).into_iter().map(|(name, array)| Ok((name, array.into_candle()?))).collect()
    }

    fn settings(&self) -> Settings<'_> {
        let SessionBuilder { device, threads, max_memory, memory, keep_constants, .. } = *self;
        let (weights, custom) = (self.weights.as_ref(), Some(&self.custom));
        Settings { device, threads, max_memory, memory, weights, custom, keep_constants }
    }

    /// [`SessionBuilder::build`] with constants of 64 KiB and more that stay in the plan file. On the CPU, sessions of
    /// the same file share the constants and their packed copies, unless only some of them have `low_memory`. Bytes are copied.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`]; also if the file changes while it is read.
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
    use crate::value::Array;

    const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");

    fn x() -> Value {
        Array::new(vec![0f32; 4], &[1, 4]).expect("four numbers").into()
    }

    #[test]
    fn sessions_of_files_and_bytes_compute_the_same() {
        let bytes = std::fs::read(PLAN).expect("it is there");
        let built = [
            Session::builder(PLAN).threads(1).build(),
            // SAFETY: nobody writes to the file.
            unsafe { Session::builder(PLAN).threads(1).low_memory().build_mapped() },
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
