//! How operators run on the CPU: one file per family, with the same names as in [`ops`](crate::ops).

use crate::ops::family_modules;

mod blocks;
mod bounds;
mod choice;
mod conv_blocks;
mod conv_case;
mod conv_output;
mod conv_rows;
pub(crate) mod convert;
mod exact;
mod finish;
mod lists;
mod mask;
mod matrices;
mod nested;
mod packed;
mod places;
mod planned;
mod pool_blocks;
mod power;
mod product_forms;
pub(crate) mod reorder;
mod rewrite;
mod sampled;
mod separable;

family_modules!();

pub(crate) use blocks::Blocked;
pub(crate) use choice::{on_blocks, paired, BlocksKernel, OnBlocks, Own};
pub(crate) use custom::Registered;
pub(crate) use packed::kernel;
pub(crate) use planned::{CpuOperands, Paired, PlannedKernel, Ready};
