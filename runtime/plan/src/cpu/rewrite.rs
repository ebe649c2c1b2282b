//! Floating-point results in the storage of an input.

use candle_plan_kernels::rewrite::Rewrite;
use candle_plan_kernels::threads::Threads;

use super::convert::Float;
use crate::dtype::Element;
use crate::error::Result;
use crate::kernel::Call;
use crate::value::{alloc_uninit, Array};

/// Rewrites every element of input `i`: in place if no later step reads the input, else into a new tensor of its shape.
/// Rows of `row` elements do not depend on each other, and `rewrite` gets at least one of them at a time.
///
/// # Errors
/// The input is not a tensor of `T`, or there is no memory.
pub(super) fn rewrite<T: Float>(
    call: &mut Call,
    i: usize,
    row: usize,
    rewrite: impl Fn(&Threads, Rewrite<T::Wide>) + Sync,
) -> Result<Array> {
    let threads = call.threads;
    if T::DTYPE == <T::Wide as Element>::DTYPE {
        if let Some(mut array) = call.take(i) {
            array.update::<T::Wide>(|x| {
                rewrite(threads, Rewrite::in_place(x));
                Ok(())
            })?;
            return Ok(array);
        }
    }
    let array = call.tensor(i)?;
    let x = array.read::<T>()?;
    let rewrite = |threads: &Threads, _, x: Rewrite<T::Wide>| rewrite(threads, x);
    let y = alloc_uninit(array.dims())?.overwrite(|y| T::rewrite_rows(threads, row, x, y, rewrite));
    Array::new(y, array.dims())
}
