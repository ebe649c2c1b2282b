//! Floating-point results in the storage of an input.

use std::borrow::Cow;

use candle_plan_kernels::rewrite::Rewrite;
use candle_plan_memory::uninit::Uninit;

use super::convert::Float;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernel::Call;
use crate::value::Array;

/// Rewrites every element of input `i`: in place if no later step reads the input, else into a new tensor of its shape.
///
/// # Errors
/// The input is not a tensor of `T`, or `rewrite` fails.
pub(super) fn rewrite<T: Float>(
    call: &mut Call,
    i: usize,
    rewrite: impl FnOnce(&Call, Rewrite<T::Wide>) -> Result<()>,
) -> Result<Array> {
    if T::DTYPE == <T::Wide as Element>::DTYPE {
        if let Some(mut array) = call.take(i) {
            array.update::<T::Wide>(|x| rewrite(call, Rewrite::in_place(x)))?;
            return Ok(array);
        }
    }
    let array = call.tensor(i)?;
    let x = array.read::<T>()?;
    let out = match T::widen(x) {
        Cow::Borrowed(x) => Uninit::new(x.len()).try_overwrite(|out| rewrite(call, Rewrite::from_to(x, out)))?,
        Cow::Owned(mut x) => {
            rewrite(call, Rewrite::in_place(&mut x))?;
            x
        }
    };
    Array::new(T::narrow(out), array.dims())
}
