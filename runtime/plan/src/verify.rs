//! The rules that a plan must satisfy before it is prepared or run. [`verify`] reports every violation, in this order:
//!
//! 1. Ids are in range: values of the block, constants and origins of the plan.
//! 2. Every value is defined exactly once: as an input, as a constant, or by one step.
//! 3. A step's inputs are defined before it; a block's outputs are defined.
//! 4. A constant's value has the constant's type.
//! 5. A step has as many inputs and outputs as its op takes.
//! 6. A step's op accepts its inputs' types and constants, and the types that are declared for its outputs. A step of a
//!    nested block may never run, so nothing [checks](crate::operator::Operator::checks) the elements of its constants.
//! 7. Nested blocks satisfy the same, at most [`MAX_DEPTH`] deep.
//! 8. The plan's inputs and outputs have distinct names, and none is empty.
//! 9. A value's type is one that values can have: at most 64 dimensions, whose product fits in memory's address range.
//! 10. A pair of the state joins an output of the plan with an input, each in one pair only. Both are tensors of one dtype,
//!     not of strings, whose sizes agree, except along the axis that grows. The input's size along this axis is no number.
//! 11. A weight is a numeric constant of the plan. Weights have distinct names, none of them empty, and distinct constants.

use std::collections::HashSet;

use crate::bail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::plan::{Block, Constant, Plan, StatePair, Step, ValueId, MAX_DEPTH};
use crate::types::{Dim, TensorType, Type, Types};
use crate::value::{Array, Value};

/// Every violation of the rules above by a plan with these constants; empty when the plan is sound.
pub fn verify(plan: &Plan, constants: &[Value]) -> Vec<String> {
    let mut verifier = Verifier { plan, constants, violations: Vec::new() };
    verifier.block(&plan.main, "", 0);
    verifier.names("input", &plan.main.inputs);
    verifier.names("output", &plan.main.outputs);
    verifier.state(&plan.state);
    verifier.weights();
    verifier.violations
}

/// Checks that a plan with these constants is sound.
///
/// # Errors
/// [`Error::Verify`] with every violation.
pub(crate) fn check(plan: &Plan, constants: &[Value]) -> Result<()> {
    let violations = verify(plan, constants);
    match violations.is_empty() {
        true => Ok(()),
        false => Err(Error::Verify(violations)),
    }
}

struct Verifier<'a> {
    plan: &'a Plan,
    constants: &'a [Value],
    violations: Vec<String>,
}

impl<'a> Verifier<'a> {
    fn report(&mut self, place: &str, message: impl std::fmt::Display) {
        self.violations.push(format!("{place}{message}"));
    }

