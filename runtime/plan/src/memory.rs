//! The memory bound of a run whose plan has `max_memory`.

use std::cell::RefCell;

use candle_plan_memory::buffer;
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expected::Expected;
use crate::kernel::{Call, Input};
use crate::operator::Operator;
use crate::types::{TensorType, Type};
use crate::value::by_address::Addresses;
use crate::value::held::{Held, Holding, Outside};
use crate::value::storages::RECORD;
use crate::value::{Array, Value};

/// A bound on the bytes that the values of one block hold at once.
pub(crate) struct Bound<'c> {
    /// The most bytes of the values in slots, of the values that a step makes, and of the state.
    limit: usize,
    /// The values of the state, which the run holds from its start to its end.
    state: Option<&'c RefCell<Held>>,
    /// The values that the caller holds, and counts itself.
    outside: Outside<'c>,
    /// Whether these include all inputs of the block.
    lends: bool,
    /// The values in the block's slots.
    held: RefCell<Held>,
    expected: &'c Expected,
}

impl<'c> Bound<'c> {
    /// Bounds a block by `limit` bytes. Constants, and the values that are `lent` to the block, all its inputs or none, do not
    /// count. The values of the `state` count, although the run holds them outside of the block.
    pub fn new(
        limit: usize,
        state: Option<&'c RefCell<Held>>,
        (constants, lent): (&'c Addresses, &[Value]),
        expected: &'c Expected,
    ) -> Bound<'c> {
        let outside = Outside::of_constants(constants).and(lent.iter());
        Bound { limit, state, outside, lends: !lent.is_empty(), held: RefCell::default(), expected }
    }

    /// Counts an input of the block. A lent sequence takes no bytes, but its items have storages that are counted once.
    pub fn lend(&self, value: &Value) {
        if !self.lends || matches!(value, Value::Sequence(_)) {
            self.add(value);
        }
    }

    /// Counts a value that a slot receives.
    pub fn add(&self, value: &Value) {
        if !self.state.is_some_and(|state| state.borrow().holds(value)) {
            self.held.borrow_mut().add(value, &self.outside);
        }
    }

    /// Stops counting a value that leaves the block.
    pub fn remove(&self, value: &Value) {
        self.release(Holding::of(value));
    }

    fn release(&self, holding: Option<Holding>) {
        if let Some(holding) = holding {
            self.held.borrow_mut().remove(holding);
        }
    }

