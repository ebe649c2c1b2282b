//! A way to compute an operator: what prepare makes once, and the executor runs.

use std::fmt::Debug;

use candle_plan_device::Report;
use candle_plan_kernels::threads::Threads;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::types::{Type, Types};
use crate::value::{Array, Items, Value};

/// A way to compute what one or more operators mean. It owns its packed weights.
///
/// A kernel never assumes that its inputs are well-formed beyond what [`Operator::infer`](crate::operator::Operator::infer)
/// checked: shapes may be symbolic until a run, so `run` checks them and returns an error.
pub trait Kernel: Debug + Send + Sync {
    /// The inputs whose buffer `run` can [take](Call::take) for output 0 when nobody needs them later.
    fn in_place(&self) -> &'static [usize] {
        &[]
    }

    /// Whether `run` changes input `input`, a sequence, where it is when nobody needs it later.
    fn takes_sequence(&self, _input: usize) -> bool {
        false
    }

    /// Whether packed weights replace the elements of input `input`: `run` then asks it for no more than its type, and the
    /// elements of a constant need not be kept.
    fn is_replaced(&self, _input: usize) -> bool {
        false
    }

    /// The kernel's name and parameters, and the bytes of its packed weights.
    fn form(&self) -> Form {
        Form::default()
    }

    /// The most bytes that a run on inputs of these sizes holds beside its inputs and outputs: images in another layout, say.
    /// Buffers that fit a [cache](candle_plan_kernels::buffer::CACHED) do not count. `None` where the kernel does not tell, or
    /// a size is not known.
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        Some(0)
    }

    /// Says what is wrong with a value that the kernel, on a device, reported.
    fn fault(&self, report: &Report) -> String {
        report.to_string()
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// The inputs do not fit the operator; the executor adds the place.
    fn run(&self, call: &mut Call) -> Result<Vec<Value>>;
}

/// The inputs of a step that are constants, and the types of all inputs: what a kernel is chosen and packed from.
pub struct Constants<'a> {
    /// One entry an input; `None` for one that is absent or not constant.
    pub values: &'a [Option<&'a Value>],
    /// One entry an input; `None` for an absent one.
    pub types: &'a [Option<&'a Type>],
    /// What may be made of them.
    pub memory: Memory,
}

/// How much memory what is packed of constants may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// As much as makes a run fastest.
    #[default]
    Full,
    /// About as much as the constants themselves: no transformed copies, which are larger.
    Low,
}

impl Constants<'_> {
    /// The element type of input `i`, if it is a tensor.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        let kind = self.types.get(i).copied().flatten()?;
        kind.tensor().ok().map(|kind| kind.dtype)
    }

    /// Input `i`, if it is a constant tensor.
    pub fn tensor(&self, i: usize) -> Option<&Array> {
        match self.values.get(i).copied().flatten() {
            Some(Value::Tensor(array)) => Some(array),
            _ => None,
        }
    }
}

/// Runs a step's nested graphs; the executor's side of [`Call::run_block`].
pub trait Blocks {
    /// Runs block `index` on its inputs, in the block's order.
    ///
    /// # Errors
    /// A step of the block failed.
    fn run(&self, index: usize, inputs: Vec<Value>) -> Result<Vec<Value>>;
}

/// One execution of a step.
pub struct Call<'a, 'v> {
    /// One entry an input; `None` for an absent one.
    pub inputs: &'a mut [Input<'v>],
    /// How many outputs the step has; results beyond it are dropped.
    pub outputs: usize,
    /// The session's threads.
    pub threads: &'a Threads,
    /// The step's nested graphs.
    pub blocks: &'a dyn Blocks,
}

/// An input of one execution.
pub enum Input<'a> {
    /// An optional input that is not there.
    Absent,
    /// A value that is needed later, or that this op does not rewrite.
    Shared(&'a Value),
    /// A value that dies with this step.
    Owned(Value),
}

impl<'a> Call<'a, '_> {
    /// The number of inputs, absent ones counted.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Input `i`, if it is there.
    pub fn optional(&self, i: usize) -> Option<&Value> {
        match self.inputs.get(i)? {
            Input::Absent => None,
            Input::Shared(value) => Some(value),
            Input::Owned(value) => Some(value),
        }
    }

    /// Input `i`, which must be there.
    pub fn value(&self, i: usize) -> Result<&Value> {
        self.optional(i).ok_or_else(|| Error::op(format!("input {i} is missing")))
    }

    /// Input `i`, which must be a tensor.
    pub fn tensor(&self, i: usize) -> Result<&Array> {
        self.value(i)?.tensor().map_err(|error| Error::op(format!("input {i}: {error}")))
    }

    /// Input `i`, a tensor if it is there (an empty optional counts as absent).
    pub fn optional_tensor(&self, i: usize) -> Result<Option<&Array>> {
        match self.optional(i) {
            None | Some(Value::None) => Ok(None),
            Some(value) => value.tensor().map(Some),
        }
    }

    /// The elements of tensor input `i`, which must be of type `T`.
    pub fn read<T: Element>(&self, i: usize) -> Result<&[T]> {
        self.tensor(i)?.read().map_err(|error| Error::op(format!("input {i}: {error}")))
    }

    /// The tensor of input `i` to write into, when it is one of [`Kernel::in_place`], dies here and shares its storage
    /// with nobody; the input is gone afterwards. `None`: allocate an output.
    pub fn take(&mut self, i: usize) -> Option<Array> {
        let input = self.inputs.get_mut(i)?;
        if !matches!(input, Input::Owned(Value::Tensor(array)) if array.is_alone()) {
            return None;
        }
        match std::mem::replace(input, Input::Absent) {
            Input::Owned(Value::Tensor(array)) => Some(array),
            _ => None,
        }
    }

    /// The items of input `i`, a sequence: without a copy where it dies here, and is gone afterwards.
    ///
    /// # Errors
    /// The input is no sequence.
    pub fn take_items(&mut self, i: usize) -> Result<Items> {
        match self.take_value(i)? {
            Value::Sequence(items) => Ok(items),
            other => Err(Error::op(format!("expected a sequence, found {}", other.describe()))),
        }
    }

    /// Input `i`, which must be there; a sequence that dies here is gone afterwards.
    ///
    /// # Errors
    /// The input is missing.
    pub fn take_value(&mut self, i: usize) -> Result<Value> {
        let input = self.inputs.get_mut(i).filter(|input| matches!(input, Input::Owned(Value::Sequence(_))));
        match input.map(|input| std::mem::replace(input, Input::Absent)) {
            Some(Input::Owned(value)) => Ok(value),
            _ => self.value(i).cloned(),
        }
    }

    /// Runs nested graph `index`.
    ///
    /// # Errors
    /// A step of the block failed.
    pub fn run_block(&self, index: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.blocks.run(index, inputs)
    }
}
