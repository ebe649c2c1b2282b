//! Weights for a session, from a file or from Python's arrays.

use std::path::PathBuf;

use candle_plan::{Error, Value, Weights};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{from_python, Passing};
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
