//! The inputs and outputs of a plan that a state joins.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::executable::Executable;
use crate::ids::PairId;
use crate::plan::{StatePair, ValueId};
use crate::types::Type;
use crate::value::Value;

/// The pairs of a plan, and the plan that they belong to.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The checksum of the plan's file.
    pub plan: String,
    /// The checksum of the model's file.
    pub model: String,
    pub list: Vec<NamedPair>,
    /// The indices of the inputs that a caller gives.
    pub given: Vec<usize>,
    /// The indices of the outputs that a caller receives.
    pub results: Vec<usize>,
}

/// An output, the input that takes its value in the next run, and this input's type.
#[derive(Debug)]
pub(super) struct NamedPair {
    pub output: Named,
    pub input: Named,
    pub kind: Type,
    /// The axis along which the value grows.
    pub axis: Option<usize>,
}

/// The name of an input or output, and its index among the plan's inputs or outputs.
#[derive(Debug)]
pub(super) struct Named {
    pub name: String,
    pub at: usize,
}

impl Pairs {
    /// Returns the pairs of a plan, whose state [is sound](crate::verify).
    ///
    /// # Errors
    /// [`Error::State`] if there is none.
    pub fn of(executable: &Executable) -> Result<Pairs> {
        let plan = &executable.plan;
        if plan.state.is_empty() {
            let advice = "compile the model with Options(state=…) or `candlec compile --state auto`";
            return Err(Error::State(format!("the plan has no state: {advice}")));
        }
        let (inputs, outputs) = (places(&plan.main.inputs), places(&plan.main.outputs));
        let named = |among: &HashMap<ValueId, usize>, id: ValueId| -> Result<Named> {
            let at = among.get(&id).copied().ok_or_else(|| Error::op("a state has no such value"))?;
            Ok(Named { name: plan.main.values[id.at()].name.clone(), at })
        };
        let pair = |&StatePair { output, input, axis }: &StatePair| -> Result<NamedPair> {
            let kind = plan.main.values[input.at()].kind.clone();
            Ok(NamedPair { output: named(&outputs, output)?, input: named(&inputs, input)?, kind, axis })
        };
        let list = plan.state.iter().map(pair).collect::<Result<Vec<NamedPair>>>()?;
        let taken: HashSet<usize> = list.iter().map(|pair| pair.input.at).collect();
        let handed_on: HashSet<usize> = list.iter().map(|pair| pair.output.at).collect();
        let others =
            |count: usize, own: &HashSet<usize>| -> Vec<usize> { (0..count).filter(|at| !own.contains(at)).collect() };
        let (given, results) = (others(inputs.len(), &taken), others(outputs.len(), &handed_on));
        Ok(Pairs { plan: plan.sha256.clone(), model: plan.source_sha256.clone(), list, given, results })
    }

    /// The indices of the outputs that a run computes: first `only`, or by default the outputs outside the state; then the
    /// outputs of the state. Also returns the number of the first group.
    pub fn outputs(&self, only: Option<&[usize]>) -> (Vec<usize>, usize) {
        let mut outputs = only.unwrap_or(&self.results).to_vec();
        let kept = outputs.len();
        outputs.extend(self.list.iter().map(|pair| pair.output.at));
        (outputs, kept)
    }

    /// The pair of an input.
    ///
    /// # Errors
    /// [`Error::State`] if the state does not hold the input.
    pub fn find(&self, input: &str) -> Result<PairId> {
        let found = (0..).map(PairId).zip(&self.list).find(|(_, pair)| pair.input.name == input);
        found.map(|(id, _)| id).ok_or_else(|| {
            let names: Vec<&str> = self.list.iter().map(|pair| pair.input.name.as_str()).collect();
            Error::State(format!("the state has no value {input:?}; it has {}", names.join(", ")))
        })
    }
}

impl NamedPair {
    /// Checks that a value has the type of the input; `source` says where it comes from.
    ///
    /// # Errors
    /// [`Error::Input`] if it has not.
    pub fn check(&self, value: &Value, source: &str) -> Result<()> {
        match self.kind.admits(value) {
            true => Ok(()),
            false => Err(Error::Input {
                name: self.input.name.clone(),
                expected: self.kind.to_string(),
                found: value.describe() + source,
            }),
        }
    }
}

/// The index of each value in a list.
fn places(values: &[ValueId]) -> HashMap<ValueId, usize> {
    values.iter().enumerate().map(|(at, &id)| (id, at)).collect()
}
