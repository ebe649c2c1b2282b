//! Nested graphs: branches and loops.
//!
//! A block sees no values of the graph around it. The values that it needs from there, its captures, are its last
//! inputs. The type `O` of the operations in blocks is a parameter: its own definition contains these operators.

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::nested::{check_block, check_condition, expect, info, join, results, size_along, slice_type, stacked_type};
use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::operator::{Arity, Needs, Operator, OperatorKind};
use crate::types::{Type, Types};

/// An operator with nested graphs.
pub trait ControlFlow<O> {
    /// The nested graphs, in the order of the struct's fields.
    fn blocks(&self) -> Vec<&Block<O>>;

    /// The output that is the same as output `index` of every nested graph. `None` if the operator reads or stacks that
    /// output.
    fn passes_on(&self, _index: usize) -> Option<usize> {
        None
    }
}

/// The outputs of `then_branch` if the first input, `bool` of one element, is true, else those of `else_branch`. All
/// other inputs are inputs of both blocks.
///
/// Source: [ONNX If](https://onnx.ai/onnx/operators/onnx__If.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
#[schemars(rename = "If")]
pub struct If<O> {
    pub then_branch: Block<O>,
    pub else_branch: Block<O>,
}

impl<O: Debug + Send + Sync> Operator for If<O> {
    fn arity(&self) -> Arity {
        Arity { inputs: 1..=usize::MAX, outputs: 1..=usize::MAX }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        check_condition(inputs.tensor(0)?)?;
        let captures = &inputs.inputs[1..];
        check_block(&self.then_branch, "then_branch", captures)?;
        check_block(&self.else_branch, "else_branch", captures)?;
        let (then, other) = (results(&self.then_branch), results(&self.else_branch));
        if then.len() != other.len() || then.len() < inputs.outputs {
            bail!("the branches have {} and {} outputs, and the step has {}", then.len(), other.len(), inputs.outputs);
        }
        then.into_iter().zip(other).map(|(then, other)| join(then, other)).collect()
    }

    fn shares(&self, _: usize) -> bool {
        true
    }

