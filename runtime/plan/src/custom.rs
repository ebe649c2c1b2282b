//! Custom operators: operators of models that a program computes with its own functions.
//!
//! The compiler writes a step [`Custom`] for such an operator. A session needs an implementation of each of them:
//! [`SessionBuilder::custom_op`](crate::SessionBuilder::custom_op). `examples/custom.rs` is an example.

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
///
/// ```
/// use candle_plan::{CustomCall, CustomOp, Result, Session, Value};
///
/// /// `example::Scale`: the input, float32, times the attribute `factor`.
/// struct Scale;
///
/// impl CustomOp for Scale {
///     fn run(&self, call: &CustomCall) -> Result<Vec<Value>> {
///         let (x, factor) = (call.tensor(0)?, call.float("factor")?);
///         let scaled = x.read::<f32>()?.iter().map(|number| factor * number).collect();
///         Ok(vec![Value::new::<f32>(scaled, x.dims()?)?])
///     }
/// }
///
/// # fn main() -> Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/custom.plan");
/// let session = Session::builder(path).custom_op("example::Scale", Scale).build()?;
/// let outputs = session.run_named([("x", Value::new(vec![1f32, 2.0], &[1, 2])?)])?;
/// assert_eq!(outputs["y"].read::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
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
    #[doc(hidden)]
    pub attributes: &'a BTreeMap<String, Attribute>,
    /// The attributes that are tensors, by name.
    #[doc(hidden)]
    pub tensors: &'a BTreeMap<&'a str, &'a Array>,
    /// The types that the plan states for the outputs.
    pub outputs: &'a [Type],
}

impl CustomCall<'_> {
    /// Input `i`, which must be a tensor.
    ///
    /// # Errors
    /// It is absent, or no tensor.
    pub fn tensor(&self, i: usize) -> Result<&Value> {
        let value = self.inputs.get(i).copied().flatten();
        let value = value.ok_or_else(|| Error::op(format!("input {i} is missing")))?;
        value.tensor().map_err(|error| Error::op(format!("input {i}: {error}")))?;
        Ok(value)
    }

    /// The attribute `name`, which must be a tensor.
    ///
    /// # Errors
    /// It is missing, or no tensor.
    pub fn tensor_attribute(&self, name: &str) -> Result<Value> {
        match self.tensors.get(name) {
            Some(array) => Ok(Value::from(*array)),
            None => Err(unfit(name, "a tensor", self.attributes.get(name))),
        }
    }
}

/// Adds the methods that return an attribute of one kind.
macro_rules! attributes {
    ($($method:ident: $Kind:ident as $what:literal, |$value:ident| $given:expr => $Given:ty;)*) => {
        impl CustomCall<'_> {
            $(
                #[doc = concat!("The attribute `name`, which must be ", $what, ".")]
                ///
                /// # Errors
                /// It is missing, or of another kind.
                pub fn $method(&self, name: &str) -> Result<$Given> {
                    match self.attributes.get(name) {
                        Some(Attribute::$Kind($value)) => Ok($given),
                        other => Err(unfit(name, $what, other)),
                    }
                }
            )*
        }
    };
}

attributes! {
    int: Int as "an integer", |value| *value => i64;
    float: Float as "a floating-point number", |value| *value => f32;
    text: String as "a text", |value| value => &str;
    ints: Ints as "a list of integers", |values| values => &[i64];
    floats: Floats as "a list of floating-point numbers", |values| values => &[f32];
    texts: Strings as "a list of texts", |values| values => &[String];
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
