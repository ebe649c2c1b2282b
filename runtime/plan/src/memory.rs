//! The memory bound of a run whose plan has `max_memory`.

use std::cell::RefCell;
use std::iter;

use candle_plan_memory::buffer;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Call, Input, Kernel};
use crate::operator::Operator;
use crate::types::{TensorType, Type, Types};
use crate::value::held::{Held, Outside};
use crate::value::storages::{Addresses, RECORD};
use crate::value::Value;

/// A bound on the bytes that the values of one block hold at once.
pub(crate) struct Bound<'c> {
    limit: usize,
    /// The values that the caller holds, and counts itself.
    outside: Outside<'c>,
    /// The values in the block's slots.
    held: RefCell<Held>,
}

impl<'c> Bound<'c> {
    /// Bounds a block by the bytes that the caller has [left](buffer::budget). Constants, and values that are `lent` to
    /// the block, do not count.
    pub fn new(constants: &'c Addresses, lent: &[Value]) -> Bound<'c> {
        let outside = Outside::of_constants(constants).and(lent.iter());
        Bound { limit: buffer::budget(), outside, held: RefCell::default() }
    }

    /// Counts a value that a slot receives.
    pub fn add(&self, value: &Value) {
        self.held.borrow_mut().add(value, &self.outside);
    }

    /// Stops counting a value that leaves its slot.
    pub fn remove(&self, value: &Value) {
        self.held.borrow_mut().remove(value);
    }

    /// The bytes of the values in slots, and of other values of the block.
    fn bytes<'v>(&self, slots: &'v [Option<Value>], more: impl Iterator<Item = &'v Value> + Clone) -> usize {
        self.held.borrow_mut().bytes_with(slots.iter().flatten(), more, &self.outside)
    }

    /// Runs a step's kernel while `slots` hold the block's other values, which were [added](Bound::add). The operator, if
    /// it is known, infers the sizes of the results.
    ///
    /// # Errors
    /// The results do not fit beside these values. If their sizes follow from the inputs' shapes, the kernel does not
    /// run.
    pub fn run(
        &self,
        step: (&dyn Kernel, Option<&dyn Operator>),
        slots: &[Option<Value>],
        call: &mut Call,
    ) -> Result<Vec<Value>> {
        let (kernel, operator) = step;
        let shared = self.bytes(slots, iter::empty());
        let before = self.bytes(slots, call.inputs.iter().filter_map(owned));
        // The results may reuse the storage of inputs that die.
        self.check(shared.saturating_add(expected(operator, call)).max(before))?;
        let outputs = buffer::within(self.limit - before, || kernel.run(call))?;
        self.check(self.bytes(slots, call.inputs.iter().filter_map(owned).chain(&outputs)))?;
        Ok(outputs)
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

/// The bytes of the results, as far as they follow from the inputs' shapes.
fn expected(operator: Option<&dyn Operator>, call: &Call) -> usize {
    let Some(operator) = operator.filter(|operator| !(0..call.len()).any(|i| operator.shares(i))) else { return 0 };
    let types: Option<Vec<Option<Type>>> =
        (0..call.len()).map(|i| call.optional(i).map(type_of).transpose().ok()).collect();
    let Some(types) = types else { return 0 };
    let types: Vec<Option<&Type>> = types.iter().map(Option::as_ref).collect();
    let results = operator.infer(&Types::of(&types, call.outputs)).unwrap_or_default();
    results.iter().map(|kind| kind.tensor().map_or(0, TensorType::bytes)).fold(0, usize::saturating_add)
}

/// The type of a tensor or of strings.
pub(crate) fn type_of(value: &Value) -> Result<Type> {
    let dtype = match value {
        Value::Strings(_) => DType::String,
        value => value.tensor()?.dtype(),
    };
    Ok(Type::Tensor(TensorType::sized(dtype, value.dims()?)))
}
