//! The meaning of an operator: its arity, types and work. It does not depend on devices, layouts, packed weights or
//! threads.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use crate::error::Result;
use crate::types::{Type, Types};
use crate::work::Work;

/// The meaning of an operator. The fields of its struct are its attributes, which the plan stores.
///
/// Its [kernels](crate::kernel::Kernel) define how a device computes it.
pub trait Operator: Debug + Send + Sync {
    /// The numbers of inputs and outputs that the operator takes. Optional inputs in the middle may be absent.
    fn arity(&self) -> Arity;

    /// Infers the outputs' types from the inputs' types. It rejects dtypes and ranks that the operator does not accept,
    /// and computes every size that follows from known sizes. `None` stands for an absent optional input.
    ///
    /// # Errors
    /// The inputs' dtypes, ranks or known sizes do not fit the operator.
    fn infer(&self, inputs: &Types) -> Result<Vec<Type>>;

    /// Checks the types that a plan states for the outputs, which agree with those of [`infer`](Operator::infer). It
    /// refuses sizes that the operator does not accept, and that [`infer`](Operator::infer) cannot compute from the types of
    /// the inputs. `None` stands for an output that no step reads. By default, it checks nothing.
    ///
    /// # Errors
    /// The outputs' sizes do not fit the operator.
    fn check(&self, _inputs: &Types, _outputs: &[Option<&Type>]) -> Result<()> {
        Ok(())
    }

    /// The kind of operands, for all attributes and types.
    fn kind() -> OperatorKind
    where
        Self: Sized,
    {
        OperatorKind::Computation
    }

    /// The part of an input that the operator reads.
    fn needs(&self, _input: usize) -> Needs {
        Needs::Elements
    }

    /// Whether prepare may compute the operator once if all its inputs are constants: it takes little time, and the same
    /// inputs always give the same results.
    fn is_foldable(&self) -> bool {
        false
    }

    /// Whether [`infer`](Operator::infer) checks the elements of input `input` if it is constant, for example indices into
    /// an axis of a known size. It refuses only elements with which every run would fail.
    fn checks(&self, _input: usize) -> bool {
        false
    }

    /// Whether an output may share storage with input `input`: as a view of it, or as the input itself. The storage
    /// then lives as long as both, and no step overwrites it while one of them is alive.
    fn shares(&self, _input: usize) -> bool {
        false
    }

    /// The arithmetic and memory traffic of a run on inputs and outputs of these sizes. By default, an operator reads
    /// every input and writes every output once. `None` for views, for operators with nested graphs, and if a size is
    /// unknown.
    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let is_view = (0..inputs.len()).any(|i| self.shares(i));
        Work::moving(inputs, outputs).filter(|_| !is_view)
    }
}

/// The operands of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorKind {
    /// The elements of tensors.
    Computation,
    /// No elements: its output is a view of its first input.
    View,
    /// Strings, sequences, optionals, nested graphs or dimensions.
    Structure,
}

/// The part of an input that an operator reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The elements, as operands of the computation.
    Elements,
    /// The elements, as numbers that determine the shape of a result or the course of the computation: axes, sizes and
    /// the like.
    Numbers,
    /// Only the dimensions.
    Dims,
}

impl Needs {
    /// The elements of the first input, and the numbers of the others: axes, sizes and the like.
    pub fn numbers_after_first(input: usize) -> Needs {
        if input == 0 {
            Needs::Elements
        } else {
            Needs::Numbers
        }
    }
}

/// The numbers of inputs and outputs that a step of an op may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arity {
    /// The number of inputs, including absent ones.
    pub inputs: RangeInclusive<usize>,
    /// The number of outputs, including unused ones.
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
