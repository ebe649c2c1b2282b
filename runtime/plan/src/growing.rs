//! The values of a state that grow in place during a run.

use std::cell::RefCell;

use candle_plan_kernels::threads::Threads;

use crate::error::{Error, Result};
use crate::kernel::{Call, Input};
use crate::operator::Needs;
use crate::prepare::PreparedStep;
use crate::value::{Array, Value};

/// The values of a state's pairs. The run appends rows to those that grow in place, and changes no others.
pub(crate) type Growing = RefCell<Vec<Option<Value>>>;

/// Runs a Concat that appends rows to a state. It writes the new rows after the existing ones, which it does not change.
/// Input 0 of the step has only its dimensions.
///
/// # Errors
/// The rows do not fit, or there is no memory.
pub(crate) fn append(step: &PreparedStep, growing: Option<&Growing>, call: &Call) -> Result<Vec<Value>> {
    let missing = || Error::op("there is no value that grows");
    let mut values = growing.ok_or_else(missing)?.borrow_mut();
    match step.grows.and_then(|pair| values.get_mut(pair)) {
        Some(Some(Value::Grown(grown))) => Ok(vec![Value::Grown(Box::new(grown.appended(call.tensor(1)?)?))]),
        _ => Err(missing()),
    }
}

/// Copies the inputs that grow, and that the step's kernel cannot read. A step that needs only the dimensions gets no
/// elements.
///
/// # Errors
/// There is no memory.
pub(crate) fn pack(step: &PreparedStep, inputs: &mut [Input], threads: &Threads) -> Result<()> {
    for (i, (input, _)) in inputs.iter_mut().zip(&step.packs).enumerate().filter(|(_, (_, packs))| **packs) {
        if let Input::Shared(Value::Grown(grown)) = input {
            let packed = match step.ops.needs(i) {
                Needs::Dims => Array::hollow(grown.dims(), grown.dtype()),
                _ => grown.to_array(threads)?,
            };
            *input = Input::Owned(packed.into());
        }
    }
    Ok(())
}
