//! A prepared plan that Python runs.

use std::cell::RefCell;

use candle_plan::error::Result;
use candle_plan::interrupt::Stop;
use candle_plan::session::Session as Inner;
use candle_plan::types::Type;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::json;

use crate::arrays::{from_python, to_python_value};
use crate::errors::to_python;

/// A plan prepared for one device and a number of threads. May be run from many threads at once.
#[pyclass(frozen)]
pub struct Session {
    inner: Inner,
}

#[pymethods]
impl Session {
    /// `device` is "cpu" or "cuda"; `threads` is the number of threads a run uses, one for each processor by default.
    #[new]
    #[pyo3(signature = (plan, device = "cpu", threads = None))]
    fn new(py: Python<'_>, plan: &[u8], device: &str, threads: Option<usize>) -> PyResult<Session> {
        let inner = py.detach(|| Inner::load(plan, device, threads)).map_err(to_python)?;
        Ok(Session { inner })
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

    /// The device that was taken.
    #[getter]
    fn device(&self) -> &'static str {
        self.inner.device()
    }

    /// The steps that run on the host though the device is another, as a JSON list.
    #[getter]
    fn host_steps(&self) -> String {
        json!(self.inner.host_steps()).to_string()
    }

    /// The number of threads a run uses.
    #[getter]
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// The outputs for the inputs, both in the plan's order (see `arrays` for their form).
    fn run<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let inputs = inputs.iter().map(|value| from_python(&value)).collect::<PyResult<_>>()?;
        let outputs = interruptible(py, |stop| self.inner.run_until(inputs, stop))?;
        let exclusive = self.inner.exclusive_outputs();
        let outputs = outputs.into_iter().zip(exclusive).map(|(value, own)| to_python_value(py, value, *own));
        PyList::new(py, outputs.collect::<PyResult<Vec<_>>>()?)
    }

    /// The most operations, and bytes of memory, a second, with this session's threads: measured now.
    fn peaks(&self, py: Python<'_>) -> (f64, f64) {
        let peaks = py.detach(|| self.inner.peaks());
        (peaks.operations, peaks.bytes)
    }

    /// What every step takes over `runs` runs, as a JSON list.
    fn profile(&self, py: Python<'_>, inputs: &Bound<'_, PyList>, runs: usize) -> PyResult<String> {
        let inputs = inputs.iter().map(|value| from_python(&value)).collect::<PyResult<Vec<_>>>()?;
        let steps = interruptible(py, |stop| self.inner.profile(&inputs, runs, stop))?;
        Ok(json!(steps).to_string())
    }
}

/// Does `work` without the interpreter's lock. Ctrl-C in the main thread ends it: what Python's handler raises is raised.
fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(Stop) -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| {
        let raised = RefCell::new(None);
        let stop = || match Python::try_attach(|py| py.check_signals()) {
            Some(Err(error)) => raised.replace(Some(error)).is_none(),
            _ => false,
        };
        let result = work(&stop);
        raised.into_inner().map_or_else(|| result.map_err(to_python), Err)
    })
}

fn describe<'a>(values: impl Iterator<Item = (&'a str, &'a Type)>) -> String {
    json!(values.map(|(name, kind)| json!({"name": name, "type": kind})).collect::<Vec<_>>()).to_string()
}
