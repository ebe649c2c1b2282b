//! Moves values between the slots of a running block and its steps.

use candle_plan_descriptors::broadcast::Dims;
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::kernel::Input;
use crate::prepare::{Operand, PreparedStep};
use crate::value::Value;

/// Takes over the inputs that die with the step, and records their outlines. The other inputs are still absent.
pub(crate) fn take<'a>(
    step: &PreparedStep,
    slots: &mut [Option<Value>],
    inputs: &mut SmallVec<[Input<'a>; 4]>,
    outlines: &mut SmallVec<[Outline; 2]>,
) {
    for (at, operand) in step.inputs.iter().enumerate() {
        let Operand::Dying(slot) = *operand else {
            inputs.push(Input::Absent);
            continue;
        };
        let slot = &mut slots[slot.at()];
        if let Some(outline) = slot.as_ref().and_then(|value| Outline::of(at, value)) {
            outlines.push(outline);
        }
        inputs.push(slot.take().map_or(Input::Absent, Input::Owned));
    }
}

/// Passes a step's input on as its output.
pub(crate) fn pass(step: &PreparedStep, slots: &mut [Option<Value>]) {
    if let (Some(Some(from)), Some(Some(to))) = (step.reads.first(), step.outputs.first()) {
        slots[to.at()] = slots[from.at()].clone();
    }
    for slot in &step.drops {
        slots[slot.at()] = None;
    }
}

/// Frees the values that die with a step that does not run.
pub(crate) fn skip(step: &PreparedStep, slots: &mut [Option<Value>]) {
    for operand in &step.inputs {
        if let Operand::Dying(slot) = *operand {
            slots[slot.at()] = None;
        }
    }
    for slot in &step.drops {
        slots[slot.at()] = None;
    }
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
