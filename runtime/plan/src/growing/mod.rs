//! The values of a state that change in place during a run.
//!
//! [Prepare](crate::prepare) marks the steps that write rows into such values. Each of them has [`Edits`], which the run
//! applies to the storage of the state. The run keeps the rows that the edits replace, and writes them back if it fails.
//!
//! A run with a memory limit counts the storages of the state from its start to its end, also those that it does not read. A
//! storage that moves gets less spare capacity if little memory is left.

use std::cell::RefCell;

use candle_plan_descriptors::strided::View;
use candle_plan_device::Gpu;
use candle_plan_kernels::threads::Threads;

use crate::array::transfer::upload;
use crate::bail;
use crate::error::{Error, Result};
use crate::gpu::{copied, RowsOnGpu};
use crate::ids::PairId;
use crate::kernel::{Call, Input};
use crate::memory::Bound;
use crate::movable::copy_view;
use crate::operands::rows::writes_rows;
use crate::operator::Needs;
use crate::prepare::{Growth, PreparedStep};
use crate::value::by_address::Addresses;
use crate::value::grown::Former;
use crate::value::held::{Held, Holding, Outside};
use crate::value::rows::{Edits, Mover, OnHost};
use crate::value::{Array, Grown, Value};

/// The values of a state's pairs during a run.
pub(crate) struct Growing {
    values: RefCell<Vec<Option<Value>>>,
    /// The rows that steps have replaced, with their pairs.
    former: RefCell<Vec<(PairId, Vec<Former>)>>,
    /// The storages of these values and rows, if the run has a memory limit.
    held: Option<RefCell<Held>>,
}

impl Growing {
    /// The values of a state. With a memory limit, `constants` are those of the plan: values that share the storage of one do not
    /// count.
    pub fn of(values: Vec<Option<Value>>, constants: Option<&Addresses>) -> Growing {
        let held = constants.map(|constants| {
            let (mut held, constants) = (Held::default(), Outside::of_constants(constants));
            values.iter().flatten().for_each(|value| held.add(value, &constants));
            RefCell::new(held)
        });
        Growing { values: RefCell::new(values), former: RefCell::default(), held }
    }

    /// The storages that a run with a memory limit holds.
    pub fn held(&self) -> Option<&RefCell<Held>> {
        self.held.as_ref()
    }

    /// The bytes of these storages.
    pub fn bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.borrow().bytes(std::iter::empty()))
    }

    /// Returns the values as they were before the run, whose results no longer exist.
    ///
    /// # Errors
    /// The device fails.
    pub fn restored(self) -> Result<Vec<Option<Value>>> {
        let mut values = self.values.into_inner();
        for (pair, former) in self.former.into_inner() {
            if let Some(Some(Value::Grown(grown))) = values.get_mut(pair.at()) {
                let gpu = grown.storage().0.in_buffer().ok().map(|(buffer, _)| buffer.gpu().clone());
                with_mover(gpu.as_ref(), |mover| grown.restore(&former, mover))?;
            }
        }
        Ok(values)
    }

    /// Runs a step that writes rows into a value of the state. Input 0 of the step has only its dimensions.
    ///
    /// # Errors
    /// The rows do not fit, there is no memory, or the device fails.
    pub fn run(&self, step: &PreparedStep, call: &Call) -> Result<Vec<Value>> {
        let missing = || Error::op("there is no value that grows");
        let Growth { pair, axis } = step.grows.ok_or_else(missing)?;
        let mut values = self.values.borrow_mut();
        let count = values.len();
        let value = values.get_mut(pair.at()).and_then(Option::as_mut).ok_or_else(missing)?;
        let before = Holding::of(value);
        let grown = growing(value, axis, step.kernel.gpu(), call.threads)?;
        let Edits { length, list, filled } = edits(step, grown, call)?;
        let (former, edited) = with_mover(step.kernel.gpu(), |mover| {
            grown.reserve(length, count, mover)?;
            let former = grown.former(&list, mover)?;
            let edited = grown.edited(length, &list, call.tensor(1)?, mover);
            Ok((former, edited))
        })?;
        self.count(before, value, &former);
        self.former.borrow_mut().push((pair, former));
        Ok(vec![Value::Grown(Box::new(edited?.filled_to(filled)))])
    }

    /// Counts a value whose storage was `before`, and rows that were replaced.
    fn count(&self, before: Option<Holding>, value: &Value, former: &[Former]) {
        let Some(held) = &self.held else { return };
        let mut held = held.borrow_mut();
        before.into_iter().for_each(|before| held.remove(before));
        held.add(value, &Outside::default());
        former.iter().for_each(|former| held.add(&Value::from(former.rows()), &Outside::default()));
    }
}

/// Returns the rows that a step writes into a value of the state, which stands for its input 0.
///
/// # Errors
/// The inputs do not fit.
fn edits(step: &PreparedStep, grown: &Grown, call: &Call) -> Result<Edits> {
    let new = call.tensor(1)?;
    if new.dtype() != grown.dtype() {
        bail!("{} rows cannot be written into a {} tensor", new.dtype(), grown.dtype());
    }
    match step.ops.single().and_then(|op| writes_rows(op)) {
        Some(op) => op.edits(grown, call),
        None => bail!("the operator writes no rows in place"),
    }
}

