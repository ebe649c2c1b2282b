//! Steps of nested blocks whose constants do not fit their operator.

use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::value::Value;

/// A kernel that fails, because a constant does not fit the operator. The step of a branch or loop may never run.
#[derive(Debug)]
pub(super) struct Misfit(pub String);

impl Kernel for Misfit {
    fn run(&self, _call: &mut Call) -> Result<Vec<Value>> {
        Err(Error::op(self.0.clone()))
    }
}
