//! Sessions: loaded plans, with which a Rust program runs a model.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use candle_plan_device::Gpu;
use candle_plan_kernels::isa::Isa;
use candle_plan_kernels::peaks::{self, Peaks};
use candle_plan_kernels::threads::{Threads, MOST_THREADS};

use crate::candle_device::Chosen;
use crate::custom::{self, CustomOps};
use crate::device::Device;
use crate::dry_run::StepCommands;
use crate::error::{Error, Result};
use crate::executable::Executable;
use crate::inputs::ordered;
use crate::inspect::Prepared;
use crate::interrupt::Stop;
use crate::kernel::Memory;
use crate::plan::Plan;
use crate::prepare::{PlacedStep, PreparedPlan};
use crate::profile::StepTime;
use crate::request::Request;
use crate::shared::{self, Key};
use crate::types::Type;
use crate::value::{Array, Value};
use crate::weights::{replaced, Weights};

/// The most threads of a session.
pub const MAX_THREADS: usize = MOST_THREADS;

/// The settings of a session, as [`Session::load`] describes them.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The device.
    pub device: Chosen<'a>,
    /// The number of threads; `None` means one for each [usable processor](usable_processors).
    pub threads: Option<usize>,
    /// The most bytes that the values of a run hold at once, beyond the constants.
    pub max_memory: Option<usize>,
    /// The bound of the packed weights.
    pub memory: Memory,
    /// Weights instead of those of the plan. The plan's other weights stay as they are.
    pub weights: Option<&'a Weights>,
    /// The implementations of custom operators.
    pub custom: Option<&'a CustomOps>,
    /// Whether the session keeps the elements of constants that it packs.
    pub keep_constants: bool,
}

impl<'a> Settings<'a> {
    /// The settings of a session with the weights of the plan, and without custom operators.
    pub(crate) fn of(
        device: &'a str,
        threads: Option<usize>,
        max_memory: Option<usize>,
        memory: Memory,
    ) -> Settings<'a> {
        let (device, weights, custom, keep_constants) = (device.into(), None, None, false);
        Settings { device, threads, max_memory, memory, weights, custom, keep_constants }
    }
}

/// A plan prepared for one device and a number of threads. Several threads may run it at once.
///
/// ```
/// use candle_plan::{Error, Session, Value};
///
/// # fn main() -> Result<(), Error> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
/// let session = Session::builder(path).threads(2).build()?;
/// let inputs: Vec<String> = session.inputs().map(|(name, kind)| format!("{name}: {kind}")).collect();
/// assert_eq!(inputs, ["x: float32 [batch, 4]"]);
/// let outputs = session.run_named([("x", Value::new(vec![0f32; 12], &[3, 4])?)])?;
/// assert_eq!(outputs["y"].dims()?, [3, 2]);
/// # Ok(())
/// # }
/// ```
pub struct Session {
    pub(crate) executable: Arc<Executable>,
    pub(crate) device: Device,
    pub(crate) threads: Threads,
    /// The numeric constants by name, if the session keeps them.
    pub(crate) constants: Option<Arc<BTreeMap<String, Array>>>,
}

#[doc(hidden)]
impl Session {
    /// Reads, verifies and prepares the bytes of a plan file. A run uses `threads` threads; `None` means one for each
    /// [usable processor](usable_processors). The values of a run may hold `max_memory` bytes at once, beside the constants; if the
    /// plan has a bound too, the lower one holds. `memory` bounds the packed weights.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is not available, [`Error::Threads`] if the number of threads is not from 1 to
    /// [`MAX_THREADS`] or they do not start, [`Error::Read`] and [`Error::Verify`] if the plan is not sound.
    pub fn load(
        bytes: &[u8],
        device: &str,
        threads: Option<usize>,
        max_memory: Option<usize>,
        memory: Memory,
    ) -> Result<Session> {
        Session::load_with(bytes, &Settings::of(device, threads, max_memory, memory))
    }

