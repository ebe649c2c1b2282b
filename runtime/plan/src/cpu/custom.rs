//! CPU kernels: operators that the program computes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::bail;
use crate::custom::{CustomCall, CustomOp};
use crate::error::{Error, Result};
use crate::form::KernelForm;
use crate::kernel::{Call, Kernel};
use crate::ops::custom::Custom;
use crate::types::{Dim, Type};
use crate::value::Value;

/// The kernel without an implementation, for plans that only describe their steps.
impl Kernel for Custom {
    fn run(&self, _: &mut Call) -> Result<Vec<Value>> {
        bail!("the custom operator {} is not registered", self.full_name())
    }
}

/// A custom operator with its implementation.
pub(crate) struct Registered {
    op: Custom,
    /// The types of the inputs in the plan; `None` for an absent one.
    inputs: Vec<Option<Type>>,
    implementation: Arc<dyn CustomOp>,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}

impl Registered {
    /// The kernel of a step with inputs of these types.
    pub fn new(op: &Custom, implementation: Arc<dyn CustomOp>, inputs: &[Option<&Type>]) -> Registered {
        Registered { op: op.clone(), inputs: inputs.iter().map(|kind| kind.cloned()).collect(), implementation }
    }

    /// Checks that the results have the types that the plan states, and no sizes that contradict those of the inputs: a
    /// symbol of an output has the size of the same symbol of an input.
    fn check(&self, inputs: &[Option<&Value>], results: &[Value]) -> Result<()> {
        let (name, types) = (self.op.full_name(), &self.op.types);
        if results.len() != types.len() {
            let s = if types.len() == 1 { "" } else { "s" };
            bail!("{name} has {} output{s}, and its function returned {}", types.len(), results.len());
        }
        let mut sizes = HashMap::new();
        for (kind, value) in
            self.inputs.iter().zip(inputs).filter_map(|(kind, value)| Some((kind.as_ref()?, (*value)?)))
        {
            symbols(kind, value, |symbol, size| {
                sizes.entry(symbol.to_string()).or_insert(size);
                Ok(())
            })?;
        }
        for (at, (kind, value)) in types.iter().zip(results).enumerate() {
            let refused = |with: String| {
                let found = value.describe();
                Err(Error::op(format!("output {at} of {name}: expected {kind}{with}, found {found}")))
            };
            if !kind.admits(value) {
                return refused(String::new());
            }
            if matches!(value, Value::Tensor(array) if array.is_on_device()) {
                return refused(" on the host".to_string());
            }
            symbols(kind, value, |symbol, size| match *sizes.entry(symbol.to_string()).or_insert(size) {
                expected if expected == size => Ok(()),
                expected => refused(format!(" with {symbol} = {expected}")),
            })?;
        }
        Ok(())
    }
}

/// Calls `visit` with each symbolic dimension of a tensor, and its size in a run.
fn symbols(kind: &Type, value: &Value, mut visit: impl FnMut(&str, usize) -> Result<()>) -> Result<()> {
    let (Ok(tensor), Ok(dims)) = (kind.tensor(), value.dims()) else { return Ok(()) };
    for (dim, &size) in tensor.shape.iter().flatten().zip(dims) {
        if let Some(Dim::Symbol(symbol)) = dim {
            visit(symbol, size)?;
        }
    }
    Ok(())
}

impl Kernel for Registered {
    fn form(&self) -> KernelForm {
        KernelForm::named(self.op.full_name())
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let first = call.len().saturating_sub(self.op.tensors.len());
        let inputs: Vec<Option<&Value>> = (0..first).map(|i| call.optional(i)).collect();
        let named = self.op.tensors.iter().zip(first..).map(|(name, i)| Ok((name.as_str(), call.tensor(i)?)));
        let tensors = named.collect::<Result<BTreeMap<_, _>>>()?;
        let (attributes, outputs) = (&self.op.attributes, &self.op.types[..]);
        let results = self.implementation.run(&CustomCall { inputs: &inputs, attributes, tensors: &tensors, outputs });
        let results = results.map_err(unplaced)?;
        self.check(&inputs, &results)?;
        Ok(results)
    }
}

/// An error of an implementation, to which the executor can add the place of the step. An implementation that runs another
/// plan may return an error with a place in that plan.
fn unplaced(error: Error) -> Error {
    match error {
        Error::Op(_) | Error::Memory(_) | Error::Limit { .. } | Error::Interrupted | Error::TimedOut => error,
        other => Error::op(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use candle_plan_kernels::threads::Threads;

    use super::*;
    use crate::custom::{Attribute, CustomOps};
    use crate::dtype::DType;
    use crate::kernel::{Input, NoBlocks};
    use crate::operator::Operator;
    use crate::testing::tensor;
    use crate::types::{TensorType, Types};

    fn op(attributes: &[(&str, Attribute)], tensors: &[&str]) -> Custom {
        Custom {
            domain: "own".to_string(),
            name: "Sum".to_string(),
            attributes: attributes.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect(),
            tensors: tensors.iter().map(ToString::to_string).collect(),
            types: vec![Type::Tensor(TensorType::sized(DType::Int64, &[2]))],
        }
    }

    fn run(kernel: &dyn Kernel, inputs: &[Option<&Value>]) -> Result<Vec<Value>> {
        let mut given: Vec<Input> = inputs.iter().map(|value| value.map_or(Input::Absent, Input::Shared)).collect();
        kernel.run(&mut Call { inputs: &mut given, outputs: 1, threads: &Threads::serial(), blocks: &NoBlocks })
    }

    #[test]
    fn tensors_are_attributes_by_name() -> Result<()> {
        let op = op(&[("k", Attribute::Int(7))], &["t"]);
        let sum = |call: &CustomCall| {
            assert_eq!((call.inputs.len(), call.inputs[1].is_none(), call.outputs.len()), (2, true, 1));
            let (x, t, k) = (call.tensor(0)?.read::<i64>()?, call.tensor_attribute("t")?, call.int("k")?);
            let t = t.read::<i64>()?;
            Ok(vec![tensor(&[x[0] + t[0] + k, x[1] + t[1] + k], &[2])])
        };
        let mut ops = CustomOps::new();
        ops.insert("own::Sum", Arc::new(sum));
        let function = ops.find(&op).expect("it is registered");
        let (x, t) = (tensor(&[1i64, 2], &[2]), tensor(&[10i64, 20], &[2]));
        let found = run(&Registered::new(&op, function, &[None, None, None]), &[Some(&x), None, Some(&t)])?;
        assert_eq!(*found[0].tensor()?.read::<i64>()?, [18, 29]);
        Ok(())
    }

    #[test]
    fn an_operator_without_an_implementation_fails() {
        let error = run(&op(&[], &[]), &[]).expect_err("it is not registered");
        assert_eq!(error.to_string(), "the custom operator own::Sum is not registered");
    }

    #[test]
    fn names_of_attributes_differ() {
        let kind = Type::any(DType::Int8);
        let infer = |op: Custom| op.infer(&Types::of(&[Some(&kind), Some(&kind)], 1));
        assert!(infer(op(&[("k", Attribute::Int(7))], &["t", "u"])).is_ok());
        for wrong in [op(&[("t", Attribute::Int(7))], &["t"]), op(&[], &["t", "t"])] {
            assert_eq!(infer(wrong).expect_err("a name twice").to_string(), "there are two attributes \"t\"");
        }
    }
}
