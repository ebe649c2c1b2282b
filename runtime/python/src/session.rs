//! A prepared plan that Python runs.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use candle_plan::internal::{Memory, Outputs, Settings, Stop};
use candle_plan::{Error, Request, Result, Session as Inner, Type, Value};
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyString};
use pyo3::{PyTraverseError, PyVisit};
use serde_json::json;

use crate::arrays::Passing;
use crate::custom::{explained, Functions, Held};
use crate::device_arrays::given_value;
use crate::errors::to_python;
use crate::files::open;
use crate::outputs::to_python_value;
use crate::weights::Given;

/// A plan prepared for one device and a number of threads. Several threads may run it at once.
#[pyclass(frozen)]
pub struct Session {
    pub(crate) inner: Inner,
    /// The functions of the custom operators.
    held: Py<Held>,
    /// The names of the inputs, in order.
    given: Vec<Py<PyString>>,
    /// The names of the outputs, in order.
    pub(crate) results: Vec<Py<PyString>>,
}

/// Ends runs early, from any thread.
#[pyclass(frozen, module = "compiler._runtime")]
pub struct Cancel {
    is_set: AtomicBool,
    /// Another object that also ends the runs.
    other: Option<Py<Cancel>>,
}

#[pymethods]
impl Cancel {
    /// `other` ends the runs too.
    #[new]
    #[pyo3(signature = (other = None))]
    fn new(other: Option<Py<Cancel>>) -> Cancel {
        Cancel { is_set: AtomicBool::new(false), other }
    }

    /// Ends the runs that have this object, and those that begin with it later.
    fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }
}

impl Cancel {
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed) || self.other.as_ref().is_some_and(|other| other.get().is_set())
    }
}

/// The bytes of a plan file, or its path.
#[derive(FromPyObject)]
enum Source {
    Bytes(PyBackedBytes),
    File(PathBuf),
}

