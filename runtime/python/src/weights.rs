//! Weights for a session, from a file or from Python's arrays, and the tensors of a file.

use std::path::PathBuf;

use candle_plan::internal::Stored;
use candle_plan::{Error, Value, Weights};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{from_python, tensor_to_python, Passing};
use crate::errors::to_python;

/// The path of a file with weights, or a dict of arrays by name.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Arrays(Bound<'py, PyDict>),
    File(PathBuf),
}

impl Given<'_> {
    /// Returns the weights. Arrays are copied.
    ///
    /// # Errors
    /// As [`Weights::read`]; `ValueError` if a value is no array of numbers, `TypeError` if its elements have a type that
    /// plans lack.
    pub fn weights(&self, py: Python<'_>) -> PyResult<Weights> {
        match self {
            Given::File(path) => py.detach(|| Weights::read(path)).map_err(to_python),
            Given::Arrays(arrays) => arrays_of(arrays),
        }
    }
}

fn arrays_of(arrays: &Bound<'_, PyDict>) -> PyResult<Weights> {
    let mut weights = Weights::new();
    for (name, given) in arrays {
        let name: String = name.extract()?;
        match from_python(&given, Passing::Copy)? {
            Value::Tensor(array) => weights.insert(name, array),
            other => {
                let reason = format!("weight {name:?}: expected an array of numbers, found {}", other.describe());
                return Err(to_python(Error::Weights(vec![reason])));
            }
        }
    }
    Ok(weights)
}

/// A matrix of codes: the bits of a code, and the constants of a product.
type Codes<'py> = (usize, Vec<Bound<'py, PyAny>>);

/// The tensors of a safetensors or GGUF file, for the compiler.
#[pyclass(frozen, module = "compiler._runtime")]
pub struct WeightFile(Weights);

#[pymethods]
impl WeightFile {
    /// Reads all tensors. Raises `ValueError` for a file of another format, and `PlanError` without memory.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<WeightFile> {
        py.detach(|| Weights::read(path)).map(WeightFile).map_err(to_python)
    }

    /// The name, the type of the elements, and the shape of each tensor.
    #[getter]
    fn tensors(&self) -> Vec<(String, String, Vec<usize>)> {
        self.0.kinds()
    }

    /// The numbers and texts that describe a GGUF file, as JSON.
    #[getter]
    fn metadata(&self) -> String {
        self.0.metadata()
    }

    /// The elements of a tensor. Those of a GGUF file become `float32`.
    fn elements<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        tensor_to_python(py, self.0.elements(name).map_err(to_python)?)
    }

    /// The bits of a code, and the constants of the plan's product with a transposed matrix: codes, scales and, in a type with
    /// minima, zero points. `None` for a tensor that is no matrix of codes.
    fn codes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Codes<'py>>> {
        let Some((bits, arrays)) = self.0.codes(name).map_err(to_python)? else { return Ok(None) };
        let arrays = arrays.into_iter().map(|array| tensor_to_python(py, array)).collect::<PyResult<_>>()?;
        Ok(Some((bits, arrays)))
    }
}
