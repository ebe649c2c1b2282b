//! CPU kernels: inputs and outputs of nested graphs.

use crate::bail;
use crate::dtype::Bool;
use crate::error::{Error, Result};
use crate::kernel::Call;
use crate::memory::Kept;
use crate::ops::nested::{axis_of, info, rank};
use crate::plan::Block;
use crate::stack;
use crate::value::{out_of_memory, Array, Value};

/// Appends the outputs of an iteration to those of the iterations before it.
///
/// # Errors
/// There is not enough memory for the list.
pub(super) fn push(collected: &mut [Vec<Value>], outputs: impl Iterator<Item = Value>, kept: &mut Kept) -> Result<()> {
    for (items, item) in collected.iter_mut().zip(outputs) {
        kept.collect(&item);
        items.try_reserve(1).map_err(|_| out_of_memory(&[items.len() + 1]))?;
        items.push(item);
    }
    Ok(())
}

/// Makes an array the number of an iteration: in place, unless a value of an earlier iteration shares the array.
///
/// # Errors
/// The array is not an `int64` tensor on the host.
pub(super) fn set(counter: &mut Array, iteration: i64) -> Result<()> {
    if !counter.is_alone() {
        *counter = Array::scalar(iteration);
        return Ok(());
    }
    counter.update::<i64>(|counter| {
        counter.fill(iteration);
        Ok(())
    })
}

pub(super) fn is_true(value: &Value) -> Result<bool> {
    match value.tensor()?.read::<Bool>()?.first() {
        Some(first) => Ok(first.is_true()),
        None => bail!("a condition has no element"),
    }
}

pub(super) fn one_i64(array: &Array) -> Result<i64> {
    array.read::<i64>()?.first().copied().ok_or_else(|| Error::op("the number of iterations has no element"))
}

/// Returns the inputs from `first` on. Sequences that no later step reads are moved, and are absent afterwards.
pub(super) fn given(call: &mut Call, first: usize) -> Result<Vec<Value>> {
    (first..call.len()).map(|i| call.take_value(i)).collect()
}

/// Stacks the collected tensors. If there are none, returns an empty stack for output `output` of the body.
pub(super) fn collect(items: &[Value], body: &Block, output: usize, axis: i64, call: &Call) -> Result<Value> {
    if let Some(first) = items.first() {
        return stack::stack(items, axis_of(axis, rank(first)? + 1)?, call.threads);
    }
    let id = body.outputs.get(output).ok_or_else(|| Error::op("the body lacks an output"))?;
    let item = info(body, *id)?.tensor()?;
    let rank = item.rank().unwrap_or(0);
    let dims: Vec<usize> = (0..rank).map(|axis| item.size(axis).unwrap_or(0)).collect();
    stack::empty(item.dtype, &dims, axis_of(axis, rank + 1)?)
}
