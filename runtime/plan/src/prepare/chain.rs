//! The operators whose work a step does.

use crate::operator::Needs;
use crate::ops::Op;
use crate::plan::Block;
use crate::types::{Type, Types};
use crate::work::Work;

/// Operators in the order in which they run: none for a step that prepare added. Each but the first takes the one result of
/// the one before as its input 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain(Vec<Link>);

#[derive(Debug, Clone)]
struct Link {
    op: Op,
    /// How many inputs of the step come before those of the operator.
    start: usize,
}

impl Chain {
    /// One operator.
    pub fn of(op: Op) -> Chain {
        Chain(vec![Link { op, start: 0 }])
    }

    /// Whether there is no operator.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operator, where there is one alone.
    pub fn single(&self) -> Option<&Op> {
        match &self.0[..] {
            [link] => Some(&link.op),
            _ => None,
        }
    }

    /// Puts other operators, which take so many inputs, before these.
    pub fn follow(&mut self, first: &Chain, inputs: usize) {
        let mut links = first.0.clone();
        links.extend(self.0.drain(..).map(|link| Link { start: inputs + link.start.saturating_sub(1), ..link }));
        self.0 = links;
    }

    /// What the step reads of an input.
    pub fn needs(&self, input: usize) -> Needs {
        self.single().map_or(Needs::Elements, |op| op.operator().needs(input))
    }

    /// The nested graphs.
    pub fn blocks(&self) -> Vec<&Block> {
        self.single().map_or_else(Vec::new, Op::blocks)
    }

    /// The output that output `index` of every nested graph becomes as it is.
    pub fn passes_on(&self, index: usize) -> Option<usize> {
        self.single()?.control_flow()?.passes_on(index)
    }

    /// Whether an output may share storage with an input.
    pub fn shares(&self, input: usize) -> bool {
        self.single().is_some_and(|op| op.operator().shares(input))
    }

    /// The work of all operators, from the types of the step's inputs in rows; `None` where it is not known.
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
