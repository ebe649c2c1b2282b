//! States, whose values Python's runs of a session hand on.

use std::sync::{Mutex, MutexGuard, TryLockError};

use candle_plan::State as Inner;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use serde_json::json;

use crate::arrays::Passing;
use crate::device_arrays::given_value;
use crate::errors::to_python;
use crate::outputs::to_python_value;
use crate::session::{interruptible, request, Cancel, Session};

/// The values that runs of one plan hand on.
#[pyclass(frozen, module = "compiler._runtime")]
pub struct State {
    inner: Mutex<Inner>,
}

#[pymethods]
impl State {
    /// `initial` is a dict of the first values by the names of inputs. `sizes` are sizes of dimensions, by symbol or as
    /// `input.axis`.
    #[new]
    fn new(session: &Session, initial: &Bound<'_, PyDict>, sizes: Vec<(String, usize)>) -> PyResult<State> {
        let mut values = Vec::with_capacity(initial.len());
        for (name, given) in initial {
            values.push((name.extract()?, given_value(&session.inner, &given, Passing::Copy)?));
        }
        Ok(State::of(session.inner.new_state_from(values, sizes).map_err(to_python)?))
    }

    /// The pairs of the state: names of outputs and inputs, and the axes that grow.
    #[staticmethod]
    fn pairs(session: &Session) -> Vec<(String, String, Option<usize>)> {
        let pairs = session.inner.state_pairs();
        pairs.map(|(output, input, axis)| (output.to_string(), input.to_string(), axis)).collect()
    }

    /// Runs the plan. `inputs` is a dict with the names of all inputs that the state does not hold. The other arguments
    /// are the same as in `Session.run`.
    #[allow(clippy::too_many_arguments)] // one for each argument of Python's `Session.run`
    fn run<'py>(
        &self,
        py: Python<'py>,
        session: &Session,
        inputs: &Bound<'py, PyDict>,
        device_outputs: bool,
        copy: bool,
        only: Option<Vec<usize>>,
        timeout: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut inner = self.lock()?;
        let state: &mut Inner = &mut inner;
        state.check(&session.inner).map_err(to_python)?;
        let passing = if copy { Passing::Copy } else { Passing::Lend };
        let given = session.values_at(state.given(), inputs, passing)?;
        let outputs = interruptible(py, cancel, |stop| {
            session.inner.run_with(state, given, &request(only.as_deref(), device_outputs, timeout, stop))
        })?;
        let places = only.as_deref().unwrap_or_else(|| state.results());
        let named = PyDict::new(py);
        for (&at, value) in places.iter().zip(outputs) {
            named.set_item(&session.results[at], to_python_value(py, value)?)?;
        }
        Ok(named)
    }

    /// Measures the time of every step over `runs` runs, as a JSON list. Each run begins with the present values, which stay.
    fn profile(&self, py: Python<'_>, session: &Session, inputs: &Bound<'_, PyDict>, runs: usize) -> PyResult<String> {
        let mut inner = self.lock()?;
        let state: &mut Inner = &mut inner;
        state.check(&session.inner).map_err(to_python)?;
        let given = session.values_at(state.given(), inputs, Passing::Lend)?;
        let steps = interruptible(py, None, |stop| session.inner.profile_with(state, &given, runs, stop))?;
        Ok(json!(steps).to_string())
    }

    /// Returns to the first values.
    fn reset(&self) -> PyResult<()> {
        self.lock()?.reset();
        Ok(())
    }

    /// A state with the same values, which goes on separately.
    fn copy(&self) -> PyResult<State> {
        Ok(State::of(self.lock()?.clone()))
    }

    /// Keeps the first `length` elements along the axes that grow.
    fn truncate(&self, py: Python<'_>, length: usize) -> PyResult<()> {
        let mut inner = self.lock()?;
        let state: &mut Inner = &mut inner;
        py.detach(|| state.truncate(length)).map_err(to_python)
    }

    /// The bytes of the values.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.lock()?.bytes())
    }

    /// The size along the axis that grows, or `None` if no value grows.
    #[getter]
    fn length(&self) -> PyResult<Option<usize>> {
        Ok(self.lock()?.length())
    }

    /// Copies of the values, by the names of inputs.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.lock()?;
        let state: &Inner = &inner;
        let named = PyDict::new(py);
        for (name, value) in py.detach(|| state.to_host()).map_err(to_python)? {
            named.set_item(name, to_python_value(py, value)?)?;
        }
        Ok(named)
    }

    /// The bytes of a file with the values.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let inner = self.lock()?;
        let state: &Inner = &inner;
        Ok(PyBytes::new(py, &py.detach(|| state.save()).map_err(to_python)?))
    }

    /// Takes the values of a file.
    fn load(&self, py: Python<'_>, bytes: PyBackedBytes) -> PyResult<()> {
        let mut inner = self.lock()?;
        let state: &mut Inner = &mut inner;
        py.detach(|| state.load(&bytes)).map_err(to_python)
    }
}

impl State {
    fn of(inner: Inner) -> State {
        State { inner: Mutex::new(inner) }
    }

    /// The state, if no other thread uses it.
    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(inner),
            // A run that panicked has left the state as it was.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("another thread uses the state: give each thread a state of its own"))
            }
        }
    }
}