/// Calls a function with the mover of a GPU, or of the host.
fn with_mover<T>(gpu: Option<&Gpu>, work: impl FnOnce(&dyn Mover) -> Result<T>) -> Result<T> {
    match gpu {
        Some(gpu) => work(&RowsOnGpu(gpu)),
        None => work(&OnHost),
    }
}

/// Turns a value of a state into one that grows along an axis on a GPU, or on the host, if it does not yet.
fn growing<'a>(value: &'a mut Value, axis: usize, gpu: Option<&Gpu>, threads: &Threads) -> Result<&'a mut Grown> {
    let is_there = |array: &Array| array.is_on_device() == gpu.is_some();
    if !matches!(value, Value::Grown(grown) if is_there(grown.storage().0) && grown.storage().1 == axis) {
        let array = match &*value {
            Value::Grown(grown) => grown.to_array(threads)?,
            other => other.tensor()?.clone(),
        };
        let array = match gpu {
            _ if is_there(&array) => array,
            Some(gpu) => upload(gpu, &array)?,
            None => array.to_host()?,
        };
        *value = Value::Grown(Box::new(Grown::of(&array, axis)?));
    }
    match value {
        Value::Grown(grown) => Ok(grown),
        other => Err(Error::op(format!("{} does not grow", other.describe()))),
    }
}

/// Copies the inputs that grow, and that the step's kernel cannot read. A step that needs only the dimensions gets no
/// elements. A memory limit, which counts the values in slots, counts the copies.
///
/// # Errors
/// There is no memory.
pub(crate) fn pack(
    step: &PreparedStep,
    (slots, bound): (&[Option<Value>], Option<&Bound>),
    inputs: &mut [Input],
    threads: &Threads,
) -> Result<()> {
    for (i, (input, _)) in inputs.iter_mut().zip(&step.packs).enumerate().filter(|(_, (_, packs))| packs.is_some()) {
        let grown = match input {
            Input::Shared(Value::Grown(grown)) => grown,
            Input::Owned(Value::Grown(grown)) => &*grown,
            _ => continue,
        };
        let packed = match (step.ops.needs(i), bound) {
            (Needs::Dims, _) => Array::hollow(grown.dims(), grown.dtype()).into(),
            (_, None) => grown.to_array(threads)?.into(),
            (_, Some(bound)) => bound.copy(grown.bytes_to_copy(), slots, || grown.to_array(threads))?,
        };
        *input = Input::Owned(packed);
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
        if storage.dims() == self.dims() {
            return Ok(storage.clone());
        }
        if self.is_outermost() {
            return storage.narrow_outer(axis, 0, self.length());
        }
        let mut view = View::contiguous(storage.dims());
        view.dims[axis] = self.length();
        match storage.is_on_device() {
            true => copied(storage.in_buffer()?.0.gpu(), storage, &view),
            false => copy_view(storage, &view, threads),
        }
    }

    /// The bytes of the copy that [`Grown::to_array`] makes; 0 for a view.
    pub fn bytes_to_copy(&self) -> usize {
        let is_view = self.storage().0.dims() == self.dims() || self.is_outermost();
        if is_view {
            0
        } else {
            self.bytes_of_elements()
        }
    }

    /// Whether all axes before that of the rows have size 1.
    fn is_outermost(&self) -> bool {
        self.dims()[..self.storage().1].iter().all(|&dim| dim == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(dims: &[usize]) -> Array {
        let count = dims.iter().product::<usize>() as u16;
        Array::new((0..count).collect(), dims).expect("they fill the shape")
    }

    /// A tensor with spare capacity along axis 1.
    fn spacious(dims: &[usize]) -> Grown {
        let mut grown = Grown::of(&numbers(dims), 1).expect("it has the axis");
        grown.move_to(16, &OnHost).expect("there is memory");
        grown
    }

    #[test]
    fn the_outermost_axis_needs_no_copy() {
        let grown = spacious(&[1, 2, 2]);
        let view = grown.to_array(&Threads::serial()).expect("a view");
        assert!(view.shares_storage_with(grown.storage().0));
        assert_eq!((view.dims(), view.read::<u16>().expect("uint16")), (&[1, 2, 2][..], &[0, 1, 2, 3][..]));
    }

    #[test]
    fn another_axis_is_copied_without_the_spare_elements() {
        let grown = spacious(&[2, 2, 3]);
        let copy = grown.to_array(&Threads::new(2).expect("threads")).expect("there is memory");
        assert!(!copy.shares_storage_with(grown.storage().0));
        assert_eq!(
            (copy.dims(), copy.read::<u16>().expect("uint16")),
            (&[2, 2, 3][..], &(0..12).collect::<Vec<_>>()[..])
        );
        let whole = Grown::of(&numbers(&[2, 2, 3]), 1).expect("it has the axis");
        let view = whole.to_array(&Threads::serial()).expect("a view");
        assert!(view.shares_storage_with(whole.storage().0));
    }
}