    /// [`Session::load`] with these settings.
    ///
    /// # Errors
    /// As [`Session::load`]; also [`Error::Weights`] if the weights do not fit the plan. [`Error::Read`] of the kind
    /// [`CustomOp`](crate::error::ErrorKind::CustomOp) if a custom operator of the plan has no implementation.
    pub fn load_with(bytes: &[u8], settings: &Settings) -> Result<Session> {
        Session::prepare(|| crate::read::read(bytes), settings, None)
    }

    /// [`Session::load`] for a GPU that does not exist, to record its [commands](Session::commands).
    ///
    /// # Errors
    /// As [`Session::load`].
    pub fn dry_run(bytes: &[u8], custom: &CustomOps) -> Result<Session> {
        let (device, threads) = (dry_run()?, started(1)?);
        let (plan, constants) = crate::read::read(bytes)?;
        custom.check(&plan)?;
        let executable = Executable::prepare(plan, constants, &device, Memory::Full, custom)?;
        Ok(Session { executable: Arc::new(executable), device, threads, constants: None })
    }

    /// A session with this executable.
    pub(crate) fn sharing(executable: Arc<Executable>, device: Device, threads: Option<usize>) -> Result<Session> {
        let threads = started(threads.unwrap_or_else(|| usable_processors().min(MAX_THREADS)))?;
        Ok(Session { executable, device, threads, constants: None })
    }

    /// Shares the prepared plan with later sessions of a file, or takes that of a session that was faster. On a GPU, it shares the
    /// constants. A session with custom operators shares nothing, because another one may have other implementations.
    ///
    /// # Errors
    /// The GPU fails.
    pub(crate) fn shared(mut self, key: Key) -> Result<Session> {
        let prepared = self.executable.prepared().clone();
        match self.device {
            _ if !self.custom_ops().is_empty() => {}
            Device::Cpu => {
                let prepared = shared::keep(key, prepared);
                self.executable = Arc::new(Executable::limited(prepared, self.executable.max_memory));
            }
            Device::Gpu(_) => {
                self.device.finish()?; // another stream may read the constants
                shared::add(key, &prepared);
            }
        }
        Ok(self)
    }

    /// The commands that one run would give a GPU, step by step, in a [`Session::dry_run`].
    ///
    /// # Errors
    /// As [`Executable::commands`].
    pub fn commands(&self, inputs: Vec<Value>) -> Result<Vec<StepCommands>> {
        self.executable.commands(inputs, &self.threads)
    }

    /// Prepares the plan and the constants that `read` returns. On a GPU, it shares the constants of `other`, if that is the same
    /// plan.
    pub(crate) fn prepare(
        read: impl FnOnce() -> Result<(Plan, Vec<Value>)>,
        settings: &Settings,
        other: Option<&PreparedPlan>,
    ) -> Result<Session> {
        let device = settings.device.open()?;
        let threads = started(settings.threads.unwrap_or_else(|| usable_processors().min(MAX_THREADS)))?;
        let none = CustomOps::new();
        let custom = settings.custom.unwrap_or(&none);
        let (plan, constants) = replaced(read()?, settings.weights)?;
        custom.check(&plan)?;
        let kept = settings.keep_constants.then(|| Arc::new(plan.arrays(&constants)));
        let prepared = PreparedPlan::prepare(plan, constants, &device, settings.memory, custom, other)?;
        let executable = Executable::limited(Arc::new(prepared), settings.max_memory);
        Ok(Session { executable: Arc::new(executable), device, threads, constants: kept })
    }

    /// The full names of the plan's custom operators.
    pub fn custom_ops(&self) -> BTreeSet<String> {
        custom::names(&self.executable.plan.main)
    }

    /// Where every step runs.
    pub fn placed_steps(&self) -> Vec<PlacedStep> {
        self.executable.placed_steps()
    }

    /// [`Session::run`] that `stop` can end early. The run asks it between steps, about every 50 ms.
    ///
    /// # Errors
    /// As [`Executable::run_until`].
    pub fn run_until(&self, inputs: Vec<Value>, stop: Stop) -> Result<Vec<Value>> {
        self.executable.run_until(inputs, &self.threads, stop)
    }

    /// Measures the peak performance of the processor, with the threads of a run.
    pub fn peaks(&self) -> Peaks {
        peaks::measure(Isa::get(), &self.threads)
    }

