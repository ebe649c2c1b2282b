//! Operators that functions of the program compute.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Type, Types};

/// An operator that a function of the program computes, which the program has registered as `domain::name`. The last inputs
/// of the step are those attributes that are tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The operator's domain.
    pub domain: String,
    /// The operator's name.
    pub name: String,
    /// The attributes that are no tensors, by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// The names of the attributes that are tensors.
    pub tensors: Vec<String>,
    /// The types of the outputs, as the compiler's registration of the operator stated them.
    pub types: Vec<Type>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A number.
    Float(f32),
    /// A text.
    String(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of numbers.
    Floats(Vec<f32>),
    /// A list of texts.
    Strings(Vec<String>),
}

impl Custom {
    /// The domain and name, as `my.domain::Name`.
    pub fn full_name(&self) -> String {
        format!("{}::{}", self.domain, self.name)
    }
}

impl Operator for Custom {
    fn arity(&self) -> Arity {
        Arity { inputs: self.tensors.len()..=usize::MAX, outputs: self.types.len()..=self.types.len() }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        for (at, name) in self.tensors.iter().enumerate() {
            if self.attributes.contains_key(name) || self.tensors[..at].contains(name) {
                bail!("there are two attributes {name:?}");
            }
            inputs.tensor(inputs.len() - self.tensors.len() + at)?;
        }
        Ok(self.types.clone())
    }

    fn shares(&self, _: usize) -> bool {
        true
    }
}