#[pymethods]
impl Session {
    /// `plan` is the bytes of a plan file, or its path. `device` is "cpu" or "cuda". `threads` is the number of threads
    /// of a run; the default is one per CPU. `max_memory` limits the bytes that the values of a run may hold. With
    /// `low_memory`, constants are not packed into larger, transformed copies. `weights` is the path of a file with other
    /// weights than those of the plan, or a dict of arrays by name. `custom` is a dict of the functions of custom
    /// operators.
    #[new]
    #[pyo3(signature = (
        plan, device = "cpu", threads = None, max_memory = None, low_memory = false, weights = None, custom = None
    ))]
    #[allow(clippy::too_many_arguments)] // one for each argument of Python's `load`
    fn new(
        py: Python<'_>,
        plan: Source,
        device: &str,
        threads: Option<usize>,
        max_memory: Option<usize>,
        low_memory: bool,
        weights: Option<Given<'_>>,
        custom: Option<Functions>,
    ) -> PyResult<Session> {
        let memory = if low_memory { Memory::Low } else { Memory::Full };
        let weights = weights.map(|given| given.weights(py)).transpose()?;
        let held = Py::new(py, Held::new(custom))?;
        let custom = held.get().registered();
        let (device, weights, custom) = (device.into(), weights.as_ref(), Some(&custom));
        let settings = Settings { device, threads, max_memory, memory, weights, custom, keep_constants: false };
        let load = || match &plan {
            Source::Bytes(bytes) => Inner::load_with(bytes, &settings),
            Source::File(path) => open(path, &settings),
        };
        Ok(Session::of(py, py.detach(load).map_err(to_python)?, held))
    }

    /// Makes a session without a GPU for a plan file's bytes. `commands` lists the GPU commands of a run.
    #[staticmethod]
    #[pyo3(signature = (plan, custom = None))]
    fn dry_run(py: Python<'_>, plan: &[u8], custom: Option<Functions>) -> PyResult<Session> {
        let held = Py::new(py, Held::new(custom))?;
        let custom = held.get().registered();
        Ok(Session::of(py, py.detach(|| Inner::dry_run(plan, &custom)).map_err(to_python)?, held))
    }

    /// Makes a session that shares the prepared plan and its constants, and has `threads` threads of its own.
    #[pyo3(name = "clone")]
    fn with_threads(&self, py: Python<'_>, threads: usize) -> PyResult<Session> {
        let inner = py.detach(|| self.inner.with_threads(Some(threads))).map_err(to_python)?;
        Ok(Session::of(py, inner, self.held.clone_ref(py)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.held)
    }

    /// Lists the GPU commands of one run on these inputs, as a JSON list of steps. Only for a dry run.
    fn commands(&self, py: Python<'_>, inputs: &Bound<'_, PyDict>) -> PyResult<String> {
        let inputs = self.values(inputs, Passing::Lend)?;
        let steps = py.detach(|| explained(|| self.inner.commands(inputs)))?;
        Ok(json!(steps).to_string())
    }

    /// The inputs, as a JSON list of names and types.
    #[getter]
    fn inputs(&self) -> String {
        describe(self.inner.inputs())
    }

    /// The outputs, as a JSON list of names and types.
    #[getter]
    fn outputs(&self) -> String {
        describe(self.inner.outputs())
    }

    /// The constants that have a name, as a JSON list of names and types.
    #[getter]
    fn constants(&self) -> String {
        describe(self.inner.constants())
    }

    /// The constants that `weights` replaces, as a JSON list of names and types.
    #[getter]
    fn weights(&self) -> String {
        let weights = self.inner.weights();
        describe(weights.iter().map(|(name, kind)| (*name, kind)))
    }

    /// The checksum of the plan, in hexadecimal.
    #[getter]
    fn sha256(&self) -> &str {
        self.inner.sha256()
    }

    /// The device of the session.
    #[getter]
    fn device(&self) -> &str {
        self.inner.device()
    }

    /// Where every step runs, as a JSON list.
    #[getter]
    fn placed_steps(&self) -> String {
        json!(self.inner.placed_steps()).to_string()
    }

    /// The number of threads a run uses.
    #[getter]
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// Runs the plan. Inputs and outputs are dicts by name, outputs in the plan's order (see `arrays` for the values).
    /// Returns `None`, and runs nothing, if `inputs` is not a dict with the names of all inputs and no other names. With
    /// `device_outputs`, tensors stay on the session's device. With `copy`, the caller may write to the inputs during
    /// the run. `only` holds the indices of the outputs to compute. The run ends early after `timeout` seconds, and
    /// after `cancel.set()`.
    #[pyo3(signature = (inputs, device_outputs = false, copy = false, only = None, timeout = None, cancel = None))]
    #[allow(clippy::too_many_arguments)] // one for each argument of Python's `Session.run`
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        device_outputs: bool,
        copy: bool,
        only: Option<Vec<usize>>,
        timeout: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let named = inputs.cast_exact::<PyDict>().ok();
        let Some(inputs) = named.map_or(Ok(None), |named| self.if_complete(named))? else { return Ok(None) };
        let inputs = self.values(inputs, if copy { Passing::Copy } else { Passing::Lend })?;
        let outputs = interruptible(py, cancel, |stop| {
            self.inner.run_request(inputs, &request(only.as_deref(), device_outputs, timeout, stop))
        })?;
        let named = PyDict::new(py);
        for (at, value) in outputs.into_iter().enumerate() {
            let at = only.as_ref().map_or(at, |only| only[at]);
            named.set_item(&self.results[at], to_python_value(py, value)?)?;
        }
        Ok(Some(named))
    }

    /// Runs the plan. Returns the addresses from which it reads the inputs, and each output with the address that it had in the
    /// runtime: 0 for values that are no tensors on the host.
    fn addresses<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyDict>,
    ) -> PyResult<(Vec<usize>, Vec<(usize, Bound<'py, PyAny>)>)> {
        let inputs = self.values(inputs, Passing::Lend)?;
        let read = inputs.iter().map(Value::address).collect();
        let outputs = interruptible(py, None, |stop| self.inner.run_until(inputs, stop))?;
        let output = |value: Value| Ok((value.address(), to_python_value(py, value)?));
        Ok((read, outputs.into_iter().map(output).collect::<PyResult<_>>()?))
    }

    /// The choices made before a run, as JSON.
    fn prepared(&self) -> String {
        json!(self.inner.prepared()).to_string()
    }

    /// Measures the peak operations per second and bytes per second with the session's threads, at each call.
    fn peaks(&self, py: Python<'_>) -> (f64, f64) {
        let peaks = py.detach(|| self.inner.peaks());
        (peaks.operations, peaks.bytes)
    }

    /// Measures the time of every step over `runs` runs, as a JSON list.
    fn profile(&self, py: Python<'_>, inputs: &Bound<'_, PyDict>, runs: usize) -> PyResult<String> {
        let inputs = self.values(inputs, Passing::Lend)?;
        let steps = interruptible(py, None, |stop| self.inner.profile(&inputs, runs, stop))?;
        Ok(json!(steps).to_string())
    }
}

