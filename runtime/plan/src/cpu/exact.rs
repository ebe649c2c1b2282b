//! CPU kernels: conversion of whole `float32` numbers, whose products are exact, to integers.

use candle_plan_kernels::strided::View;
use candle_plan_kernels::threads::Threads;
use candle_plan_memory::buffer::collected;

use crate::dtype::DType;
use crate::error::Result;
use crate::extent::check_broadcast;
use crate::movable::copy_view;
use crate::value::Array;

/// Returns the largest magnitude.
pub(super) fn largest(x: &Array) -> Result<f64> {
    Ok(f64::from(x.read::<f32>()?.iter().fold(0f32, |largest, x| largest.max(x.abs()))))
}

#[allow(clippy::cast_possible_truncation)] // whole numbers in range
pub(super) fn whole_elements(x: &[f32]) -> Vec<i32> {
    collected(x.iter().map(|&x| x as i32))
}

pub(super) fn whole(x: &Array) -> Result<Array> {
    Array::new(whole_elements(x.read::<f32>()?), x.dims())
}

/// Converts the elements of an `int8` or `uint8` tensor to `float32`.
pub(super) fn floats(x: &Array) -> Result<Vec<f32>> {
    match x.dtype() {
        DType::Int8 => Ok(collected(x.read::<i8>()?.iter().map(|&x| f32::from(x)))),
        _ => Ok(collected(x.read::<u8>()?.iter().map(|&x| f32::from(x)))),
    }
}

/// `x − zero` as `float32`; the zero point broadcasts.
pub(super) fn shifted(x: &Array, zero: Option<&Array>, threads: &Threads) -> Result<Array> {
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

/// Repeats the elements to fill a shape, as NumPy does.
pub(super) fn broadcast(x: &Array, dims: &[usize], threads: &Threads) -> Result<Array> {
    check_broadcast(x.dims(), dims)?;
    let view = View::contiguous(x.dims());
    let mut strides = vec![0; dims.len() - x.rank()];
    strides.extend(x.dims().iter().zip(view.strides).map(|(&size, stride)| if size == 1 { 0 } else { stride }));
    copy_view(x, &View { offset: 0, dims: dims.to_vec(), strides }, threads)
}
