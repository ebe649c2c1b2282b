//! Convolutions over blocks of channels, in the form that the weights are packed for.

use super::conv::Convolution;
use super::direct::Direct;
use super::filter::Filter;
use super::{winograd, Epilogue};
use crate::conv_shape::Shape;
use crate::threads::Threads;

/// `out = bias + filter * x`, then the epilogue. `x` is `[N, C / 16, H, W, 16]` and `out` is `[N, O / 16, H', W', 16]`.
/// For a filter [for rows](Filter::for_rows), `x` is `[N, C, H, W]`.
///
/// # Panics
/// The slices or the filter do not fit the shape.
pub fn conv(
    threads: &Threads,
    shape: &Shape,
    filter: &Filter,
    bias: Option<&[f32]>,
    x: &[f32],
    out: &mut [f32],
    epilogue: Epilogue,
) {
    let length = shape.batch * shape.channels.next_multiple_of(filter.unit) * shape.input[0] * shape.input[1];
    assert_eq!(x.len(), length, "{shape:?}");
    if out.is_empty() {
        return;
    }
    let convolution = Convolution::new(shape, filter, bias, x, out, epilogue);
    match filter.form {
        None => Direct::new(&convolution, threads).run(threads),
        Some(form) => winograd::run(form, &convolution, threads),
    }
}