impl Session {
    fn of(py: Python<'_>, inner: Inner, held: Py<Held>) -> Session {
        held.get().retain(&inner.custom_ops());
        let given = inner.inputs().map(|(name, _)| PyString::new(py, name).unbind()).collect();
        let results = inner.outputs().map(|(name, _)| PyString::new(py, name).unbind()).collect();
        Session { inner, held, given, results }
    }

    /// Returns the dict if its keys are the names of all inputs.
    fn if_complete<'a, 'py>(&self, inputs: &'a Bound<'py, PyDict>) -> PyResult<Option<&'a Bound<'py, PyDict>>> {
        if inputs.len() != self.given.len() {
            return Ok(None);
        }
        for name in &self.given {
            if !inputs.contains(name)? {
                return Ok(None);
            }
        }
        Ok(Some(inputs))
    }

    /// Returns the inputs in the plan's order.
    fn values(&self, inputs: &Bound<'_, PyDict>, passing: Passing) -> PyResult<Vec<Value>> {
        self.given.iter().zip(self.inner.inputs()).map(|input| self.value(input, inputs, passing)).collect()
    }

    /// Returns the inputs with these indices.
    pub(crate) fn values_at(
        &self,
        places: &[usize],
        inputs: &Bound<'_, PyDict>,
        passing: Passing,
    ) -> PyResult<Vec<Value>> {
        let declared: Vec<_> = self.given.iter().zip(self.inner.inputs()).collect();
        places.iter().map(|&at| self.value(declared[at], inputs, passing)).collect()
    }

    fn value(
        &self,
        (key, (name, kind)): (&Py<PyString>, (&str, &Type)),
        inputs: &Bound<'_, PyDict>,
        passing: Passing,
    ) -> PyResult<Value> {
        match inputs.get_item(key)? {
            Some(given) => given_value(&self.inner, &given, passing)
                .map_err(|error| conversion_error(inputs.py(), name, kind, error)),
            None => Ok(Value::None),
        }
    }
}

/// Returns the request of a run that ends after `timeout` seconds.
pub(crate) fn request<'a>(
    only: Option<&'a [usize]>,
    device_outputs: bool,
    timeout: Option<f64>,
    stop: Stop<'a>,
) -> Request<'a> {
    let place = if device_outputs { Outputs::Device } else { Outputs::Host };
    let deadline = timeout.and_then(|seconds| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?));
    Request { only, place, deadline, stop }
}

/// Returns the error for an input that cannot be converted to a value.
fn conversion_error(py: Python<'_>, name: &str, kind: &Type, error: PyErr) -> PyErr {
    let is_conversion_error = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    if !is_conversion_error {
        return error;
    }
    let found = format!("an unsupported value: {}", error.value(py));
    to_python(Error::Input { name: name.to_string(), expected: kind.to_string(), found })
}

/// Runs `work` without the interpreter's lock. `cancel` ends it, also at its start. Ctrl-C in the main thread ends it
/// too, and raises the exception of Python's handler. Errors become exceptions as [`explained`] says.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: Option<&Cancel>,
    work: impl FnOnce(Stop) -> Result<T> + Send,
) -> PyResult<T> {
    let is_canceled = || cancel.is_some_and(Cancel::is_set);
    py.detach(|| {
        let raised = RefCell::new(None);
        let stop = || match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => raised.replace(Some(error)).is_none(),
            _ => is_canceled(),
        };
        let result = explained(|| if is_canceled() { Err(Error::Interrupted) } else { work(&stop) });
        match raised.into_inner() {
            Some(raised) => Err(raised),
            None => result,
        }
    })
}

fn describe<'a>(values: impl Iterator<Item = (&'a str, &'a Type)>) -> String {
    json!(values.map(|(name, kind)| json!({"name": name, "type": kind})).collect::<Vec<_>>()).to_string()
}
