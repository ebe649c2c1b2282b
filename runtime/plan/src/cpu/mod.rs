//! How operators run on the CPU: one file per family, with the same names as in [`ops`](crate::ops).

use crate::error::Result;
use crate::kernel::{Constants, Kernel};
use crate::ops::{each_op, family_modules, Op};

mod blocks;
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
mod pool_blocks;
mod power;
pub(crate) mod reorder;
mod rewrite;
mod separable;

family_modules!();

use packed::Packed;

pub(crate) use blocks::Blocked;
pub(crate) use choice::{blocked, fused, Choice};

/// Returns the kernel of an operator for values in the layout of the plan.
///
/// # Errors
/// The constants do not fit the operator.
pub(crate) fn kernel(op: &Op, operands: &Constants) -> Result<Box<dyn Kernel>> {
    each_op!(op, op => Packed::boxed(op, operands))
}
