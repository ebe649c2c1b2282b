//! How operators run on the CPU: a file a family, the namesakes of [`ops`](crate::ops).

use std::fmt::Debug;

use crate::error::Result;
use crate::kernel::{Constants, Kernel};
use crate::ops::{each_op, family_modules, Op};

mod blocks;
mod choice;
mod conv_blocks;
mod exact;
mod lists;
mod mask;
mod matrices;
mod nested;
mod packed;
mod places;
mod pool_blocks;
mod power;
pub(crate) mod reorder;
mod separable;

family_modules!();

pub(crate) use blocks::Blocked;
pub(crate) use choice::{blocked, joined, Choice};
pub(crate) use conv_blocks::alternatives;

/// An operator that the CPU computes.
pub(crate) trait OnCpu: Debug {
    /// Its kernel, with what is packed of the constants among its operands.
    ///
    /// # Errors
    /// The constants do not fit the operator.
    fn kernel(&self, operands: &Constants) -> Result<Box<dyn Kernel>>;
}

/// An operator that packs nothing is its own kernel.
impl<K: Kernel + Clone + 'static> OnCpu for K {
    fn kernel(&self, _: &Constants) -> Result<Box<dyn Kernel>> {
        Ok(Box::new(self.clone()))
    }
}

/// The kernel of an operator for values in the layout of the plan.
///
/// # Errors
/// The constants do not fit the operator.
pub(crate) fn kernel(op: &Op, operands: &Constants) -> Result<Box<dyn Kernel>> {
    each_op!(op, op => op.kernel(operands))
}