    fn block(&mut self, block: &Block, place: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.report(place, format!("blocks nest deeper than {MAX_DEPTH}"));
        }
        let mut defined = vec![false; block.values.len()];
        let constants = self.constants_of(block);
        for id in &block.inputs {
            self.define(&mut defined, *id, place);
        }
        for entry in &block.constants {
            self.define(&mut defined, entry.value, place);
            self.constant(block, entry, place);
        }
        for (index, step) in block.steps.iter().enumerate() {
            let place = format!("{place}step {index} {}: ", step.op.name());
            self.step(block, step, (&mut defined, &constants), &place, depth);
        }
        for id in &block.outputs {
            self.used(&defined, *id, place);
        }
        for (id, info) in block.values.iter().enumerate() {
            if let Err(error) = info.kind.check() {
                self.report(place, format!("value {id}: {error}"));
            }
        }
    }

    fn define(&mut self, defined: &mut [bool], id: ValueId, place: &str) {
        match defined.get_mut(id.at()) {
            None => self.report(place, format!("value {} does not exist", id.0)),
            Some(seen) if *seen => self.report(place, format!("value {} is defined twice", id.0)),
            Some(seen) => *seen = true,
        }
    }

    fn used(&mut self, defined: &[bool], id: ValueId, place: &str) {
        match defined.get(id.at()) {
            None => self.report(place, format!("value {} does not exist", id.0)),
            Some(false) => self.report(place, format!("value {} is used before it is defined", id.0)),
            Some(true) => {}
        }
    }

    fn constant(&mut self, block: &Block, entry: &crate::plan::ConstantValue, place: &str) {
        let Some(constant) = self.plan.constants.get(entry.constant.at()) else {
            return self.report(place, format!("constant {} does not exist", entry.constant.0));
        };
        let found = constant_type(constant);
        match block.values.get(entry.value.at()) {
            Some(info) if !info.kind.agrees_with(&found) => self.report(
                place,
                format!("value {} is {}, its constant {} is {found}", entry.value.0, info.kind, entry.constant.0),
            ),
            _ => {}
        }
    }

    /// Returns, for each value of the block, its constant, if it is one.
    fn constants_of(&self, block: &Block) -> Vec<Option<&'a Array>> {
        let mut constants = vec![None; block.values.len()];
        for entry in &block.constants {
            if let (Some(constant), Some(Value::Tensor(array))) =
                (constants.get_mut(entry.value.at()), self.constants.get(entry.constant.at()))
            {
                *constant = Some(array);
            }
        }
        constants
    }

    fn step(
        &mut self,
        block: &Block,
        step: &Step,
        (defined, constants): (&mut [bool], &[Option<&Array>]),
        place: &str,
        depth: usize,
    ) {
        let before = self.violations.len();
        if step.origin.at() >= self.plan.origins.len() {
            self.report(place, format!("origin {} does not exist", step.origin.0));
        }
        for id in step.inputs.iter().flatten() {
            self.used(defined, *id, place);
        }
        for id in step.outputs.iter().flatten() {
            self.define(defined, *id, place);
        }
        let arity = step.op.operator().arity();
        if !arity.inputs.contains(&step.inputs.len()) {
            self.report(place, format!("takes {} inputs, found {}", range(&arity.inputs), step.inputs.len()));
        }
        if !arity.outputs.contains(&step.outputs.len()) {
            self.report(place, format!("gives {} outputs, found {}", range(&arity.outputs), step.outputs.len()));
        }
        for (index, nested) in step.op.blocks().into_iter().enumerate() {
            self.block(nested, &format!("{place}block {index}: "), depth + 1);
        }
        if self.violations.len() == before {
            self.types(block, step, constants, place, depth > 0);
        }
    }

    fn types(&mut self, block: &Block, step: &Step, constants: &[Option<&Array>], place: &str, is_nested: bool) {
        let kind = |id: &Option<ValueId>| id.and_then(|id| block.values.get(id.at())).map(|info| &info.kind);
        let inputs: Vec<Option<&Type>> = step.inputs.iter().map(kind).collect();
        let outputs: Vec<Option<&Type>> = step.outputs.iter().map(kind).collect();
        let constant = |id: &Option<ValueId>| id.and_then(|id| constants.get(id.at()).copied().flatten());
        let is_read = |i: usize| !is_nested || !step.op.operator().checks(i);
        let inputs_read = step.inputs.iter().enumerate();
        let constants: Vec<Option<&Array>> = inputs_read.map(|(i, id)| constant(id).filter(|_| is_read(i))).collect();
        let types = Types { inputs: &inputs, constants: &constants, outputs: outputs.len() };
        if let Err(error) = step.op.check(&types, &outputs) {
            self.report(place, error);
        }
    }

    fn state(&mut self, pairs: &[StatePair]) {
        let main = &self.plan.main;
        let (mut inputs, mut outputs) = (ids(&main.inputs), ids(&main.outputs));
        for (index, pair) in pairs.iter().enumerate() {
            let place = format!("state {index}: ");
            let kind = |id: ValueId| main.values.get(id.at()).map(|info| &info.kind);
            if !inputs.remove(&pair.input) {
                self.report(&place, format!("value {} is no input of the plan, or in two pairs", pair.input.0));
            } else if !outputs.remove(&pair.output) {
                self.report(&place, format!("value {} is no output of the plan, or in two pairs", pair.output.0));
            } else if let (Some(input), Some(output)) = (kind(pair.input), kind(pair.output)) {
                if let Err(error) = hands_on(output, input, pair.axis) {
                    self.report(&place, error);
                }
            }
        }
    }

    fn weights(&mut self) {
        let (mut names, mut constants) = (HashSet::from([""]), HashSet::new());
        for (index, weight) in self.plan.weights.iter().enumerate() {
            let place = format!("weight {index}: ");
            if !matches!(self.plan.constants.get(weight.constant.at()), Some(Constant::Tensor(_))) {
                self.report(&place, format!("constant {} is no numeric constant of the plan", weight.constant.0));
            } else if !names.insert(&weight.name) {
                self.report(&place, format!("the name {:?} is empty or that of another weight", weight.name));
            } else if !constants.insert(weight.constant) {
                self.report(&place, format!("constant {} is another weight too", weight.constant.0));
            }
        }
    }

    fn names(&mut self, role: &str, ids: &[ValueId]) {
        let mut seen = HashSet::new();
        for info in ids.iter().filter_map(|id| self.plan.main.values.get(id.at())) {
            if info.name.is_empty() {
                self.violations.push(format!("an {role} has no name"));
            } else if !seen.insert(&info.name) {
                self.violations.push(format!("two {role}s are named {:?}", info.name));
            }
        }
    }
}

fn ids(values: &[ValueId]) -> HashSet<ValueId> {
    values.iter().copied().collect()
}

/// Checks that an output of a run can be an input of the next run, after it has grown along `axis`.
fn hands_on(output: &Type, input: &Type, axis: Option<usize>) -> Result<()> {
    let (mut from, mut to) = (output.tensor()?.clone(), input.tensor()?.clone());
    if to.dtype == DType::String {
        bail!("a state holds no strings");
    }
    if let Some(axis) = axis {
        match to.shape.as_mut().and_then(|shape| shape.get_mut(axis)) {
            Some(Some(Dim::Size(size))) => bail!("axis {axis} of {input} has the size {size}, so it cannot grow"),
            Some(dim) => *dim = None,
            None => bail!("{input} has no axis {axis}"),
        }
        if let Some(dim) = from.shape.as_mut().and_then(|shape| shape.get_mut(axis)) {
            *dim = None;
        }
    }
    match from.agrees_with(&to) {
        true => Ok(()),
        false => bail!("an output {output} cannot be the input {input} of the next run"),
    }
}

fn constant_type(constant: &Constant) -> Type {
    Type::Tensor(match constant {
        Constant::Tensor(kind) => kind.clone(),
        Constant::Strings { shape, .. } => TensorType {
            dtype: crate::dtype::DType::String,
            shape: Some(shape.iter().map(|&size| Some(Dim::Size(size))).collect()),
        },
    })
}

fn range(range: &std::ops::RangeInclusive<usize>) -> String {
    match (range.start(), range.end()) {
        (start, end) if start == end => start.to_string(),
        (start, &usize::MAX) => format!("at least {start}"),
        (start, end) => format!("{start} to {end}"),
    }
}
