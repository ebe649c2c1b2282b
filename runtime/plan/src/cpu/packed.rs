//! Kernels of operators, with their packed constants.

use std::fmt::{self, Debug, Formatter};

use super::planned::CpuOperands;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::ops::{each_op, Op};

/// An operator with a kernel for values in the layout of the plan.
pub(super) trait HasKernel {
    /// Returns the kernel. It owns the constants that it packs.
    ///
    /// # Errors
    /// The constants do not fit the operator.
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>>;
}

/// Returns the kernel of an operator for values in the layout of the plan.
///
/// # Errors
/// The constants do not fit the operator.
pub(crate) fn kernel(op: &Op, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
    each_op!(op, op => HasKernel::kernel(op, operands))
}

/// An operator that packs nothing is its own kernel.
impl<K: Kernel + Clone + 'static> HasKernel for K {
    fn kernel(&self, _: &CpuOperands) -> Result<Box<dyn Kernel>> {
        Ok(Box::new(self.clone()))
    }
}

/// An operator with its packed constants. A file of this folder implements [`Kernel`] for it.
pub(super) struct Packed<O, P> {
    pub op: O,
    /// An `Option` if the operands need not be constant.
    pub packed: P,
}

impl<O: Clone, P> Packed<O, P>
where
    Packed<O, P>: Kernel + 'static,
{
    /// Makes the kernel.
    pub fn boxed(op: &O, packed: P) -> Box<dyn Kernel> {
        Box::new(Packed { op: op.clone(), packed })
    }
}

impl<O: Debug, P> Debug for Packed<O, P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}
