//! Custom operators: operators of models that a program computes with its own functions.
//!
//! The compiler writes a step [`Custom`] for such an operator. A session needs an implementation of each of them:
//! [`SessionBuilder::custom_op`](crate::builder::SessionBuilder::custom_op). `examples/custom.rs` is an example.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
pub use crate::ops::custom::Attribute;
use crate::ops::custom::Custom;
use crate::ops::Op;
use crate::plan::{Block, Plan};
use crate::types::Type;
use crate::value::{Array, Value};

/// The implementation of a custom operator. Functions of a [`CustomCall`] implement it.
///
/// Several threads may call it at once. The session runs it on the host, also if its device is a GPU, and checks that the
/// results have the types that the plan states.
pub trait CustomOp: Send + Sync {
    /// Computes the outputs of a step, on the host.
    ///
    /// # Errors
    /// The operator refuses the inputs or attributes ([`Error::op`]). The error of the run names the step.
    fn run(&self, call: &CustomCall) -> Result<Vec<Value>>;
}

impl<F> CustomOp for F
where
    F: Fn(&CustomCall) -> Result<Vec<Value>> + Send + Sync,
{
    fn run(&self, call: &CustomCall) -> Result<Vec<Value>> {
        self(call)
    }
}

/// One execution of a custom operator.
pub struct CustomCall<'a> {
    /// The inputs, on the host; `None` for an absent one. Those at the end may be left out.
    pub inputs: &'a [Option<&'a Value>],
    /// The attributes that are no tensors, by name.
    pub attributes: &'a BTreeMap<String, Attribute>,
    /// The attributes that are tensors, by name.
    pub tensors: &'a BTreeMap<&'a str, &'a Array>,
    /// The types that the plan states for the outputs.
    pub outputs: &'a [Type],
}

impl CustomCall<'_> {
    /// Input `i`, which must be a tensor.
    ///
    /// # Errors
    /// It is absent, or no tensor.
    pub fn tensor(&self, i: usize) -> Result<&Array> {
        let value = self.inputs.get(i).copied().flatten();
        let value = value.ok_or_else(|| Error::op(format!("input {i} is missing")))?;
        value.tensor().map_err(|error| Error::op(format!("input {i}: {error}")))
    }

    /// The attribute `name`, which must be an integer.
    ///
    /// # Errors
    /// It is missing, or no integer.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.attributes.get(name) {
            Some(Attribute::Int(value)) => Ok(*value),
            other => Err(unfit(name, "an integer", other)),
        }
    }

    /// The attribute `name`, which must be a floating-point number.
    ///
    /// # Errors
    /// It is missing, or no number of this kind.
    pub fn float(&self, name: &str) -> Result<f32> {
        match self.attributes.get(name) {
            Some(Attribute::Float(value)) => Ok(*value),
            other => Err(unfit(name, "a floating-point number", other)),
        }
    }
}

/// The error for an attribute that is missing or of another kind.
fn unfit(name: &str, expected: &str, found: Option<&Attribute>) -> Error {
    let found = found.map_or_else(|| "nothing".to_string(), |found| format!("{found:?}"));
    Error::op(format!("attribute {name}: expected {expected}, found {found}"))
}

/// Implementations of custom operators by name.
#[derive(Clone, Default)]
pub struct CustomOps {
    registered: BTreeMap<String, Arc<dyn CustomOp>>,
}

impl CustomOps {
    /// No implementations.
    pub fn new() -> CustomOps {
        CustomOps::default()
    }

    /// Registers the implementation of an operator: `my.domain::Name`. It replaces an earlier one.
    pub fn insert(&mut self, name: impl Into<String>, op: Arc<dyn CustomOp>) {
        self.registered.insert(name.into(), op);
    }

    /// The implementation of an operator.
    pub(crate) fn find(&self, op: &Custom) -> Option<Arc<dyn CustomOp>> {
        self.registered.get(&op.full_name()).cloned()
    }

    /// Checks that every custom operator of a plan has an implementation.
    ///
    /// # Errors
    /// [`ErrorKind::CustomOp`], with the names of the others.
    pub(crate) fn check(&self, plan: &Plan) -> Result<()> {
        let missing: Vec<String> =
            names(&plan.main).into_iter().filter(|name| !self.registered.contains_key(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let (s, are) = if missing.len() == 1 { ("", "is") } else { ("s", "are") };
        let reason = format!(
            "it needs the custom operator{s} {}, which {are} not registered: register a function before you load the \
             plan (compiler.custom_op in Python, candlec --custom, SessionBuilder::custom_op in Rust)",
            missing.join(", ")
        );
        Err(Error::Read { kind: ErrorKind::CustomOp, reason })
    }
}

impl fmt::Debug for CustomOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.registered.keys()).finish()
    }
}

/// The names of the custom operators of a block and its nested blocks.
pub(crate) fn names(block: &Block) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for step in &block.steps {
        if let Op::Custom(op) = &step.op {
            found.insert(op.full_name());
        }
        step.op.blocks().into_iter().for_each(|nested| found.extend(names(nested)));
    }
    found
}
