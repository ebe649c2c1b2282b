//! A place that no run may come to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::device::on_device;
use crate::error::Result;
use crate::kernel::{Arity, Call, Kernel, Types};
use crate::types::Type;
use crate::value::Value;

/// Fails with a message when it is run: what is left of a branch that cannot run with the shapes that are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Why the branch cannot run.
    pub message: String,
    /// The types of the outputs that there would be.
    pub types: Vec<Type>,
}

impl Kernel for Raise {
    fn arity(&self) -> Arity {
        Arity { inputs: 0..=0, outputs: self.types.len()..=self.types.len() }
    }

    fn infer(&self, _: &Types) -> Result<Vec<Type>> {
        Ok(self.types.clone())
    }

    on_device!(Host);

    fn run(&self, _: &mut Call) -> Result<Vec<Value>> {
        bail!("{}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::testing::run_outputs;

    #[test]
    fn raises_its_message() {
        let op = Raise { message: "no".to_string(), types: vec![Type::ranked(DType::Float32, 1)] };
        assert_eq!(run_outputs(&op, &[], 1).unwrap_err().to_string(), "no");
    }
}
