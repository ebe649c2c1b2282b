//! CPU kernels: conversion of whole `float32` numbers, whose products are exact, to integers.

use candle_plan_kernels::buffer::collected;

use crate::error::Result;
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
