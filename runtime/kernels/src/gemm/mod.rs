//! Matrix products in `f32`: `out = a · b`. The sums start with a bias, and an epilogue processes each block while it
//! is in the cache. [`products`](crate::products) chooses among the forms of this module.
//!
//! Every output is a sum of partial sums over short pieces of the depth, in order, whatever the number of threads or
//! the instruction set.

mod blocks;
mod case;
mod cost;
mod cut;
mod form;
mod in_place;
mod lines;
mod operands;
mod pack;
mod packed;
mod packing;
mod panels;
mod plain;
mod problem;
mod rows;
mod stored;
mod strip;
mod table;
pub(crate) mod tile;
pub(crate) mod tiles;
mod turned;

#[cfg(test)]
pub(crate) mod tests;

pub use case::{ProductCase, RightCase};
pub(crate) use cost::UNIT;
pub(crate) use cut::Cut;
pub(crate) use form::ProductForm;
pub(crate) use in_place::InPlace;
pub(crate) use lines::Lines;
pub(crate) use operands::Shared;
pub use operands::{Bias, Finish, Matrix, ProductSizes};
pub(crate) use pack::pack;
pub use pack::PackedB;
pub use packed::packed_name;
pub(crate) use packed::{time_of_vector, PackedPanels};
pub(crate) use packing::Packing;
pub use plain::{product, Plain, Term};
pub(crate) use problem::Problem;
pub use problem::Right;
pub(crate) use rows::FewRows;
pub use stored::Format;
pub(crate) use turned::Turned;
