//! Functions that read the operands of a step: sizes, strides, axes and numbers of one run. The kernels of all devices
//! call them.
//!
//! A file has the name of the family of operators that it is for. [Operators](crate::ops) only check types, and do not
//! see the operands of a run. Code that only one device needs is beside the kernels of this device.

pub(crate) mod attention;
pub(crate) mod cache;
pub(crate) mod join;
pub(crate) mod norm;
pub(crate) mod pad;
#[cfg(feature = "recurrent")]
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod repeat;
pub(crate) mod resize;
pub(crate) mod rotary;
pub(crate) mod rows;
pub(crate) mod scatter;
pub(crate) mod select;
pub(crate) mod sort;
#[cfg(feature = "image")]
pub(crate) mod unpool;
