//! The interface between an op and everything else: what it takes, what it gives, how it runs.

use std::any::Any;
use std::fmt::Debug;
use std::ops::RangeInclusive;

use candle_plan_device::Gpu;
use candle_plan_kernels::threads::Threads;

use crate::device::{Needs, OnDevice, Placement};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::layout::Blocked;
use crate::plan::Block;
use crate::types::{TensorType, Type};
use crate::value::{Array, Items, Value};
use crate::work::Work;

/// What an op's struct states about itself. The struct's fields are its attributes; the plan stores them.
///
/// A kernel never assumes that its inputs are well-formed beyond what [`Kernel::infer`] checked: shapes may be symbolic
/// until a run, so `run` checks them and returns an error.
pub trait Kernel: Any + Debug + Send + Sync {
    /// How many inputs and outputs the op takes. Optional inputs in the middle may be absent.
    fn arity(&self) -> Arity;

    /// The outputs' types from the inputs' types: refuses dtypes and ranks that `run` is not written for, and gives
    /// every size that follows from known sizes. `None` stands for an absent optional input.
    ///
    /// # Errors
    /// The inputs' dtypes, ranks or known sizes do not fit the op.
    fn infer(&self, inputs: &Types) -> Result<Vec<Type>>;

    /// The inputs whose buffer `run` can [take](Call::take) for output 0 when nobody needs them later.
    fn in_place(&self) -> &'static [usize] {
        &[]
    }

    /// Whether `run` takes input `input` over where it is a sequence that nobody reads later: to change it where it stands, or
    /// to hand it on to a block.
    fn takes_sequence(&self, _input: usize) -> bool {
        false
    }

    /// Whether an output may share storage with input `input` (be a view of it, or the input itself): then the storage
    /// lives as long as both, and is never written in place before both are dead.
    fn shares(&self, _input: usize) -> bool {
        false
    }

    /// Work done once on inputs that are constants (packing weights, say). The result is given to every `run`.
    ///
    /// # Errors
    /// The constants do not fit the op.
    fn prepack(&self, _constants: &Constants) -> Result<Option<Packed>> {
        Ok(None)
    }

    /// Whether `run` asks input `input` for no more than its type where [`Kernel::prepack`] made something of it: the
    /// elements of a constant need not be kept then.
    fn is_replaced(&self, _input: usize) -> bool {
        false
    }

    /// How the op runs with what [`Kernel::prepack`] made: which kernel was chosen, and what was packed for it.
    fn form(&self, _packed: Option<&Packed>) -> Form {
        Form::default()
    }

    /// How the op runs on images in blocks of channels, if it can; `outputs` are the types that it gives.
    fn blocked(&self, _operands: &Constants, _outputs: &[Option<&Type>]) -> Option<Blocked> {
        None
    }

    /// The kernel that does this one's work and then that of `next`, which alone reads the one output, as input 0:
    /// where that takes less time than one after the other. It takes this one's inputs, then those of `next` but input 0.
    fn with_next(&self, _operands: &Constants, _next: &dyn Kernel, _of_next: &Constants) -> Option<Box<dyn Kernel>> {
        None
    }

    /// Where steps of the op run when the device is a GPU, whatever their attributes and types: what `candlec ops` lists.
    /// An op says it with the macro [`on_device!`](crate::device::on_device).
    fn placement() -> Placement
    where
        Self: Sized;

    /// How this step runs on a GPU: as [`Kernel::placement`] says, or [`OnDevice::NoKernel`] where its types or attributes
    /// are ones that the kernel is not written for.
    ///
    /// # Errors
    /// The GPU has no room for what the kernel needs there.
    fn on_device(&self, operands: &Constants, gpu: &Gpu) -> Result<OnDevice>;

    /// What is wrong where the op's kernel on a device finds a fault in a value.
    fn fault(&self) -> &'static str {
        "a value is one that it cannot take"
    }

    /// What the op needs of an input: its elements, unless it says so.
    fn needs(&self, _input: usize) -> Needs {
        Needs::Elements
    }

    /// The nested graphs, in the order in which [`Call::run_block`] numbers them.
    fn blocks(&self) -> Vec<&Block> {
        Vec::new()
    }

    /// The output that output `index` of every nested graph becomes as it is; `None` for one that the op looks at, or puts
    /// together.
    fn passes_on(&self, _index: usize) -> Option<usize> {
        None
    }

    /// What a run on inputs and outputs of these sizes has to do: as written here, it reads every input and writes every
    /// output once. `None` for views, for what runs blocks, and where a size is not known.
    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let moves = self.blocks().is_empty() && !(0..inputs.len()).any(|i| self.shares(i));
        Work::moving(inputs, outputs).filter(|_| moves)
    }

    /// The bytes that a run on inputs of these sizes, with what [`Kernel::prepack`] made, holds beside its inputs and
    /// outputs: images in another layout, say. 0 where a size is not known.
    fn scratch(&self, _packed: Option<&Packed>, _inputs: &Types) -> usize {
        0
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// The inputs do not fit the op; the executor adds the place.
    fn run(&self, call: &mut Call) -> Result<Vec<Value>>;
}

/// How many inputs and outputs a step of an op may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arity {
    /// The number of inputs, absent ones counted.
    pub inputs: RangeInclusive<usize>,
    /// The number of outputs, unused ones counted.
    pub outputs: RangeInclusive<usize>,
}

impl Arity {
    /// Exactly `inputs` inputs and `outputs` outputs.
    pub fn exact(inputs: usize, outputs: usize) -> Arity {
        Arity { inputs: inputs..=inputs, outputs: outputs..=outputs }
    }

    /// One output, and a number of inputs in a range.
    pub fn inputs(inputs: RangeInclusive<usize>) -> Arity {
        Arity { inputs, outputs: 1..=1 }
    }
}

/// What prepack made: the op's own type.
pub type Packed = Box<dyn Any + Send + Sync>;

/// The types of a step's inputs, as [`Kernel::infer`] sees them.
pub struct Types<'a> {
    /// One entry an input; `None` for an absent one.
    pub inputs: &'a [Option<&'a Type>],
    /// How many outputs the step has.
    pub outputs: usize,
}

impl Types<'_> {
    /// The number of inputs, absent ones counted.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Input `i`, which must be there.
    pub fn get(&self, i: usize) -> Result<&Type> {
        self.optional(i).ok_or_else(|| Error::op(format!("input {i} is missing")))
    }

    /// Input `i`, if it is there.
    pub fn optional(&self, i: usize) -> Option<&Type> {
        self.inputs.get(i).copied().flatten()
    }

    /// Input `i`, which must be a tensor.
    pub fn tensor(&self, i: usize) -> Result<&TensorType> {
        self.get(i)?.tensor().map_err(|error| Error::op(format!("input {i}: {error}")))
    }

    /// Input `i`, a tensor if it is there.
    pub fn optional_tensor(&self, i: usize) -> Result<Option<&TensorType>> {
        self.optional(i).map(Type::tensor).transpose()
    }
}

/// The inputs of a step that are constants, as [`Kernel::prepack`] sees them, and the types of all.
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
    /// What [`Kernel::prepack`] made.
    pub packed: Option<&'a Packed>,
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

    /// What [`Kernel::prepack`] made, if it made a `P`.
    pub fn packed<P: 'static>(&self) -> Option<&'a P> {
        self.packed.and_then(|packed| packed.downcast_ref())
    }

    /// Runs nested graph `index`.
    ///
    /// # Errors
    /// A step of the block failed.
    pub fn run_block(&self, index: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.blocks.run(index, inputs)
    }
}
