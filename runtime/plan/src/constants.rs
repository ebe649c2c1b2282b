//! The constants of a plan by name.

use std::collections::BTreeMap;

use candle_core::Tensor;

use crate::error::Result;
use crate::plan::{Constant, NamedWeight, Plan};
use crate::session::Session;
use crate::types::Type;
use crate::value::Value;

impl Session {
    /// The names and types of the plan's constants that have a name, in the plan's order. The constants of nested blocks
    /// are not among them.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Type)> {
        named(&self.executable.plan).map(|(name, kind, _)| (name, kind))
    }

    /// The names and types of the weights that [`SessionBuilder::weights`](crate::builder::SessionBuilder::weights)
    /// replaces, in the plan's order.
    pub fn weights(&self) -> Vec<(&str, Type)> {
        let plan = &self.executable.plan;
        let weight = |weight: &NamedWeight| match plan.constants.get(weight.constant.at())? {
            Constant::Tensor(kind) => Some(Type::Tensor(kind.clone())),
            Constant::Strings { .. } => None,
        };
        plan.weights.iter().filter_map(|named| Some((named.name.as_str(), weight(named)?))).collect()
    }

    /// The checksum of the plan's file, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.executable.plan.sha256
    }
}

/// The numeric constants of a plan file as Candle tensors, by name. A constant without a name, or of a nested block, is
/// not among them. A tensor's type is the [storage dtype](crate::dtype::DType::storage_dtype) of the constant.
///
/// # Errors
/// As [`read`](crate::read::read); also if the host lacks memory.
pub fn tensors(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    let (plan, constants) = crate::read::read(bytes)?;
    let mut found = BTreeMap::new();
    for (name, _, at) in named(&plan) {
        if let Some(Value::Tensor(array)) = constants.get(at) {
            found.insert(name.to_string(), array.clone().into_candle()?);
        }
    }
    Ok(found)
}

/// The names, types and indices of the named constants of the main block. Prepare adds constants, which are not in the
/// plan's list.
fn named(plan: &Plan) -> impl Iterator<Item = (&str, &Type, usize)> {
    let main = &plan.main;
    main.constants.iter().filter_map(|entry| {
        let info = main.values.get(entry.value.at())?;
        let is_listed = entry.constant.at() < plan.constants.len() && !info.name.is_empty();
        is_listed.then_some((info.name.as_str(), &info.kind, entry.constant.at()))
    })
}
