//! Custom operators that Python's functions compute.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};

use candle_plan::internal::{Attribute, CustomOps};
use candle_plan::{CustomCall, CustomOp, Error, ErrorKind, Result, Value};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{PyTraverseError, PyVisit};

use crate::arrays::{from_python, Passing};
use crate::errors::to_python;
use crate::outputs::to_python_value;

thread_local! {
    /// The exception of the function that ended the run of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Functions by the full names of their operators. A function takes a list of inputs, and a dict of attributes by name.
/// It returns a list of outputs.
pub type Functions = HashMap<String, Py<PyAny>>;

/// The functions of a session. Python's garbage collector knows this object and what it holds. If a function holds the
/// session, the collector can therefore free both. The session's clones hold the same object.
#[pyclass(frozen, module = "compiler._runtime")]
pub struct Held {
    functions: Arc<Mutex<Functions>>,
}

#[pymethods]
impl Held {
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        // If another thread takes a function just now, the collector sees too few references, and frees nothing.
        let Ok(functions) = self.functions.try_lock() else { return Ok(()) };
        functions.values().try_for_each(|function| visit.call(function))
    }

    fn __clear__(&self) {
        let functions = self.functions.lock().map(|mut functions| std::mem::take(&mut *functions));
        drop(functions); // without the lock, because the end of a function may run code
    }
}

impl Held {
    pub fn new(functions: Option<Functions>) -> Held {
        Held { functions: Arc::new(Mutex::new(functions.unwrap_or_default())) }
    }

    /// Returns the implementations of custom operators that call these functions as long as this object lives.
    pub fn registered(&self) -> CustomOps {
        let mut ops = CustomOps::new();
        for name in self.functions.lock().iter().flat_map(|functions| functions.keys()) {
            ops.insert(name.clone(), Arc::new(Function { name: name.clone(), held: Arc::downgrade(&self.functions) }));
        }
        ops
    }

    /// Drops the functions of all other operators.
    pub fn retain(&self, names: &BTreeSet<String>) {
        if let Ok(mut functions) = self.functions.lock() {
            functions.retain(|name, _| names.contains(name));
        }
    }
}

/// Calls `work`, which runs a plan, and returns its error as an exception. If a function of a custom operator raised an
/// exception, it is the cause of this exception. An exception that ends programs, such as `KeyboardInterrupt`, is raised
/// itself.
pub fn explained<T>(work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    RAISED.take();
    let error = match work() {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    match (RAISED.take(), error) {
        (Some(raised), Error::Interrupted) => Err(raised),
        (None, Error::Interrupted) => Err(PyRuntimeError::new_err("the run was canceled")),
        (raised, error) => Err(Python::attach(|py| {
            let failed = to_python(error);
            failed.set_cause(py, raised);
            failed
        })),
    }
}

/// A Python function that computes an operator. The session of a run holds the function.
struct Function {
    /// The operator's domain and name.
    name: String,
    held: Weak<Mutex<Functions>>,
}

impl CustomOp for Function {
    fn run(&self, call: &CustomCall) -> Result<Vec<Value>> {
        Python::try_attach(|py| self.call(py, call))
            .unwrap_or_else(|| Err(Error::op("Python is ending: it calls no more functions")))
    }
}

impl Function {
    /// Calls the function. It gets copies of the inputs, and the run gets copies of what it returns.
    fn call(&self, py: Python<'_>, call: &CustomCall) -> Result<Vec<Value>> {
        let given = arguments(py, call).map_err(|error| unfit(py, &format!("inputs of {}", self.name), &error))?;
        let returned = self.function(py)?.bind(py).call1(given).and_then(|returned| returned.try_iter()?.collect());
        let returned: Vec<Bound<'_, PyAny>> = returned.map_err(|error| self.failed(py, error))?;
        let value = |(at, object): (usize, &Bound<'_, PyAny>)| {
            let what = || format!("output {at} of {}", self.name);
            from_python(object, Passing::Copy).map_err(|error| unfit(py, &what(), &error))
        };
        returned.iter().enumerate().map(value).collect()
    }

    fn function(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        let held = self.held.upgrade();
        let functions = held.as_ref().and_then(|held| held.lock().ok());
        let function = functions.and_then(|functions| Some(functions.get(&self.name)?.clone_ref(py)));
        function.ok_or_else(|| Error::op(format!("the session has no function of {}", self.name)))
    }

    /// Keeps an exception of the function for [`explained`].
    fn failed(&self, py: Python<'_>, error: PyErr) -> Error {
        let told = match error.is_instance_of::<PyException>(py) {
            true => Error::op(format!("the function of {} raised {error}", self.name)),
            false => Error::Interrupted,
        };
        RAISED.set(Some(error));
        told
    }
}

/// The error of a value that cannot be converted, or for whose copy there is no memory.
fn unfit(py: Python<'_>, what: &str, error: &PyErr) -> Error {
    let message = format!("{what}: {}", error.value(py));
    match error.value(py).getattr("kind").and_then(|kind| kind.extract::<String>()) {
        Ok(kind) if kind == ErrorKind::Memory.name() => Error::Memory(message),
        _ => Error::op(message),
    }
}

/// The inputs and attributes of a step.
fn arguments<'py>(py: Python<'py>, call: &CustomCall) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
    let input = |value: &Option<&Value>| match value {
        Some(value) => to_python_value(py, (*value).clone()),
        None => Ok(py.None().into_bound(py)),
    };
    let inputs: Vec<_> = call.inputs.iter().map(input).collect::<PyResult<_>>()?;
    let attributes = PyDict::new(py);
    for (name, value) in call.attributes {
        attributes.set_item(name, attribute(py, value)?)?;
    }
    for (name, tensor) in call.tensors {
        attributes.set_item(name, to_python_value(py, Value::from(*tensor))?)?;
    }
    Ok((PyList::new(py, inputs)?, attributes))
}

fn attribute<'py>(py: Python<'py>, value: &Attribute) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Attribute::Int(value) => value.into_pyobject(py)?.into_any(),
        Attribute::Float(value) => f64::from(*value).into_pyobject(py)?.into_any(),
        Attribute::String(value) => value.into_pyobject(py)?.into_any(),
        Attribute::Ints(values) => values.into_pyobject(py)?.into_any(),
        Attribute::Floats(values) => PyList::new(py, values.iter().map(|&value| f64::from(value)))?.into_any(),
        Attribute::Strings(values) => values.into_pyobject(py)?.into_any(),
    })
}
