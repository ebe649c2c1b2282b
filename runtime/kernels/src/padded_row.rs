//! Rows of images with zero padding.

use crate::isa::Isa;
use crate::vector::dispatch_isa;

/// `out[q] = x[first + q · stride]`, 0 outside `x`.
pub(crate) fn copy_row(x: &[f32], first: isize, stride: usize, out: &mut [f32]) {
    let inside = |limit: isize| usize::try_from(limit - first).map_or(0, |distance| distance.div_ceil(stride));
    let begin = inside(0).min(out.len());
    let end = inside(x.len() as isize).clamp(begin, out.len());
    out[..begin].fill(0.0);
    out[end..].fill(0.0);
    if begin == end {
        return;
    }
    let x = &x[(first + (begin * stride) as isize) as usize..];
    let out = &mut out[begin..end];
    match stride {
        1 => out.copy_from_slice(&x[..out.len()]),
        2 => copy_even(x, out),
        _ => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(out, x)| *out = *x),
    }
}

/// `out[i] = x[2 · i]`.
fn copy_even(x: &[f32], out: &mut [f32]) {
    let end = 2 * out.len().saturating_sub(1);
    // In pairs, so that the loop vectorizes with shuffles.
    dispatch_isa!(Isa::get(), (x: &[f32] = x, out: &mut [f32] = out), _V => {
        out.iter_mut().zip(x.chunks_exact(2)).for_each(|(out, pair)| *out = pair[0]);
    });
    if let [.., last] = out {
        *last = x[end];
    }
}
