//! A step that always fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::operator::{Arity, Operator, OperatorKind};
use crate::types::{Type, Types};

/// Fails with a message. The compiler puts it in place of a branch that cannot run with the known shapes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Why the branch cannot run.
    pub message: String,
    /// The types of the branch's outputs.
    pub types: Vec<Type>,
}

impl Operator for Raise {
    fn arity(&self) -> Arity {
        Arity { inputs: 0..=0, outputs: self.types.len()..=self.types.len() }
    }

    fn infer(&self, _: &Types) -> Result<Vec<Type>> {
        Ok(self.types.clone())
    }

    fn kind() -> OperatorKind {
        OperatorKind::Structure
    }
}
