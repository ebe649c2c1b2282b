//! The meaning of an operator: its arity, types and work. It knows no device, layout, packed weights or threads.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use crate::error::Result;
use crate::types::{Type, Types};
use crate::work::Work;

/// What an operator's struct states about itself. The struct's fields are its attributes; the plan stores them.
///
/// How a device computes it is the matter of its [kernels](crate::kernel::Kernel).
pub trait Operator: Debug + Send + Sync {
    /// How many inputs and outputs the operator takes. Optional inputs in the middle may be absent.
    fn arity(&self) -> Arity;

    /// The outputs' types from the inputs' types: refuses dtypes and ranks that no kernel is written for, and gives every
    /// size that follows from known sizes. `None` stands for an absent optional input.
    ///
    /// # Errors
    /// The inputs' dtypes, ranks or known sizes do not fit the operator.
    fn infer(&self, inputs: &Types) -> Result<Vec<Type>>;

    /// Checks the types that a plan states for the outputs, which agree with those of [`infer`](Operator::infer): refuses
    /// sizes of outputs that no kernel is written for, where the inputs do not tell them. `None` stands for an output that
    /// nobody reads. By default, there is nothing more to check.
    ///
    /// # Errors
    /// The outputs' sizes do not fit the operator.
    fn check(&self, _inputs: &Types, _outputs: &[Option<&Type>]) -> Result<()> {
        Ok(())
    }

    /// Where the operator runs by its nature, whatever its attributes and types.
    fn kind() -> Kind
    where
        Self: Sized,
    {
        Kind::Computation
    }

    /// What the operator reads of an input.
    fn needs(&self, _input: usize) -> Needs {
        Needs::Elements
    }

    /// Whether an output may share storage with input `input` (be a view of it, or the input itself): then the storage
    /// lives as long as both, and is never written in place before both are dead.
    fn shares(&self, _input: usize) -> bool {
        false
    }

    /// The arithmetic and memory traffic of a run on inputs and outputs of these sizes. By default, an operator reads every
    /// input and writes every output once. `None` for views, for an operator with nested graphs, and where a size is not
    /// known.
    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let is_view = (0..inputs.len()).any(|i| self.shares(i));
        Work::moving(inputs, outputs).filter(|_| !is_view)
    }
}

/// Where an operator runs by its nature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On any device that has a kernel for it.
    Computation,
    /// Where its first input is: its output is a view of it.
    View,
    /// On the host: it works on strings, sequences, optionals, nested graphs or dimensions.
    Host,
}

/// What an operator reads of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The elements, on the device where the step runs.
    Elements,
    /// The elements, on the host wherever the step runs: axes, sizes and the like.
    Numbers,
    /// The dimensions alone.
    Dims,
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
