//! CPU kernels: inputs and outputs of nested graphs.

use crate::bail;
use crate::dtype::Bool;
use crate::error::{Error, Result};
use crate::memory::Kept;
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

pub(super) fn is_true(value: &Value) -> Result<bool> {
    match value.tensor()?.read::<Bool>()?.first() {
        Some(first) => Ok(first.is_true()),
        None => bail!("a condition has no element"),
    }
}

pub(super) fn one_i64(array: &Array) -> Result<i64> {
    array.read::<i64>()?.first().copied().ok_or_else(|| Error::op("the number of iterations has no element"))
}
