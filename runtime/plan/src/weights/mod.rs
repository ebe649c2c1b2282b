//! The weights of a plan by name, and other weights for it: from files of the formats safetensors and GGUF, or from a
//! program.
//!
//! A plan [lists](crate::plan::NamedWeight) the constants that are weights of its model, as the model has them. A session
//! may have other elements in their place: [`SessionBuilder::weights`](crate::SessionBuilder::weights).

mod blocks;
mod gguf;
mod named;
mod names;
mod products;
mod replace;
mod stored;
mod tensors;
#[cfg(test)]
mod tests;
mod weight;

pub use named::Weights;
pub(crate) use replace::replaced;
pub use stored::Stored;
