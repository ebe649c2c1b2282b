//! The forms of the values of a state.

use candle_plan_kernels::threads::Threads;

use crate::error::Result;
use crate::value::{Array, Value};

/// The value as a tensor without spare elements between its rows.
pub(super) fn packed(value: Value, threads: &Threads) -> Result<Value> {
    match value {
        Value::Grown(grown) => Ok(grown.to_array(threads)?.into()),
        other => Ok(other),
    }
}

/// The dimensions of a value, without its elements.
///
/// # Errors
/// The value is no tensor.
pub(super) fn hollow(value: &Value) -> Result<Value> {
    match value {
        Value::Grown(grown) => Ok(Array::hollow(grown.dims(), grown.dtype()).into()),
        other => other.tensor().map(|array| Array::hollow(array.dims(), array.dtype()).into()),
    }
}

/// The value in memory that belongs to the runtime and holds nothing else.
pub(super) fn settled(value: Value) -> Result<Value> {
    match &value {
        Value::Tensor(array) if !array.is_on_device() && !array.is_whole() => Ok(array.copy()?.into()),
        _ => Ok(value),
    }
}

/// The size of a value along an axis; 0 before the first run.
pub(super) fn length_of(value: Option<&Value>, axis: usize) -> usize {
    let dims = value.and_then(|value| value.dims().ok());
    dims.and_then(|dims| dims.get(axis).copied()).unwrap_or(0)
}
