//! Converts values to Python objects: NumPy arrays, or tensors that stay on the device.

use candle_plan::Value;
use candle_plan_kernels::threads::Threads;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{strings_to_python, tensor_to_python};
use crate::device_arrays::DeviceArray;
use crate::errors::to_python;

/// Converts a value to a Python object.
pub fn to_python_value<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::None => Ok(py.None().into_bound(py)),
        Value::Sequence(items) => {
            let items: Vec<_> = items
                .into_values()
                .map_err(to_python)?
                .into_iter()
                .map(|item| to_python_value(py, item))
                .collect::<PyResult<_>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Grown(grown) => tensor_to_python(py, grown.to_array(&Threads::serial()).map_err(to_python)?),
        Value::Strings(strings) => strings_to_python(py, &strings),
        Value::Tensor(array) if array.is_on_device() => Ok(Bound::new(py, DeviceArray::new(array))?.into_any()),
        Value::Tensor(array) => tensor_to_python(py, array),
    }
}
