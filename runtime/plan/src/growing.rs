//! The values of a state that grow in place during a run.

use std::cell::RefCell;

use candle_plan_descriptors::strided::View;
use candle_plan_kernels::strided::copy;
use candle_plan_kernels::threads::Threads;

use crate::array::words;
use crate::by_width;
use crate::error::{Error, Result};
use crate::kernel::{Call, Input};
use crate::operator::Needs;
use crate::prepare::PreparedStep;
use crate::value::{Array, Grown, Value};

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

impl Grown {
    /// The elements of a tensor that grows, in row-major order: a view if nothing lies between them, or a copy.
    ///
    /// # Errors
    /// The allocation fails.
    pub fn to_array(&self, threads: &Threads) -> Result<Array> {
        let (storage, axis) = self.storage();
        if self.dims()[..axis].iter().all(|&dim| dim == 1) {
            return storage.narrow_outer(axis, 0, self.length());
        }
        let mut view = View::contiguous(storage.dims());
        view.dims[axis] = self.length();
        by_width!(self.dtype(), W => {
            let elements = words::read::<W>(storage)?;
            let out = words::alloc_uninit::<W>(&view.dims)?.overwrite(|out| copy(elements, &view, out, threads));
            words::array(out, &view.dims, self.dtype())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(dims: &[usize]) -> Array {
        let count = dims.iter().product::<usize>() as u16;
        Array::new((0..count).collect(), dims).expect("they fill the shape")
    }

    #[test]
    fn the_outermost_axis_needs_no_copy() {
        let mut grown = Grown::of(&numbers(&[1, 2, 2]), 1, 4).expect("there is memory");
        let longer = grown.appended(&numbers(&[1, 1, 2])).expect("it fits");
        let view = longer.to_array(&Threads::serial()).expect("a view");
        assert!(view.shares_storage_with(longer.storage().0));
        assert_eq!((view.dims(), view.read::<u16>().expect("uint16")), (&[1, 3, 2][..], &[0, 1, 2, 3, 0, 1][..]));
    }

    #[test]
    fn another_axis_is_copied_without_the_spare_elements() {
        let grown = Grown::of(&numbers(&[2, 2, 3]), 1, 4).expect("there is memory");
        let copy = grown.to_array(&Threads::new(2).expect("threads")).expect("there is memory");
        assert!(!copy.shares_storage_with(grown.storage().0));
        assert_eq!(
            (copy.dims(), copy.read::<u16>().expect("uint16")),
            (&[2, 2, 3][..], &(0..12).collect::<Vec<_>>()[..])
        );
    }
}
