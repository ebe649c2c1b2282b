//! The sizes of the operands of batch normalization.

use crate::bail;
use crate::error::Result;
use crate::kernel::Call;

/// The number of channels of X, input 0 of a batch normalization, and the number of elements of each.
///
/// # Errors
/// Another input does not have a value for each channel.
pub(crate) fn channel_dims(call: &Call) -> Result<(usize, usize)> {
    let (x, scale) = (call.tensor(0)?, call.tensor(1)?.dims());
    let channels = if x.rank() == 1 { &[1][..] } else { x.dims().get(1..1 + scale.len()).unwrap_or_default() };
    for (i, name) in (1..).zip(["scale", "B", "mean", "var"]) {
        if call.tensor(i)?.dims() != channels {
            bail!("{name} is {:?} and X {:?}: it must have a value for each channel", call.tensor(i)?.dims(), x.dims());
        }
    }
    Ok((channels.iter().product(), x.dims().iter().skip(1 + scale.len()).product()))
}
