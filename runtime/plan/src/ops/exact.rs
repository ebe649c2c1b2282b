//! Conversion of 8-bit integers to `float32`, in which their products are exact.

use candle_plan_kernels::buffer::collected;
use candle_plan_kernels::strided::View;
use candle_plan_kernels::threads::Threads;

use crate::dtype::DType;
use crate::error::Result;
use crate::extent::{check_broadcast, fits, Extent};
use crate::movable::copy_view;
use crate::value::Array;

/// Converts the elements of an `int8` or `uint8` tensor to `float32`.
pub(crate) fn floats(x: &Array) -> Result<Vec<f32>> {
    match x.dtype() {
        DType::Int8 => Ok(collected(x.read::<i8>()?.iter().map(|&x| f32::from(x)))),
        _ => Ok(collected(x.read::<u8>()?.iter().map(|&x| f32::from(x)))),
    }
}

/// `x − zero` as `float32`; the zero point broadcasts.
pub(crate) fn shifted(x: &Array, zero: Option<&Array>, threads: &Threads) -> Result<Array> {
    let mut data = floats(x)?;
    let zero = zero.map(|zero| if zero.len() == 1 { Ok(zero.clone()) } else { broadcast(zero, x.dims(), threads) });
    match zero.transpose()? {
        Some(zero) if zero.len() == 1 => {
            let zero = floats(&zero)?[0];
            data.iter_mut().for_each(|x| *x -= zero);
        }
        Some(zero) => data.iter_mut().zip(floats(&zero)?).for_each(|(x, zero)| *x -= zero),
        None => {}
    }
    Array::new(data, x.dims())
}

/// Checks that a zero point has one element, or broadcasts to `x`.
pub(crate) fn check_zero<D: Extent>(zero: &[D], x: &[D]) -> Result<()> {
    match zero.iter().all(|size| fits(size, &1)) {
        true => Ok(()),
        false => check_broadcast(zero, x),
    }
}

/// Repeats the elements to fill a shape, as NumPy does.
pub(crate) fn broadcast(x: &Array, dims: &[usize], threads: &Threads) -> Result<Array> {
    check_broadcast(x.dims(), dims)?;
    let view = View::contiguous(x.dims());
    let mut strides = vec![0; dims.len() - x.rank()];
    strides.extend(x.dims().iter().zip(view.strides).map(|(&size, stride)| if size == 1 { 0 } else { stride }));
    copy_view(x, &View { offset: 0, dims: dims.to_vec(), strides }, threads)
}
