//! The operators that a step computes.

use std::sync::Arc;

use crate::operator::Needs;
use crate::ops::Op;
use crate::plan::Block;
use crate::types::{Type, Types};
use crate::work::Work;

/// Operators in execution order. A step that prepare added has none. The only output of each operator is input 0 of the
/// next one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain(Vec<Link>);

#[derive(Debug, Clone)]
struct Link {
    op: Arc<Op>,
    /// The number of the step's inputs that precede those of the operator.
    start: usize,
}

impl Chain {
    /// Makes a chain of one operator.
    pub fn of(op: Arc<Op>) -> Chain {
        Chain(vec![Link { op, start: 0 }])
    }

    /// Whether the chain has no operators.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the operator, if the chain has exactly one.
    pub fn single(&self) -> Option<&Arc<Op>> {
        match &self.0[..] {
            [link] => Some(&link.op),
            _ => None,
        }
    }

    /// Puts the operators of `first`, which have `inputs` inputs in total, before these.
    pub fn follow(&mut self, first: &Chain, inputs: usize) {
        let mut links = first.0.clone();
        links.extend(self.0.drain(..).map(|link| Link { start: inputs + link.start.saturating_sub(1), ..link }));
        self.0 = links;
    }

    /// Returns the part of an input that the step reads.
    pub fn needs(&self, input: usize) -> Needs {
        self.single().map_or(Needs::Elements, |op| op.operator().needs(input))
    }

    /// Returns the nested graphs.
    pub fn blocks(&self) -> Vec<&Block> {
        self.single().map_or_else(Vec::new, |op| op.blocks())
    }

    /// Returns the output of the step that output `index` of every nested graph becomes unchanged.
    pub fn passes_on(&self, index: usize) -> Option<usize> {
        self.single()?.control_flow()?.passes_on(index)
    }

    /// Whether an output may share storage with an input.
    pub fn shares(&self, input: usize) -> bool {
        self.single().is_some_and(|op| op.operator().shares(input))
    }

    /// Returns the total work of all operators for inputs of these types, given in rows, or `None` if it is unknown.
    pub fn work(&self, inputs: &Types) -> Option<Work> {
        let (mut before, mut sum): (Option<Type>, _) = (None, Work::default());
        for (at, link) in self.0.iter().enumerate() {
            let end = self.0.get(at + 1).map_or(inputs.len(), |next| next.start);
            let own = inputs.inputs.get(link.start..end)?.iter().copied();
            let own: Vec<Option<&Type>> = before.as_ref().map(Some).into_iter().chain(own).collect();
            let outputs = if at + 1 == self.0.len() { inputs.outputs } else { 1 };
            let (operator, own) = (link.op.operator(), Types::of(&own, outputs));
            let types = operator.infer(&own).ok()?;
            sum = sum + operator.work(&own, &types)?;
            before = types.into_iter().next();
        }
        Some(sum)
    }
}
