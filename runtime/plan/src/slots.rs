//! The slots of a running block, and the moves of values between them and the steps.

use std::cell::RefCell;
use std::ops::Deref;

use candle_plan_descriptors::broadcast::Dims;
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::kernel::Input;
use crate::memory::Bound;
use crate::prepare::{Operand, PreparedStep, SlotId};
use crate::value::Value;

/// The values of a running block. A memory bound counts them.
pub(crate) struct Slots<'b> {
    values: Vec<Option<Value>>,
    bound: Option<&'b Bound<'b>>,
}

/// The memory of slots that no block uses. The next block takes it, so the iterations of a loop do not allocate slots.
#[derive(Default)]
pub(crate) struct Spare(RefCell<Vec<Vec<Option<Value>>>>);

impl Spare {
    /// Returns `count` empty slots.
    pub fn slots<'b>(&self, count: usize, bound: Option<&'b Bound<'b>>) -> Slots<'b> {
        let mut values = self.0.borrow_mut().pop().unwrap_or_default();
        values.resize_with(count, || None);
        Slots { values, bound }
    }

    /// Drops the values in slots, and keeps the memory of the slots.
    pub fn keep(&self, slots: Slots) {
        let mut values = slots.values;
        values.clear();
        self.0.borrow_mut().push(values);
    }
}

impl<'b> Slots<'b> {
    /// The memory bound of the block.
    pub fn bound(&self) -> Option<&'b Bound<'b>> {
        self.bound
    }

    /// Whether the values are within the bound.
    #[inline]
    pub fn fit(&self) -> bool {
        self.bound.is_none_or(|bound| bound.fits(&self.values))
    }

    /// Puts an input of the block into a slot. The bound knows it.
    #[inline]
    pub fn lend(&mut self, slot: SlotId, value: Value) {
        if let Some(bound) = self.bound {
            bound.lend(&value);
        }
        self.values[slot.at()] = Some(value);
    }

    /// Puts a value into a slot, and drops the previous one.
    #[inline]
    pub fn set(&mut self, slot: SlotId, value: Value) {
        if let Some(bound) = self.bound {
            bound.add(&value);
        }
        self.put(slot, value);
    }

    /// Like [`Slots::set`], for a result of a step, which the bound already counts. Drops the result if it has no slot.
    #[inline]
    pub fn put_result(&mut self, slot: Option<SlotId>, value: Value) {
        match (slot, self.bound) {
            (Some(slot), _) => self.put(slot, value),
            (None, Some(bound)) => bound.remove(&value),
            (None, None) => {}
        }
    }

    #[inline]
    fn put(&mut self, slot: SlotId, value: Value) {
        if let Some(bound) = self.bound {
            self.uncount(slot, bound);
        }
        self.values[slot.at()] = Some(value);
    }

    /// Takes the value out of a slot for a step. The bound counts it until the step [has run](Bound::run).
    #[inline]
    pub fn take(&mut self, slot: SlotId) -> Option<Value> {
        self.values[slot.at()].take()
    }

    /// Drops the value of a slot.
    #[inline]
    pub fn clear(&mut self, slot: SlotId) {
        if let Some(bound) = self.bound {
            self.uncount(slot, bound);
        }
        self.values[slot.at()] = None;
    }

    /// Stops counting the value of a slot, which leaves it.
    fn uncount(&self, slot: SlotId, bound: &Bound) {
        if let Some(value) = &self.values[slot.at()] {
            bound.remove(value);
        }
    }
}

impl Deref for Slots<'_> {
    type Target = [Option<Value>];

    fn deref(&self) -> &[Option<Value>] {
        &self.values
    }
}

/// Takes over the inputs that die with the step, and records their outlines. The other inputs are still absent.
pub(crate) fn take<'a>(
    step: &PreparedStep,
    slots: &mut Slots,
    inputs: &mut SmallVec<[Input<'a>; 4]>,
    outlines: &mut SmallVec<[Outline; 2]>,
) {
    for (at, operand) in step.inputs.iter().enumerate() {
        let Operand::Dying(slot) = *operand else {
            inputs.push(Input::Absent);
            continue;
        };
        if let Some(outline) = slots[slot.at()].as_ref().and_then(|value| Outline::of(at, value)) {
            outlines.push(outline);
        }
        inputs.push(slots.take(slot).map_or(Input::Absent, Input::Owned));
    }
}

/// Passes a step's input on as its output.
pub(crate) fn pass(step: &PreparedStep, slots: &mut Slots) {
    if let (Some(Some(from)), Some(Some(to))) = (step.reads.first(), step.outputs.first()) {
        match slots[from.at()].clone() {
            Some(value) => slots.set(*to, value),
            None => slots.clear(*to),
        }
    }
    step.drops.iter().for_each(|slot| slots.clear(*slot));
}

/// Frees the values that die with a step that does not run.
pub(crate) fn skip(step: &PreparedStep, slots: &mut Slots) {
    for operand in &step.inputs {
        if let Operand::Dying(slot) = *operand {
            slots.clear(slot);
        }
    }
    step.drops.iter().for_each(|slot| slots.clear(*slot));
}

/// The description of an input that the step has taken over, for error messages.
pub(crate) struct Outline {
    pub input: usize,
    /// `None` for a sequence.
    pub dtype: Option<DType>,
    /// For a sequence, the number of its items.
    pub dims: Dims,
}

impl Outline {
    fn of(input: usize, value: &Value) -> Option<Outline> {
        match value {
            Value::Tensor(array) => {
                Some(Outline { input, dtype: Some(array.dtype()), dims: Dims::from_slice(array.dims()) })
            }
            Value::Sequence(items) => Some(Outline { input, dtype: None, dims: Dims::from_slice(&[items.len()]) }),
            _ => None,
        }
    }
}
