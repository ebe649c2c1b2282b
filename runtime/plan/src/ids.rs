//! The ids of a plan's parts. Each is the index of a part in the list that holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The index of a value in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ValueId(pub u32);

/// The index of a constant in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ConstantId(pub u32);

/// The index of an origin in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct OriginId(pub u32);

/// The index of a step in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct StepId(pub u32);

/// The index of a nested block in the list of its step's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct BlockId(pub u32);

/// The index of a pair in the plan's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairId(pub u32);

/// Adds the conversion of ids to indices, and their text.
macro_rules! ids {
    ($($id:ident)*) => {$(
        impl $id {
            /// The id as an index.
            pub fn at(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! { ValueId ConstantId OriginId StepId BlockId PairId }
