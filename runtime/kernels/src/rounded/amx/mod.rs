//! Products with the tiles of AMX: an instruction multiplies 16 rows of 16 pairs by as many pairs of 16 columns.
//!
//! In a tile, the products of the upper numbers of all pairs are summed from zero, and so are those of the lower numbers.
//! Both sums are added to each other, and to the sum of the tiles before. Every step is a multiply-add or an addition in
//! `f32` that counts numbers below `2⁻¹²⁶` in magnitude as zero.

mod left;
mod pack;
mod product;
mod shape;
mod tile;

pub(crate) use pack::PackedTiles;
pub(crate) use product::Product;
pub(super) use shape::{steps, PAIRS, SIDE, WIDTH};
