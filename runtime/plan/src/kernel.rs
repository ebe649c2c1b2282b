//! A way to compute an operator: prepare makes it once, and the executor runs it.

use std::fmt::Debug;

use candle_plan_kernels::threads::Threads;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::form::{Alternative, KernelForm};
use crate::ids::BlockId;
use crate::types::{Type, Types};
use crate::value::{Array, Items, Value};

/// An implementation of one or more operators. It owns its packed weights.
///
/// A kernel assumes no more about its inputs than [`Operator::infer`](crate::operator::Operator::infer) checked.
/// Shapes may be symbolic until a run, so `run` checks them and returns an error.
pub trait Kernel: Debug + Send + Sync {
    /// Whether `run` [takes](Call::take) the storage of input `input`, whose elements have type `dtype`, for output 0 if no
    /// later step reads it and the output has its type.
    fn takes(&self, _input: usize, _dtype: DType) -> bool {
        false
    }

    /// Whether `run` changes input `input`, a sequence, in place if no later step reads it.
    fn takes_sequence(&self, _input: usize) -> bool {
        false
    }

    /// Whether `run` reads the [storage](Call::storage) of input `input` if it is a tensor that [grows](Value::Grown) along
    /// an axis, which is 1 for the last axis, 2 for the one before it, and so on. Otherwise, a run gives the kernel a copy.
    fn reads_grown(&self, _input: usize, _from_end: usize) -> bool {
        false
    }

    /// Whether packed weights replace the elements of input `input`. Then `run` reads only the type of the input, and
    /// the runtime need not keep the elements of a constant.
    fn is_replaced(&self, _input: usize) -> bool {
        false
    }

    /// The kernel's name and parameters, and the bytes of its packed weights.
    fn form(&self) -> KernelForm {
        KernelForm::default()
    }

    /// The forms that a planner compares for inputs of these types, if the kernel has several. They include the form that
    /// [`form`](Kernel::form) names, unless the planner chooses in every run. The planner assumes typical values for unknown
    /// sizes.
    fn alternatives(&self, _inputs: &Types) -> Vec<Alternative> {
        Vec::new()
    }

    /// An upper bound in bytes on the scratch memory of a run on inputs of these sizes, such as images in another
    /// layout: every buffer that `run` allocates beside the outputs, also after it has freed others. Buffers that fit a
    /// [cache](candle_plan_memory::buffer::CACHED) do not count. `None` if the kernel states no bound, or a size is unknown.
    fn scratch(&self, _inputs: &Types) -> Option<usize> {
        None
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// The inputs do not fit the operator. The executor adds the step's place.
    fn run(&self, call: &mut Call) -> Result<Vec<Value>>;
}

/// The constant inputs of a step, and the types of all its inputs. They decide the choice of a kernel.
#[derive(Clone, Copy)]
pub struct Constants<'a> {
    /// One entry per input; `None` if the input is absent or not constant.
    pub values: &'a [Option<&'a Value>],
    /// One entry per input; `None` for an absent one.
    pub types: &'a [Option<&'a Type>],
}

/// How much memory packed weights may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// As much as the fastest run needs.
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

/// Runs a step's nested graphs. The executor implements it for [`Call::run_block`].
pub trait Blocks {
    /// Runs a block on its inputs, in the block's order. Takes the inputs, and appends the outputs.
    ///
    /// # Errors
    /// A step of the block failed.
    fn run(&self, id: BlockId, inputs: &mut Vec<Value>, outputs: &mut Vec<Value>) -> Result<()>;
}

/// The nested graphs of a step that has none.
pub(crate) struct NoBlocks;

impl Blocks for NoBlocks {
    fn run(&self, id: BlockId, _: &mut Vec<Value>, _: &mut Vec<Value>) -> Result<()> {
        Err(Error::op(format!("there is no block {id}")))
    }
}

/// One execution of a step.
pub struct Call<'a, 'v> {
    /// One entry per input; [`Input::Absent`] for an absent one.
    pub inputs: &'a mut [Input<'v>],
    /// The number of outputs of the step. The executor drops results beyond it.
    pub outputs: usize,
    /// The session's threads.
    pub threads: &'a Threads,
    /// The step's nested graphs.
    pub blocks: &'a dyn Blocks,
}

/// An input of one execution.
pub enum Input<'a> {
    /// An absent optional input.
    Absent,
    /// A value that a later step reads, or that this op does not overwrite.
    Shared(&'a Value),
    /// A value that no later step reads.
    Owned(Value),
}

impl<'a> Call<'a, '_> {
    /// The number of inputs, including absent ones.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Input `i`, if it is present.
    pub fn optional(&self, i: usize) -> Option<&Value> {
        match self.inputs.get(i)? {
            Input::Absent => None,
            Input::Shared(value) => Some(value),
            Input::Owned(value) => Some(value),
        }
    }

    /// Input `i`, which must be present.
    pub fn value(&self, i: usize) -> Result<&Value> {
        self.optional(i).ok_or_else(|| Error::op(format!("input {i} is missing")))
    }

    /// Input `i`, which must be a tensor.
    #[inline]
    pub fn tensor(&self, i: usize) -> Result<&Array> {
        match self.inputs.get(i) {
            Some(Input::Shared(Value::Tensor(array)) | Input::Owned(Value::Tensor(array))) => Ok(array),
            _ => self.tensor_of_others(i),
        }
    }

    /// Input `i`, whatever it is, as a tensor.
    #[cold]
    fn tensor_of_others(&self, i: usize) -> Result<&Array> {
        self.value(i)?.tensor().map_err(|error| Error::op(format!("input {i}: {error}")))
    }

    /// The storage of input `i`, which must be a tensor. If it [grows](Value::Grown), its storage is longer along this axis.
    pub fn storage(&self, i: usize) -> Result<&Array> {
        match self.value(i)? {
            Value::Grown(grown) => Ok(grown.storage().0),
            _ => self.tensor(i),
        }
    }

    /// Input `i` as a tensor, if it is present. An empty optional counts as absent.
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

    /// Takes the tensor of input `i`, so that `run` can write an output into it; the input is absent afterwards. The
    /// input must be one that the kernel [takes](Kernel::takes), no later step may read it, and nothing else may share its storage.
    /// Otherwise the result is `None`, and `run` allocates an output.
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

    /// The items of input `i`, a sequence. If no later step reads it, they are moved without a copy, and it is absent
    /// afterwards.
    ///
    /// # Errors
    /// The input is not a sequence.
    pub fn take_items(&mut self, i: usize) -> Result<Items> {
        match self.take_value(i)? {
            Value::Sequence(items) => Ok(items),
            other => Err(Error::op(format!("expected a sequence, found {}", other.describe()))),
        }
    }

    /// Input `i`, which must be present. A sequence that no later step reads is moved, and is absent afterwards.
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

    /// Runs a nested graph. Takes its inputs, and appends its outputs. So a loop can use both lists again.
    ///
    /// # Errors
    /// A step of the block failed.
    pub fn run_block(&self, id: BlockId, inputs: &mut Vec<Value>, outputs: &mut Vec<Value>) -> Result<()> {
        self.blocks.run(id, inputs, outputs)
    }
}