    fn needs(&self, input: usize) -> Needs {
        if input == 0 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

impl<O> ControlFlow<O> for If<O> {
    fn blocks(&self) -> Vec<&Block<O>> {
        vec![&self.then_branch, &self.else_branch]
    }

    fn passes_on(&self, index: usize) -> Option<usize> {
        Some(index)
    }
}

/// Runs `body` while its condition holds, at most `M` times.
///
/// Inputs: `M: int64` (absent: no bound), `condition: bool` (absent: true), `carried` values, the body's captures. The
/// body takes `iteration: int64 []`, `condition: bool []`, the carried values and the captures. It returns the next
/// condition, the carried values, and a tensor for each of the other outputs, which are stacked along a new first axis.
///
/// Source: [ONNX Loop](https://onnx.ai/onnx/operators/onnx__Loop.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Loop")]
pub struct Loop<O> {
    /// The number of carried values.
    pub carried: usize,
    /// The block to repeat.
    pub body: Block<O>,
}

impl<O: Debug + Send + Sync> Operator for Loop<O> {
    fn arity(&self) -> Arity {
        let inputs = self.carried.saturating_add(2)..=usize::MAX;
        Arity { inputs, outputs: 0..=usize::MAX }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        if let Some(bound) = inputs.optional_tensor(0)? {
            expect(bound, DType::Int64, "the number of iterations")?;
        }
        inputs.optional_tensor(1)?.map_or(Ok(()), check_condition)?;
        let (iteration, condition) = (Type::ranked(DType::Int64, 0), Type::ranked(DType::Bool, 0));
        let mut given = vec![Some(&iteration), Some(&condition)];
        given.extend(&inputs.inputs[2..]);
        check_block(&self.body, "body", &given)?;
        let results = results(&self.body);
        let Some((next, rest)) = results.split_first().filter(|(_, rest)| rest.len() >= self.carried) else {
            bail!("the body gives {} outputs, too few for {} carried values", results.len(), self.carried);
        };
        check_condition(next.tensor()?)?;
        let (carried, stacked) = rest.split_at(self.carried);
        self.check_carried(carried)?;
        let initial = inputs.inputs[2..].iter().zip(carried).map(|(initial, after)| match initial {
            Some(initial) => join(initial, after),
            None => Err(Error::op("a carried value is missing")),
        });
        initial.chain(stacked.iter().map(|item| stacked_type(item, 0, None))).collect()
    }

    fn shares(&self, _: usize) -> bool {
        true
    }

    fn needs(&self, input: usize) -> Needs {
        if input < 2 {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

impl<O> ControlFlow<O> for Loop<O> {
    fn blocks(&self) -> Vec<&Block<O>> {
        vec![&self.body]
    }

    fn passes_on(&self, index: usize) -> Option<usize> {
        index.checked_sub(1).filter(|&carried| carried < self.carried)
    }
}

impl<O> Loop<O> {
    /// Checks that each carried value has the type of the body's input, because the next iteration reads it.
    fn check_carried(&self, carried: &[&Type]) -> Result<()> {
        let taken = self.body.inputs.iter().skip(2).map(|id| info(&self.body, *id));
        for (index, (after, taken)) in carried.iter().zip(taken).enumerate() {
            let taken = taken?;
            if !taken.agrees_with(after) {
                bail!("the body gives {after} for carried value {index}, which it takes as {taken}");
            }
        }
        Ok(())
    }
}

/// Runs `body` once for each slice of the scanned inputs.
///
/// Inputs: `states` values, the scanned tensors, the body's captures. The body takes the states, a slice of each
/// scanned tensor and the captures. It returns the states, and a tensor for each of the other outputs, which are
/// stacked.
///
/// Source: [ONNX Scan](https://onnx.ai/onnx/operators/onnx__Scan.html), version 9 and newer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scan")]
pub struct Scan<O> {
    /// The number of states.
    pub states: usize,
    /// The axis and order of the slices of each scanned input.
    pub inputs: Vec<Scanned>,
    /// The axis and order of the slices of each stacked output. The states are not stacked.
    pub outputs: Vec<Scanned>,
    /// The block to repeat.
    pub body: Block<O>,
}

/// The axis along which a tensor is sliced or stacked, and the order of the slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scanned {
    /// The axis of the whole tensor; a negative axis counts from the end.
    pub axis: i64,
    /// Whether the order is from the last slice to the first.
    pub reverse: bool,
}

impl<O: Debug + Send + Sync> Operator for Scan<O> {
    fn arity(&self) -> Arity {
        let inputs = self.states.saturating_add(self.inputs.len().max(1))..=usize::MAX;
        Arity { inputs, outputs: 0..=usize::MAX }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (states, scanned) = (self.states, self.states + self.inputs.len());
        let slices = (states..scanned).zip(&self.inputs).map(|(i, scan)| slice_type(inputs.tensor(i)?, scan.axis));
        let slices: Vec<Type> = slices.collect::<Result<_>>()?;
        let mut given = inputs.inputs[..states].to_vec();
        given.extend(slices.iter().map(Some));
        given.extend(&inputs.inputs[scanned..]);
        check_block(&self.body, "body", &given)?;
        let results = results(&self.body);
        if results.len() != states + self.outputs.len() {
            bail!("the body gives {} outputs for {states} states and {} tensors", results.len(), self.outputs.len());
        }
        let length = self.inputs.first().map(|scan| size_along(inputs.tensor(states)?, scan.axis));
        let length = length.transpose()?.flatten();
        let initial = inputs.inputs[..states].iter().zip(&results).map(|(initial, after)| match initial {
            Some(initial) => join(initial, after),
            None => Err(Error::op("a state is missing")),
        });
        let stacked = results[states..].iter().zip(&self.outputs);
        initial.chain(stacked.map(|(item, scan)| stacked_type(item, scan.axis, length))).collect()
    }

    fn shares(&self, _: usize) -> bool {
        true
    }

    fn needs(&self, input: usize) -> Needs {
        if (self.states..self.states + self.inputs.len()).contains(&input) {
            Needs::Numbers
        } else {
            Needs::Elements
        }
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}

impl<O> ControlFlow<O> for Scan<O> {
    fn blocks(&self) -> Vec<&Block<O>> {
        vec![&self.body]
    }

    fn passes_on(&self, index: usize) -> Option<usize> {
        Some(index).filter(|&state| state < self.states)
    }
}
