//! Bounds of the scratch memory of kernels.

use candle_plan_kernels::pool::BLOCK;
use candle_plan_memory::buffer::is_cached;

use crate::operator::Operator;
use crate::ops::pool::PoolWindow;
use crate::types::{TensorType, Types};
use crate::work;

/// The bytes of a buffer of `len` elements, as far as they count: none if the buffer fits a cache.
pub(super) fn counted<T>(len: usize) -> usize {
    if is_cached::<T>(len) {
        0
    } else {
        len.saturating_mul(size_of::<T>())
    }
}

/// Whether lists with entries of up to 128 bytes, one for each of `len` things such as positions along an axis, fit a
/// cache.
pub(super) fn is_short(len: usize) -> bool {
    is_cached::<[u8; 128]>(len)
}

/// The number of elements of input `i`, 0 if it is absent. `None` if it is unknown, or the input is no tensor.
pub(super) fn len(inputs: &Types, i: usize) -> Option<usize> {
    inputs.optional(i).map_or(Some(0), |kind| len_of(kind.tensor().ok()?))
}

/// The number of elements of output 0. `None` if it is unknown.
pub(super) fn output_len(operator: &dyn Operator, inputs: &Types) -> Option<usize> {
    len_of(operator.infer(inputs).ok()?.first()?.tensor().ok()?)
}

fn len_of(tensor: &TensorType) -> Option<usize> {
    usize::try_from(work::count(tensor)?).ok()
}

/// Whether the buffers of rows that each thread of a pooling has, and the list of planes, fit a cache.
pub(super) fn has_short_lines(window: &PoolWindow, inputs: &Types) -> bool {
    let dims = inputs.sizes(0).ok().flatten();
    dims.and_then(|dims| window.windows(&dims).ok()).is_some_and(|(windows, dims)| {
        let planes = dims[0].saturating_mul(dims[1]);
        windows.iter().all(|window| is_short(window.line(BLOCK))) && (inputs.outputs == 1 || is_short(planes))
    })
}
