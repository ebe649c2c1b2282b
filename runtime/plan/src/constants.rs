//! The constants of a plan by name.

use candle_core::Tensor;

use crate::bail;
use crate::error::Result;
use crate::plan::{Constant, NamedWeight};
use crate::session::Session;
use crate::types::Type;

impl Session {
    /// The names and types of the plan's constants that have a name, in the plan's order. The constants of nested blocks
    /// are not among them.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.executable.plan.named_constants().map(|(name, kind, _)| (name, kind))
    }

    /// The names and types of the weights that [`SessionBuilder::weights`](crate::SessionBuilder::weights) replaces, in
    /// the plan's order.
    pub fn weights(&self) -> Vec<(&str, Type)> {
        let plan = &self.executable.plan;
        let weight = |weight: &NamedWeight| match plan.constants.get(weight.constant.at())? {
            Constant::Tensor(kind) => Some(Type::Tensor(kind.clone())),
            Constant::Strings { .. } => None,
        };
        plan.weights.iter().filter_map(|named| Some((named.name.as_str(), weight(named)?))).collect()
    }

    /// Copies the constant of a name to a Candle tensor. The constants are those of the session, so other
    /// [weights](crate::SessionBuilder::weights) are among them. A tensor's type is the [storage
    /// dtype](crate::DType::storage_dtype) of the constant.
    ///
    /// ```
    /// use candle_plan::Session;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/weights.plan");
    /// let session = Session::builder(path).keep_constants().build()?;
    /// assert_eq!(session.constant("bias")?.to_vec1::<f32>()?, [0.0, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The session does not [keep constants](crate::SessionBuilder::keep_constants), has no numeric constant of this name,
    /// or has only the codes of quantized weights; also if the host lacks memory.
    pub fn constant(&self, name: &str) -> Result<Tensor> {
        let Some(kept) = &self.constants else {
            bail!("the session has no elements of constants: build it with SessionBuilder::keep_constants");
        };
        match kept.get(name) {
            Some(array) if array.bytes_on_host().is_err() => {
                bail!("weight {name:?} is quantized, and the session has only its codes: read it from its file")
            }
            Some(array) => array.clone().into_candle(),
            None => bail!("the plan has no constant of numbers {name:?}: Session::constants lists the names"),
        }
    }

    /// The checksum of the plan's file, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.executable.plan.sha256
    }
}
