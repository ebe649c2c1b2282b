//! Converts errors to Python exceptions. Their `args` are the error's fields, and their attribute `kind` is the name of
//! its kind; `compiler` converts them to its own classes.

use candle_plan::Error;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyTimeoutError, PyValueError};
use pyo3::types::PyAnyMethods;
use pyo3::{create_exception, PyErr, Python};

create_exception!(_runtime, PlanError, PyException, "A plan that cannot be read: a list of messages.");
create_exception!(_runtime, InputError, PyException, "An input that does not fit: name, expected, found.");
create_exception!(_runtime, RunError, PyException, "A step that failed: step, op, inputs, origin, message, within.");
create_exception!(_runtime, DeviceError, PyException, "A device that cannot be used: message.");
create_exception!(_runtime, OpError, PyException, "An op refuses its inputs or attributes: message.");
create_exception!(_runtime, LimitError, OpError, "An op exceeds a limit of all kernels: message, help.");

/// Returns the exception for an error.
pub fn to_python(error: Error) -> PyErr {
    let kind = error.kind().name();
    let raised = exception(error);
    Python::attach(|py| {
        let named = raised.value(py).setattr("kind", kind);
        named.map_or_else(|failed| failed, |()| raised)
    })
}

fn exception(error: Error) -> PyErr {
    match error {
        Error::Read { .. } => PlanError::new_err((vec![error.to_string()],)),
        Error::Verify(violations) => PlanError::new_err((violations,)),
        Error::Input { name, expected, found } => InputError::new_err((name, expected, found)),
        Error::Run { place, message, .. } => {
            let (inputs, origin) = (place.inputs().to_vec(), place.origin().to_string());
            RunError::new_err((place.step(), place.op(), inputs, origin, message, place.within()))
        }
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::TimedOut => PyTimeoutError::new_err(error.to_string()),
        Error::Threads { .. } | Error::State(_) | Error::StateFile(_) | Error::Weights(_) => {
            PyValueError::new_err(error.to_string())
        }
        Error::Device { .. } => DeviceError::new_err((error.to_string(),)),
        Error::Limit { message, help } => LimitError::new_err((message, help)),
        Error::Op(message) | Error::Memory(message) | Error::Gpu(message) | Error::Setting(message) => {
            OpError::new_err((message,))
        }
    }
}
