//! Images in blocks of channels, `[N, C / B, H, W, B]`: a vector holds neighboring channels of a pixel. The size B of a
//! block is the choice of the caller, among those that the level [supports](Blocking::all).
//!
//! If the number of channels is not a multiple of B, the last block has unused lanes. Operations that mix lanes do not
//! read them, so elementwise functions may leave arbitrary values there.

mod addend;
mod axis;
mod conv;
mod depthwise;
mod direct;
mod direct_form;
mod dispatch;
mod filter;
mod images;
mod in_place;
mod pool;
mod regions;
mod reorder;
mod separable;
mod terms;
mod tile;
mod transforms;
mod window;
mod winograd;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use depthwise::form::DepthwiseForm;
pub(crate) use direct_form::{DirectForm, FromRowsForm};
pub use images::Images;
pub use pool::{pool, Pool};
pub(crate) use reorder::run_from_blocks;
pub use reorder::{from_blocks, to_blocks};
pub(crate) use separable::separable_costs;
pub use separable::{separable, SeparableWeights, Stage};
pub(crate) use winograd::WinogradForm;
