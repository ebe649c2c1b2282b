//! The sizes of the operands of recurrent layers.

use crate::bail;
use crate::error::Result;
use crate::kernel::Call;
use crate::ops::recurrent::{Recurrence, X};
use crate::types::TensorType;

impl Recurrence<'_> {
    /// The numbers of steps and of sequences in `X`. Checks that the other inputs fit them.
    ///
    /// # Errors
    /// An input does not fit.
    pub(crate) fn sizes(&self, call: &Call) -> Result<[usize; 2]> {
        self.check_attributes()?;
        let x = call.tensor(X)?;
        let (steps, batch, inputs) = match *x.dims() {
            [batch, steps, inputs] if self.batch_first => (steps, batch, inputs),
            [steps, batch, inputs] => (steps, batch, inputs),
            ref other => bail!("X must have three axes, found {other:?}"),
        };
        for i in 0..call.len() {
            let Some(found) = call.optional_tensor(i)? else { continue };
            let expected = self.expected(i, x.dtype(), [Some(steps), Some(batch), Some(inputs)]);
            if !expected.is_met(found) {
                expected.check(i, &TensorType::sized(found.dtype(), found.dims()))?;
            }
        }
        Ok([steps, batch])
    }
}