    /// The decisions before a run: kernels, layouts, and the bytes that are alive at once.
    pub fn prepared(&self) -> Prepared {
        self.executable.inspect()
    }

    /// Returns the total time of every step in `runs` runs. A first run does not count.
    ///
    /// # Errors
    /// As [`Executable::run_until`].
    pub fn profile(&self, inputs: &[Value], runs: usize, stop: Stop) -> Result<Vec<StepTime>> {
        self.executable.profile(inputs, runs, &self.threads, stop)
    }
}

impl Session {
    /// A session with the same prepared plan and constants, and `threads` threads of its own; `None` means one for each
    /// processor that the process may use.
    ///
    /// # Errors
    /// [`Error::Threads`] if the number of threads is not from 1 to 1024, or they do not start.
    pub fn with_threads(&self, threads: Option<usize>) -> Result<Session> {
        let shared = Session::sharing(self.executable.clone(), self.device.clone(), threads)?;
        Ok(Session { constants: self.constants.clone(), ..shared })
    }

    /// The names and types of the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.executable.inputs()
    }

    /// The names and types of the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.executable.outputs()
    }

    /// The session's device.
    pub fn device(&self) -> &str {
        self.device.name()
    }

    /// The number of threads of a run.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Computes the outputs for the inputs, both in the plan's order.
    ///
    /// # Errors
    /// [`Error::Input`] for the first input that does not fit, or [`Error::Run`] with the place of a step that failed.
    pub fn run(&self, inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.executable.run(inputs, &self.threads)
    }

    /// The inputs of a run in the plan's order, from inputs by their names. An optional input without a value is absent.
    ///
    /// # Errors
    /// [`Error::Input`] if an input has no value or two, or if the plan has no input of a name.
    pub fn ordered<N: AsRef<str>, V: Into<Value>>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Vec<Value>> {
        ordered(self.inputs(), inputs)
    }

    /// [`Session::run`] with the inputs and outputs by their names: `session.run_named([("x", &tensor)])`. An optional
    /// input without a value is absent.
    ///
    /// # Errors
    /// As [`Session::run`]; also [`Error::Input`] if an input has no value or two, or if the plan has no input of a
    /// name.
    pub fn run_named<N: AsRef<str>, V: Into<Value>>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<HashMap<String, Value>> {
        let outputs = self.run(self.ordered(inputs)?)?;
        Ok(self.outputs().map(|(name, _)| name.to_string()).zip(outputs).collect())
    }

    /// [`Session::run`] for some of the outputs, on the host or the session's device, within a time.
    ///
    /// # Errors
    /// As [`Session::run`]; also [`Error::Interrupted`] and [`Error::TimedOut`] if the request ended the run.
    pub fn run_request(&self, inputs: Vec<Value>, request: &Request) -> Result<Vec<Value>> {
        self.executable.run_request(inputs, &self.threads, request)
    }
}

/// The number of processors that this process may use, by its affinity and the quota of its cgroup.
pub fn usable_processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns where every step of a plan would run on a GPU. `plan` is the bytes of a plan file. The machine needs no GPU.
///
/// # Errors
/// [`Error::Read`] and [`Error::Verify`] if the plan is not sound.
pub fn placed_steps(plan: &[u8]) -> Result<Vec<PlacedStep>> {
    let (plan, constants) = crate::read::read(plan)?;
    Ok(Executable::prepare(plan, constants, &dry_run()?, Memory::Full, &CustomOps::new())?.placed_steps())
}

fn dry_run() -> Result<Device> {
    let gpu =
        Gpu::dry_run().map_err(|error| Error::Device { device: "dry run".to_string(), reason: error.to_string() })?;
    Ok(Device::Gpu(gpu))
}

fn started(count: usize) -> Result<Threads> {
    let failed = |reason: String| Error::Threads { count, reason };
    if !(1..=MAX_THREADS).contains(&count) {
        return Err(failed(format!("a session has from 1 to {MAX_THREADS}")));
    }
    Threads::new(count).map_err(|error| failed(error.to_string()))
}