    /// The bytes of the values in slots, of other values of the block, which are counted, and of the state.
    fn bytes<'v>(&self, slots: &'v [Option<Value>], more: impl Iterator<Item = &'v Value>) -> usize {
        let of_state = self.state.map_or(0, |state| state.borrow().bytes(std::iter::empty()));
        self.held.borrow().bytes(slots.iter().flatten().chain(more)).saturating_add(of_state)
    }

    /// Whether the values in slots are within the bound. The inputs of a run may exceed it.
    pub fn fits(&self, slots: &[Option<Value>]) -> bool {
        self.bytes(slots, std::iter::empty()) <= self.limit
    }

    /// The bytes of the results of an operator, as far as they follow from the shapes of the inputs. `step` is the number of the
    /// step in the run.
    pub fn expected(&self, step: usize, operator: Option<&dyn Operator>, call: &Call) -> usize {
        operator.map_or(0, |operator| self.expected.bytes((step, operator), call))
    }

    /// Does the `work` of a step while `slots` hold the block's other values. The inputs that the step takes over are counted,
    /// and the results are afterwards. They should need `expected` bytes.
    ///
    /// # Errors
    /// The results do not fit beside these values. If the expected bytes do not fit, the step does not run.
    pub fn run(
        &self,
        expected: usize,
        slots: &[Option<Value>],
        call: &mut Call,
        work: impl FnOnce(&mut Call) -> Result<Vec<Value>>,
    ) -> Result<Vec<Value>> {
        let before = self.bytes(slots, call.inputs.iter().filter_map(owned));
        if before.saturating_add(expected) > self.limit {
            // The results may reuse the storage of inputs that die.
            self.check(self.without_owned(slots, call).saturating_add(expected).max(before))?;
        }
        let given: SmallVec<[Option<Holding>; 4]> =
            call.inputs.iter().map(|input| owned(input).and_then(Holding::of)).collect();
        let mut outputs = buffer::within(self.limit - before, || work(call))?;
        for (_, holding) in call.inputs.iter().zip(&given).filter(|(input, _)| owned(input).is_none()) {
            self.release(*holding);
        }
        outputs.iter().for_each(|output| self.add(output));
        self.check(self.bytes(slots, call.inputs.iter().filter_map(owned).chain(&outputs)))?;
        for (_, holding) in call.inputs.iter().zip(given).filter(|(input, _)| owned(input).is_some()) {
            self.release(holding);
        }
        outputs.drain(call.outputs.min(outputs.len())..).for_each(|output| self.remove(&output));
        Ok(outputs)
    }

    /// Makes a copy of a value of the state for a step that takes it over, and counts it. The copy takes `bytes` bytes.
    ///
    /// # Errors
    /// The copy does not fit beside the values in slots, or there is no memory.
    pub fn copy(&self, bytes: usize, slots: &[Option<Value>], copy: impl FnOnce() -> Result<Array>) -> Result<Value> {
        let before = self.bytes(slots, std::iter::empty());
        self.check(before.saturating_add(bytes))?;
        let copied = Value::from(buffer::within(self.limit - before, copy)?);
        self.add(&copied);
        Ok(copied)
    }

    /// The bytes of the values in slots.
    fn without_owned(&self, slots: &[Option<Value>], call: &Call) -> usize {
        call.inputs.iter().filter_map(owned).for_each(|value| self.remove(value));
        let bytes = self.bytes(slots, std::iter::empty());
        call.inputs.iter().filter_map(owned).for_each(|value| self.add(value));
        bytes
    }

    fn check(&self, needed: usize) -> Result<()> {
        match needed <= self.limit {
            true => Ok(()),
            false => Err(Error::Memory(format!(
                "the values need {needed} bytes, but max_memory leaves {}: raise it or use smaller inputs",
                self.limit
            ))),
        }
    }
}

/// The values that iterations of a loop made and the loop holds. The caller counts the loop's inputs.
pub(crate) struct Kept {
    /// The inputs, and the collected values.
    counted: Outside<'static>,
    bytes: usize,
}

impl Kept {
    /// Starts with no values.
    pub fn beside(call: &Call) -> Kept {
        let inputs = (0..call.len()).filter(|_| is_bounded()).filter_map(|i| call.optional(i));
        Kept { counted: Outside::of(inputs), bytes: 0 }
    }

    /// Counts a value that the loop holds to its end.
    pub fn collect(&mut self, value: &Value) {
        if is_bounded() {
            self.bytes = self.bytes.saturating_add(RECORD).saturating_add(self.counted.add(value));
        }
    }

    /// The bytes that are left for the next iteration, whose inputs are `values`.
    ///
    /// # Errors
    /// The values exceed the budget.
    pub fn left(&self, values: &[Value]) -> Result<usize> {
        if !is_bounded() {
            return Ok(usize::MAX);
        }
        let bytes = Held::bytes_of(values.iter(), &self.counted).saturating_add(self.bytes);
        let left = buffer::budget().checked_sub(bytes);
        left.ok_or_else(|| {
            Error::Memory(format!(
                "its iterations hold {bytes} bytes, but max_memory leaves {}: raise it or use smaller inputs",
                buffer::budget()
            ))
        })
    }
}

fn is_bounded() -> bool {
    buffer::budget() != usize::MAX
}

fn owned<'a>(input: &'a Input) -> Option<&'a Value> {
    match input {
        Input::Owned(value) => Some(value),
        _ => None,
    }
}

/// The bytes of the storages of values.
pub(crate) fn bytes_held<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> usize {
    Held::bytes_of(values, &Outside::default())
}

/// The type of a tensor or of strings.
pub(crate) fn type_of(value: &Value) -> Result<Type> {
    let dtype = match value {
        Value::Strings(_) => DType::String,
        Value::Grown(grown) => grown.dtype(),
        value => value.tensor()?.dtype(),
    };
    Ok(Type::Tensor(TensorType::sized(dtype, value.dims()?)))
}
