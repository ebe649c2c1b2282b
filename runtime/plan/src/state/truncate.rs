//! Shortens a state, to go back to an earlier step of a text or a stream.

use candle_plan_descriptors::strided::View;
use candle_plan_kernels::threads::Threads;

use super::pairs::NamedPair;
use super::values::length_of;
use super::State;
use crate::error::{Error, Result};
use crate::gpu;
use crate::movable::copy_view;
use crate::value::{Array, Value};

impl State {
    /// Keeps the first `length` elements of every value along the axis that grows.
    ///
    /// # Errors
    /// [`Error::State`] if a value does not grow, or is shorter; also if there is no memory or the device fails. The state
    /// is then as it was.
    pub fn truncate(&mut self, length: usize) -> Result<()> {
        let mut values = Vec::with_capacity(self.values.len());
        for (pair, value) in self.pairs.list.iter().zip(&self.values) {
            values.push(truncated(pair, value.as_ref(), length)?);
        }
        self.values = values;
        Ok(())
    }
}

fn truncated(pair: &NamedPair, value: Option<&Value>, length: usize) -> Result<Option<Value>> {
    let name = &pair.input.name;
    let Some(axis) = pair.axis else {
        return Err(Error::State(format!("{name:?} does not grow, so no earlier value of it is known")));
    };
    match length_of(value, axis) {
        found if found < length => {
            Err(Error::State(format!("{name:?} has length {found}, so it cannot be cut to length {length}")))
        }
        found if found == length => Ok(value.cloned()),
        _ => value.map(|value| first(value, axis, length)).transpose(),
    }
}

/// The first elements along an axis: in the same storage if the value grows in place, or a copy.
fn first(value: &Value, axis: usize, length: usize) -> Result<Value> {
    if let Value::Grown(grown) = value {
        return Ok(Value::Grown(Box::new(grown.first(length))));
    }
    copied(value.tensor()?, axis, length).map(Value::from)
}

fn copied(array: &Array, axis: usize, length: usize) -> Result<Array> {
    let mut view = View::contiguous(array.dims());
    view.dims[axis] = length;
    if !array.is_on_device() {
        return copy_view(array, &view, &Threads::serial());
    }
    let gpu = array.in_buffer()?.0.gpu();
    let copy = gpu::copied(gpu, array, &view)?;
    gpu.finish()?;
    Ok(copy)
}
